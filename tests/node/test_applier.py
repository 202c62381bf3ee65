"""What the applier keeps count of: what is due since the last snapshot is reckoned from it."""

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.node.applier import Applier
from quorate.node.jobs import LogRead, SnapshotRead
from quorate.node.tail import Tail
from quorate.raft.values import ControlState


class Forgetful:
    """A machine that keeps nothing."""

    def __getattr__(self, name):
        return lambda *_: None


def test_a_loaded_snapshot_begins_a_new_count():
    applier, jobs, log = Applier(Forgetful()), [], encode_batch(0, 1, 1000, [b"a", b"b"])
    assert not applier.advance(2, Tail(2), 1, jobs)
    assert applier.took(LogRead(1, log))
    assert not applier.advance(2, Tail(2), 2, jobs)
    assert (applier.applied, applier.bytes_applied) == (OffsetAndEpoch(2, 1), len(log))
    id = OffsetAndEpoch(9, 1)
    data = b"".join(encode_snapshot(id, ControlState(0, None), 900, [b"c"], 1000))
    applier.load(id)
    assert not applier.advance(9, Tail(9), 3, jobs)
    assert applier.took(SnapshotRead(3, len(data), data))
    assert (applier.applied, applier.bytes_applied) == (id, 0)
    assert applier.snapshot_size == len(data)
