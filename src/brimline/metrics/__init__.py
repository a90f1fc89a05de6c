"""One catalogue of every metric; Prometheus text and JMX are two renderings of it."""
