"""Kafka clients of others, as one small face: produce and consume as a user of SCRAM."""

import logging
import shutil
import subprocess
from itertools import islice
from pathlib import Path
from typing import Protocol

from narrow import not_none

FRANZ = Path(__file__).with_name("franz")
MECHANISM = "SCRAM-SHA-512"
TIMEOUT_S = 30


class RefusedError(Exception):
    """The text that the client shows."""


class Client(Protocol):
    """One user of a broker. Raises RefusedError."""

    def produce(self, topic: str, values: list[str]) -> None: ...
    def consume(self, topic: str, group: str, count: int) -> list[str]: ...


class Warnings(logging.Handler):
    """What a library logs meanwhile, at WARNING and above."""

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self._logger = logging.getLogger(name)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def __enter__(self) -> "Warnings":
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


class KafkaPython:
    """kafka-python: a protocol and SCRAM of its own. Why it cannot connect is in its log only."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self._config = {
            "bootstrap_servers": address,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": user,
            "sasl_plain_password": password,
        }

    def produce(self, topic: str, values: list[str]) -> None:
        from kafka import KafkaProducer
        from kafka.errors import KafkaError

        with Warnings("kafka") as shown:
            try:
                producer = KafkaProducer(**self._config, bootstrap_timeout_ms=5_000)
                try:
                    for sent in [producer.send(topic, value.encode()) for value in values]:
                        sent.get(TIMEOUT_S)
                finally:
                    producer.close(timeout=1)
            except KafkaError as error:
                raise RefusedError("\n".join((*shown.texts, repr(error)))) from error

    def consume(self, topic: str, group: str, count: int) -> list[str]:
        from kafka import KafkaConsumer

        consumer = KafkaConsumer(
            topic,
            **self._config,
            group_id=group,
            auto_offset_reset="earliest",
            consumer_timeout_ms=TIMEOUT_S * 1000,
        )
        try:
            return [message.value.decode() for message in islice(consumer, count)]
        finally:
            consumer.close(autocommit=False)


class Librdkafka:
    """confluent-kafka, and so librdkafka."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self._failures: list[str] = []
        self._config = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
            "error_cb": lambda error: self._failures.append(f"{error.name()} {error.str()}"),
        }

    def produce(self, topic: str, values: list[str]) -> None:
        from confluent_kafka import Producer

        producer = Producer({**self._config, "message.timeout.ms": 5_000})

        def delivered(error: object, message: object) -> None:
            if error is not None:
                self._failures.append(str(error))

        for value in values:
            producer.produce(topic, value, on_delivery=delivered)
        producer.flush(TIMEOUT_S)
        self._check()

    def consume(self, topic: str, group: str, count: int) -> list[str]:
        from confluent_kafka import Consumer

        consumer = Consumer({**self._config, "group.id": group, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([topic])
            found: list[str] = []
            while len(found) < count and not self._failures:
                for message in consumer.consume(count - len(found), timeout=1):
                    if message.error() is not None:
                        self._failures.append(str(message.error()))
                    else:
                        found.append(not_none(message.value()).decode())
            self._check()
            return found
        finally:
            consumer.close()

    def _check(self) -> None:
        if self._failures:
            raise RefusedError("; ".join(self._failures))


class FranzGo:
    """franz-go, as the program in the folder `franz`."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self._login = (address, user, password)

    @staticmethod
    def program() -> Path:
        """Build it, where that is to do."""
        assert shutil.which("go")
        made = Path(__file__).resolve().parents[2] / ".kafka" / "franz"
        subprocess.run(["go", "build", "-o", str(made), "."], cwd=FRANZ, check=True, timeout=300)
        return made

    def _run(self, action: str, *arguments: str) -> str:
        command = [str(self.program()), action, *self._login, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=2 * TIMEOUT_S)
        if run.returncode:
            raise RefusedError(run.stderr)
        return run.stdout

    def produce(self, topic: str, values: list[str]) -> None:
        self._run("produce", topic, *values)

    def consume(self, topic: str, group: str, count: int) -> list[str]:
        return self._run("consume", topic, group, str(count)).splitlines()
