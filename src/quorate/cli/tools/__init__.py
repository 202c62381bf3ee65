"""The counterparts of Kafka's command line tools."""
