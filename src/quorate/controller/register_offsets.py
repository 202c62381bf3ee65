"""Where in the log each broker has its registration: a broker is caught up once it has applied it.

The image does not say it, and a snapshot neither. Every node keeps it, so that a new active
controller knows it.

Source: `ClusterControlManager.registerBrokerRecordOffsets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quorate.formats.records import RegisterBrokerRecord, UnregisterBrokerRecord, decode_record
from quorate.metadata.image import Cluster

_TYPES: Final = frozenset(cls.schema.key for cls in (RegisterBrokerRecord, UnregisterBrokerRecord))
_TYPE_AT: Final = 1
"""The byte of a record's value that has its type."""


class RegisterOffsets:
    """Of the records that are committed."""

    def __init__(self) -> None:
        self.by_id: dict[int, int] = {}
        """Broker id -> the offset of its newest RegisterBrokerRecord."""

    def applied(self, base_offset: int, values: Sequence[bytes]) -> None:
        """These record values follow, the first one at `base_offset`."""
        for offset, value in enumerate(values, base_offset):
            if value[_TYPE_AT] not in _TYPES:
                continue
            record, _ = decode_record(value)
            if isinstance(record, RegisterBrokerRecord):
                self.by_id[record.broker_id] = offset
            elif isinstance(record, UnregisterBrokerRecord):
                self.by_id.pop(record.broker_id, None)

    def loaded(self, cluster: Cluster, last_offset: int) -> None:
        """A snapshot with these brokers is loaded. As in Kafka, its last offset (inclusive) stands for
        each registration."""
        self.by_id = dict.fromkeys(cluster.brokers, last_offset)
