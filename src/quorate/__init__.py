"""Quorate: the KRaft metadata quorum of Apache Kafka, in Python."""

__version__ = "0.1.0"
