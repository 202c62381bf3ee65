"""Policies: an operator's own checks of new topics and of changes of configs.

Kafka loads Java classes (`create.topic.policy.class.name`, `alter.config.policy.class.name`); Quorate
calls Python functions. A policy raises PolicyViolationError to refuse, and its message is the
client's. It runs inside a decision: it must be quick, and must give the same answer each time.

Source: `CreateTopicPolicy`, `AlterConfigPolicy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from quorate.base.errors import QuorateError


class PolicyViolationError(QuorateError):
    """A policy refuses what it was asked about."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is about to be created.

    Either `partitions` and `replication_factor` are given, or `assignments`: partition -> brokers.
    """

    name: str
    partitions: int | None
    replication_factor: int | None
    assignments: Mapping[int, Sequence[int]] | None
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """A change of the configs of one resource.

    `resource_type` is Kafka's number: 2 topic, 4 broker, 16 client metrics, 32 group. A value of None
    removes the config. The configs that AlterConfigs removes because it does not name them are not
    among `configs` (KAFKA-14195).
    """

    resource_type: int
    resource_name: str
    configs: Mapping[str, str | None]


CreateTopicPolicy = Callable[[NewTopic], Any]
AlterConfigPolicy = Callable[[ConfigChange], Any]
