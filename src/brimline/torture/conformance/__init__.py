"""What a Kafka-compatible system does when a disk fills: the same questions to any of them."""
