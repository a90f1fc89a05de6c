"""The data pipeline over many clusters: PySpark jobs over Delta tables. The only room that may import Spark."""
