"""The rules for replicas that a controller places at random."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.formats.metadata_records import PartitionRecord
from quorate.metadata.image import Image
from quorate.wire.schema import Message


def rule_violations(records: Iterable[tuple[Message, int]], before: Image) -> list[str]:
    """The rules of `StripedReplicaPlacer` that new partitions break: the first one, in a line."""
    found: list[str] = []
    brokers = before.cluster.brokers
    usable = {i for i, b in brokers.items() if _has_place(b)}
    unfenced = {i for i in usable if not brokers[i].fenced}
    for record, _ in records:
        if not isinstance(record, PartitionRecord):
            continue
        replicas = record.replicas
        where = f"partition {record.partition_id} {record}"
        if len(set(replicas)) != len(replicas):
            found.append(f"{where}: a replica twice")
        if not usable.issuperset(replicas):
            found.append(f"{where}: a replica on a broker that is not usable")
        if record.isr != [r for r in replicas if r in unfenced]:
            found.append(f"{where}: the ISR is not the replicas in service")
        if record.leader != (record.isr[0] if record.isr else -1):
            found.append(f"{where}: the leader is not the first in the ISR")
        if len(unfenced) == len(usable):
            racks = {brokers[i].rack for i in usable}
            spread = len({brokers[r].rack for r in replicas})
            if spread < min(len(racks), len(replicas)):
                found.append(f"{where}: {spread} racks of {len(racks)}")
        for replica, directory in zip(replicas, record.directories, strict=False):
            own = brokers[replica].directories
            expected = own[0] if len(own) == 1 else None
            if expected is not None and directory != expected:
                found.append(f"{where}: not the only directory of {replica}")
    return found[:1]


def _has_place(broker: object) -> bool:
    directories = getattr(broker, "directories", ())
    cordoned = getattr(broker, "cordoned_directories", None) or ()
    return not directories or any(one not in cordoned for one in directories)


def without_choices(record: Message) -> Message:
    """The record with the number of its replicas in place of them."""
    if not isinstance(record, PartitionRecord):
        return record
    return record.replace(
        replicas=[0] * len(record.replicas),
        isr=[],
        leader=-1 if record.leader < 0 else 0,
        directories=[],
    )
