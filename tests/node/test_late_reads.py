"""Results of reads that were begun before a snapshot replaced the log."""

from __future__ import annotations

from narrow import not_none
from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, ElectionState, RaftConfig, RecoveredLog
from quorate.replica.disk_jobs import Installed, LogRead, ReadSnapshot, SnapshotRead
from quorate.replica.replica import Effects, Replica
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.api import Recovered

OLD, NEW = OffsetAndEpoch(5, 1), OffsetAndEpoch(9, 1)
CONTROL = ControlState(1, ())


def loading(snapshot_id: OffsetAndEpoch) -> tuple[Replica, ReadSnapshot]:
    """A replica that has begun anew with a snapshot, and what it reads of that."""
    end = snapshot_id.offset
    log = RecoveredLog(end, end, (), (snapshot_id,), CONTROL, ())
    config = RaftConfig("cluster", 1, Uuid(bytes(15) + b"1"), True, ())
    recovered = Recovered(log, ElectionState(1), ())
    replica = Replica(config, recovered, KeyValueMachine(), lambda: 0.5)
    return replica, read_job(replica)


def read_job(replica: Replica) -> ReadSnapshot:
    effects = Effects()
    replica._apply(effects.jobs)
    (job,) = effects.jobs
    assert isinstance(job, ReadSnapshot)
    return job


def test_of_a_snapshot_that_is_gone() -> None:
    """It was asked for while the disk installed the newer one."""
    replica, asked = loading(OLD)
    replica._take_snapshot(Installed(1, NEW, CONTROL), Effects(), [])
    replica._take_read(SnapshotRead(asked.token, None, b""), Effects(), [])
    assert replica.is_loading
    again = read_job(replica)
    assert (again.snapshot_id, again.position) == (NEW, 0)
    data = b"".join(encode_snapshot(NEW, CONTROL, 0, not_none(KeyValueMachine().freeze()), 0))
    replica._take_read(SnapshotRead(again.token, len(data), data), Effects(), [])
    assert replica.applied == NEW


def test_of_the_log() -> None:
    replica, asked = loading(OLD)
    replica._take_snapshot(Installed(1, NEW, CONTROL), Effects(), [])
    replica._take_read(LogRead(asked.token, encode_batch(5, 1, 0, [b"value"])), Effects(), [])
    assert read_job(replica).snapshot_id == NEW
    assert not replica.applier.has_unapplied_data
