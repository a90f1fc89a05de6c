"""Spark, started and found: the JVM, its jars, its errors."""
