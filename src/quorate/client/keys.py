"""The keys of Kafka's clients: what Kafka takes as their values.

Types, ranges and choices are those of `AdminClientConfig.configDef` of Kafka 4.3.1, and a wrong one
is refused in its words, also where a tool of ours has no use for the key: a slip in a file that all
tools share is found by the first of them. An interop test compares them. Not looked at are keys of
TLS and SASL, which the tools do not speak.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.node.kafka_keys import check_values
from quorate.node.settings import Settings

RANGES: Final = """\
BOOLEAN: enable.metrics.push
INT -1..: send.buffer.bytes receive.buffer.bytes
INT 0..: retries request.timeout.ms default.api.timeout.ms
INT 1..: metrics.num.samples
LONG 0..: metadata.max.age.ms reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms
    retry.backoff.max.ms metrics.sample.window.ms metadata.recovery.rebootstrap.trigger.ms
LONG ..: socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms
    connections.max.idle.ms
"""
"""Type and range (`least..most`): keys."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
}
_RECOVERY: Final = ("REBOOTSTRAP", "NONE")


def check_client_keys(settings: Settings) -> None:
    """Raise ConfigError for the first value that Kafka's clients would refuse."""
    check_values(settings, RANGES, CHOICES)
    recovery = settings.text("metadata.recovery.strategy")
    if recovery is not None and recovery.upper() not in _RECOVERY:
        choices = ", ".join(_RECOVERY)
        reason = f"String must be one of (case insensitive): {choices}"
        settings.invalid("metadata.recovery.strategy", recovery, reason)
