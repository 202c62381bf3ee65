"""Directories that Kafka 4.3.1 wrote: opened, held against its own dumps, and written on."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from quorate.base.ids import uuid_to_text
from quorate.formats.files import decode_leader_epochs, decode_quorum_state, parse_snapshot_name
from quorate.raft.values import Voters
from quorate.storage.disk_storage import FileStorage
from storage.builders import leader_change, read_all

DATA = Path(__file__).parent.parent / "data" / "kafka-4.3.1"
PARTITION = "__cluster_metadata-0"
HOMES = sorted(path.parent for path in DATA.glob(f"*/*/{PARTITION}"))
DUMPED = [home for home in HOMES if list(home.glob("*.log.dump.txt"))]
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) .* partitionLeaderEpoch: (\d+) ", re.M)
VOTERS = re.compile(r"^\| offset: (\d+) .* KRaftVoters (\{.*\})$", re.M)


def name(home: Path) -> str:
    return f"{home.parent.name}/{home.name}"


@dataclass
class Dump:
    """What DumpLogSegments said about a log."""

    batches: list[tuple[int, int, int]] = field(default_factory=list)
    """(base offset, last offset, epoch)"""
    voters: list[tuple[int, list[tuple[int, str]]]] = field(default_factory=list)

    @classmethod
    def of(cls, home: Path) -> Dump:
        text = "".join(path.read_text() for path in sorted(home.glob("*.log.dump.txt")))
        batches = [(int(base), int(last), int(epoch)) for base, last, epoch in BATCH.findall(text)]
        voters = [
            (
                int(offset),
                [(v["voterId"], v["voterDirectoryId"]) for v in json.loads(found)["voters"]],
            )
            for offset, found in VOTERS.findall(text)
        ]
        return cls(batches, voters)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        starts: dict[int, int] = {}
        for base, _, epoch in self.batches:
            starts.setdefault(epoch, base)
        return tuple(starts.items())


@pytest.fixture
def copied(request, tmp_path) -> Path:
    home = tmp_path / "copy"
    shutil.copytree(request.param, home)
    for path in home.rglob("*"):
        path.chmod(0o755)
    return home


def test_there_are_samples_of_every_kind():
    assert len(HOMES) >= 40
    assert len(DUMPED) >= 20


@pytest.mark.parametrize(
    ("home", "copied"), [(h, h) for h in DUMPED], indirect=["copied"], ids=name
)
def test_a_controllers_log_is_recovered_as_kafka_dumps_it(home, copied):
    expected = Dump.of(home)
    storage = FileStorage(copied)
    found = storage.open()
    assert found.notes == ()
    # Some nodes ran on between the copy of their log and its dump.
    later = len(expected.batches) - len(found.log.batch_ends)
    assert later in (0, 1)
    expected.batches = expected.batches[: len(found.log.batch_ends)]
    assert found.log.batch_ends == tuple(last + 1 for _, last, _ in expected.batches)
    assert found.log.start_offset == expected.batches[0][0]
    assert found.log.end_offset == expected.batches[-1][1] + 1
    assert found.log.epochs == expected.epochs
    voters = [
        (offset, [(voter.key.id, uuid_to_text(voter.key.directory_id)) for voter in record.voters])
        for offset, record in found.log.control_records
        if isinstance(record, Voters)
    ]
    assert voters == expected.voters
    storage.close()


@pytest.mark.parametrize(("home", "copied"), [(h, h) for h in HOMES], indirect=["copied"], ids=name)
def test_every_sample_is_opened_as_it_is_and_written_on(home, copied):
    original = home / PARTITION
    whole = b"".join(path.read_bytes() for path in sorted(original.glob("*.log")))
    storage = FileStorage(copied)
    found = storage.open()
    assert found.notes == ()
    assert read_all(storage) == whole
    names = [path.name for path in original.glob("*.checkpoint")]
    assert found.log.snapshots == tuple(sorted(filter(None, map(parse_snapshot_name, names))))
    for info in storage.snapshots():
        path = next(original.glob(f"{info.id.offset:020d}-*.checkpoint"))
        assert storage.read_snapshot(info.id, 0, 1 << 20) == path.read_bytes()
        assert info.last_contained_log_timestamp >= 0
    if found.log.snapshots and found.log.snapshots[-1].epoch > 0:
        assert found.log.snapshot_control is not None
        upgraded = home.parent.name == "g-upgraded-v1"
        assert found.log.snapshot_control.kraft_version == (0 if upgraded else 1)
    saved = (original / "quorum-state").read_bytes()
    assert found.election == decode_quorum_state(saved).election
    epochs = (original / "leader-epoch-checkpoint").read_bytes()
    assert found.log.epochs == decode_leader_epochs(epochs)

    end = storage.end_offset
    storage.append([leader_change(end, found.election.epoch + 1)])
    storage.sync()
    storage.close()
    again = FileStorage(copied)
    assert again.open().log.end_offset == end + 1
    assert read_all(again)[: len(whole)] == whole
    again.close()
