"""Replicas to damage: copies of the samples, and small ones made for a purpose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from metadata.samples import DATA
from quorate.base.ids import OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch, encode_control_batch, iter_batches
from quorate.formats.control import ControlRecord
from quorate.formats.files import (
    encode_leader_epochs,
    encode_quorum_state,
    segment_name,
    snapshot_name,
)
from quorate.formats.meta_properties import MetaProperties, encode_meta_properties
from quorate.raft.values import ElectionState, LeaderChange, Voter, Voters
from quorate.spark.audit import Report, audit_here
from spark.logs import START_MS, topic

LOG = "__cluster_metadata-0"
FIRST = segment_name(0)
VOTERS = (1, 2, 3)


def copy_of(folder: str, home: Path) -> Path:
    """A copy of a sample cluster, without the dumps beside the logs."""
    return Path(
        shutil.copytree(DATA / folder, home / folder, ignore=shutil.ignore_patterns("*.dump.txt"))
    )


def log_of(cluster: Path, node: int) -> Path:
    (found,) = (cluster / f"node{node}" / LOG).glob("*.log")
    return found


def change(file: Path, to: Callable[[bytes], bytes]) -> None:
    file.write_bytes(to(file.read_bytes()))


def flip(data: bytes, position: int, mask: int = 0xFF) -> bytes:
    return data[:position] + bytes([data[position] ^ mask]) + data[position + 1 :]


def replaced(data: bytes, offset: int, make: Callable[..., bytes]) -> tuple[bytes, int]:
    """The log with another batch at the offset, and where that stands."""
    old = next(view for view in iter_batches(data) if view.base_offset == offset)
    before, after = data[: old.position], data[old.position + old.size :]
    return before + make(old) + after, old.position


def verdicts(*paths: Path, **words: Any) -> dict[int, tuple[str, list[Any]]]:
    """By node: its state, and (check, severity, file, position) of its findings."""
    report = audit_here([str(path) for path in paths], **words)
    return by_node(report)


def by_node(report: Report) -> dict[int, tuple[str, list[Any]]]:
    return {
        one.node_id: (
            one.state,
            [
                (found.check, found.severity, found.spot.file, found.spot.position)
                for found in one.findings
            ],
        )
        for one in report.replicas
    }


def key(number: int) -> ReplicaKey:
    return ReplicaKey(number, Uuid(bytes([number]) * 16))


def voters(*numbers: int) -> Voters:
    return Voters(tuple(Voter(key(number), (), 0, 1) for number in numbers))


def control(offset: int, epoch: int, *records: ControlRecord) -> bytes:
    return encode_control_batch(offset, epoch, START_MS, records)


def elected(offset: int, epoch: int, leader: int, *granting: int) -> bytes:
    """The batch that a leader of the voters 1, 2, 3 begins its epoch with."""
    return control(offset, epoch, LeaderChange(leader, VOTERS, granting or (leader, 3)))


def data(offset: int, epoch: int, count: int = 1, salt: int = 0) -> bytes:
    values = [topic(offset + place + salt) for place in range(count)]
    return encode_batch(offset, epoch, START_MS, values)


def replica(
    home: Path,
    node: int,
    segments: Mapping[int, Sequence[bytes]],
    *,
    epoch: int,
    leader: int = 1,
    snapshots: dict[tuple[int, int], bytes] | None = None,
    epochs: Sequence[tuple[int, int]] | None = None,
) -> Path:
    """A log directory of the cluster "made", as a node leaves it."""
    partition = home / f"node{node}" / LOG
    partition.mkdir(parents=True)
    for base, found in segments.items():
        (partition / segment_name(base)).write_bytes(b"".join(found))
    for (offset, its_epoch), content in (snapshots or {}).items():
        (partition / snapshot_name(OffsetAndEpoch(offset, its_epoch))).write_bytes(content)
    state = encode_quorum_state(ElectionState(epoch, leader, None), 1)
    (partition / "quorum-state").write_bytes(state)
    if epochs is not None:
        (partition / "leader-epoch-checkpoint").write_bytes(encode_leader_epochs(epochs))
    meta = MetaProperties(1, "made", node, key(node).directory_id)
    (partition.parent / "meta.properties").write_bytes(encode_meta_properties(meta, START_MS))
    return partition


def set_quorum_state(file: Path, **fields: object) -> None:
    change(file, lambda old: json.dumps(json.loads(old) | fields).encode())
