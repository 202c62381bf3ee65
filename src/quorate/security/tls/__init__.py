"""TLS: key stores, certificates, names, and the contexts made of Kafka's `ssl.*` keys."""
