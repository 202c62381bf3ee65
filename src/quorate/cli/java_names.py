"""Names of Kafka's Java classes that the output of its tools shows."""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode

_PACKAGE: Final = "org.apache.kafka.common.errors"
_IRREGULAR: Final = {
    "UNKNOWN_SERVER_ERROR": "UnknownServerException",
    "REQUEST_TIMED_OUT": "TimeoutException",
    "KAFKA_STORAGE_ERROR": "KafkaStorageException",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicException",
    "TOPIC_ALREADY_EXISTS": "TopicExistsException",
    "INVALID_CONFIG": "InvalidConfigurationException",
    "NETWORK_EXCEPTION": "NetworkException",
}


def exception_name(code: ErrorCode) -> str:
    """The class of the exception for an error code (`Errors.exceptionName`)."""
    name = _IRREGULAR.get(code.name)
    if name is None:
        stem = code.name.removesuffix("_FAILED") if "AUTHORIZATION" in code.name else code.name
        name = "".join(part.capitalize() for part in stem.split("_")) + "Exception"
    return f"{_PACKAGE}.{name}"
