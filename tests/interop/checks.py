"""What must hold of the logs that a test wrote, read by Kafka's own DumpLogSegments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from interop.java import JavaNode
from interop.kafka import Quorum
from interop.process import Node
from retries import DurabilityViolationError

_BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) .*partitionLeaderEpoch: (-?\d+) ")
_RECORD = re.compile(r"^\| offset: (\d+) CreateTime: -?\d+ keySize.*?(?:headerKeys: \[\]) (.*)$")


@dataclass
class Dumped:
    """A node's log and snapshots as Kafka's tool prints them.

    `log` maps an offset to (epoch, text of the record); `snapshots` a file name to its text.
    """

    log: dict[int, tuple[int, str]] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)

    def mentions(self, name: str) -> bool:
        return any(name in text for _, text in self.log.values()) or any(
            name in text for text in self.snapshots.values()
        )


def dump(node: Node) -> Dumped:
    """Read all that `node` has on disk; AssertionError when Kafka's tool finds a fault."""
    while True:
        files = sorted([*node.partition.glob("*.log"), *node.partition.glob("*.checkpoint")])
        assert files, f"{node} has neither log nor snapshot"
        run = JavaNode.dump_log(*files)
        if all(path.exists() for path in files):
            break
    assert run.returncode == 0, f"dump of {node}: {run.stdout[-2000:]}{run.stderr}"
    assert "isvalid: false" not in run.stdout, f"an invalid batch of {node}"
    assert "skipping" not in run.stdout and "Exception" not in run.stderr, run.stdout + run.stderr
    found = Dumped()
    for part in re.split(r"^Dumping ", run.stdout, flags=re.M)[1:]:
        name = Path(part.split("\n", 1)[0]).name
        if name.endswith(".checkpoint"):
            found.snapshots[name] = part
        else:
            _read_log(part, found.log)
    return found


def _read_log(text: str, log: dict[int, tuple[int, str]]) -> None:
    epoch, expected = -1, max(log, default=-1) + 1
    for line in text.splitlines():
        if batch := _BATCH.match(line):
            if log and int(batch[1]) != expected:
                raise DurabilityViolationError(f"a gap before {line}")
            epoch, expected = int(batch[3]), int(batch[2]) + 1
        elif record := _RECORD.match(line):
            log[int(record[1])] = (epoch, record[2])


def assert_nothing_is_lost(quorum: Quorum) -> None:
    """Every voter's log is the same up to the high watermark and holds every confirmed write.

    Kafka's DumpLogSegments reads the files of every controller, voter or not, without a complaint.
    """
    view = quorum.wait_for_commit_by_all()
    end = view.high_watermark
    dumped = {node.id: dump(node) for node in quorum.controllers}
    logs = {node_id: dumped[node_id] for node_id in sorted(view.voters)}
    first = logs[view.leader]
    for node_id, other in logs.items():
        start = max(min(first.log), min(other.log))
        for offset in range(start, end):
            mine, leaders = other.log.get(offset), first.log.get(offset)
            if mine is None or mine != leaders:
                where = f"offset {offset} of {quorum.nodes[node_id]} and of the leader"
                raise DurabilityViolationError(f"{where}: {mine} and {leaders}")
    text = "\n".join(record for _, record in first.log.values())
    text += "\n".join(first.snapshots.values())
    lost = [name for name in quorum.acknowledged if f'"{name}"' not in text]
    if lost:
        raise DurabilityViolationError(f"confirmed, but in no log: {lost}")


def assert_java_is_content(quorum: Quorum) -> None:
    """No Java node has logged an error or worse."""
    complaints = {node.id: node.complaints() for node in quorum.java_nodes}
    assert not any(complaints.values()), complaints
