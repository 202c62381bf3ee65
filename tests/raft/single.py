"""One core by itself, led into any role: node 1 of the voters 1, 2, 3; log end (5, epoch 3)."""

from __future__ import annotations

from collections.abc import Callable

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.inputs import Answered, Event, Persisted, Received, Resign
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Ready, SaveElection, Send
from quorate.raft.values import ControlState, ElectionState, RaftConfig, RecoveredLog
from quorate.sim.scenario.names import CLUSTER_ID, directory, key, listeners, voter

BOOTSTRAP = OffsetAndEpoch(0, 0)
END, LAST_EPOCH, EPOCH = 5, 3, 4
VOTERS = tuple(voter(i) for i in (1, 2, 3))
KRAFT_VERSION = 1
"""At 0 the voters stand in the configuration of each node."""


def recovered(**changes: object) -> RecoveredLog:
    """Five batches of epoch 3 on top of a bootstrap snapshot with the voters 1, 2, 3."""
    fields: dict[str, object] = {
        "start_offset": 0,
        "end_offset": END,
        "epochs": ((LAST_EPOCH, 0),),
        "snapshots": (BOOTSTRAP,),
        "snapshot_control": ControlState(KRAFT_VERSION, VOTERS if KRAFT_VERSION else None),
        "control_records": (),
        "batch_ends": tuple(range(1, END + 1)),
    }
    return RecoveredLog(**(fields | changes))  # type: ignore[arg-type]


class Single:
    """A core whose disk writes at once, unless `slow`."""

    def __init__(
        self,
        node_id: int = 1,
        *,
        log: RecoveredLog | None = None,
        election: ElectionState | None = None,
        slow: bool = False,
        **config: object,
    ) -> None:
        defaults: dict[str, object] = {
            "cluster_id": CLUSTER_ID,
            "node_id": node_id,
            "directory_id": directory(node_id),
            "listeners": listeners(node_id),
            "static_voters": () if KRAFT_VERSION else VOTERS,
        }
        self.config = RaftConfig(**(defaults | config))  # type: ignore[arg-type]
        election = election or ElectionState(EPOCH)
        self.core = RaftCore(self.config, election, log or recovered(), lambda: 0.5)
        self.now = 0
        self.slow = slow
        self.seq: int | None = None
        self.stored = election
        """quorum-state, as it was last written."""
        self.sends: list[Send] = []
        self.replies: dict[int, Response] = {}
        self.notes: list[str] = []
        self.asked = 0
        self.answered: set[int] = set()
        self.last = self.step()

    def step(self, *events: Event) -> Ready:
        ready = self.core.step(events, self.now)
        first = ready
        while True:
            self.sends += ready.sends
            for reply in ready.replies:
                assert reply.reply_to not in self.answered, "answered twice"
                self.answered.add(reply.reply_to)
                self.replies[reply.reply_to] = reply.response
            self.notes += ready.notes
            self.seq = ready.seq or self.seq
            for write in ready.writes:
                if isinstance(write, SaveElection):
                    self.stored = write.state
            if ready.seq is None or self.slow:
                break
            ready = self.core.step([Persisted(ready.seq)], self.now)
        if ready.faulted is None:
            assert self.stored == self.core.election, "not on the disk"
        self.last = first
        return first

    def persist(self) -> Ready:
        assert self.seq is not None
        return self.step(Persisted(self.seq))

    def wait(self, duration_ms: int) -> Ready:
        self.now += duration_ms
        return self.step()

    def ask(self, request: Request) -> Response | None:
        """The answer, where it came at once."""
        self.asked += 1
        self.step(Received(self.asked, request))
        return self.replies.get(self.asked)

    def sent(self, kind: type[Request], to: int | None = None) -> Send | None:
        """The newest request of this kind."""
        found = [s for s in self.sends if isinstance(s.request, kind) and to in (None, s.to)]
        return found[-1] if found else None

    def answer(self, kind: type[Request], response: Response, to: int | None = None) -> Ready:
        send = self.sent(kind, to)
        assert send is not None, f"no {kind.__name__} was sent"
        return self.step(Answered(send.correlation, response))


# -- requests, with what matters given -----------------------------------------------------------
def vote(epoch: int = EPOCH, candidate: int = 2, **changes: object) -> VoteRequest:
    """Also: pre_vote, end, last_epoch, disk (of the candidate), receiver, cluster_id."""
    return VoteRequest(
        changes.get("cluster_id", CLUSTER_ID),  # type: ignore[arg-type]
        changes.get("receiver"),  # type: ignore[arg-type]
        epoch,
        key(candidate, changes.get("disk", 0)),  # type: ignore[arg-type]
        changes.get("last_epoch", LAST_EPOCH),  # type: ignore[arg-type]
        changes.get("end", END),  # type: ignore[arg-type]
        bool(changes.get("pre_vote")),
    )


def begin(epoch: int = EPOCH, leader: int = 2, **changes: object) -> BeginQuorumEpochRequest:
    fields: dict[str, object] = {
        "cluster_id": CLUSTER_ID,
        "voter": None,
        "leader": LeaderAndEpoch(leader, epoch),
        "leader_endpoints": listeners(leader),
    }
    return BeginQuorumEpochRequest(**(fields | changes))  # type: ignore[arg-type]


def fetch(offset: int = END, last_epoch: int = LAST_EPOCH, **changes: object) -> FetchRequest:
    fields: dict[str, object] = {
        "cluster_id": CLUSTER_ID,
        "replica": key(2),
        "epoch": EPOCH + 1,
        "offset": offset,
        "last_fetched_epoch": last_epoch,
        "max_wait_ms": 500,
        "max_bytes": 1 << 20,
        "high_watermark": -1,
    }
    return FetchRequest(**(fields | changes))  # type: ignore[arg-type]


def granted(epoch: int = EPOCH) -> VoteResponse:
    return VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, epoch), True)


# -- roles ---------------------------------------------------------------------------------------
def unattached(**config: object) -> Single:
    return Single(**config)  # type: ignore[arg-type]


def voted() -> Single:
    """Unattached in epoch 4, having voted for 3."""
    single = unattached()
    single.ask(vote(candidate=3))
    return single


def knows_leader() -> Single:
    """Unattached in epoch 4, knowing the leader 9, but not its address."""
    return Single(election=ElectionState(EPOCH, 9))


def prospective(**config: object) -> Single:
    single = unattached(**config)
    single.wait(2000)
    return single


def candidate(**config: object) -> Single:
    """In epoch 5."""
    single = prospective(**config)
    single.answer(VoteRequest, granted(), to=2)
    return single


def leader(**config: object) -> Single:
    """Of epoch 5, which starts at offset 5."""
    single = candidate(**config)
    single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    return single


def follower(**config: object) -> Single:
    """Of 2 in epoch 4; has not fetched yet."""
    single = unattached(**config)
    single.ask(begin())
    return single


def fetched() -> Single:
    """Follower of 2 in epoch 4 whose first Fetch was answered."""
    single = follower()
    single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
    return single


def resigned() -> Single:
    """Was leader of epoch 5."""
    single = leader()
    single.step(Resign(single.core.epoch))
    return single


def observer() -> Single:
    """Node 4, no voter, following 2 in epoch 4."""
    single = Single(4)
    single.ask(begin())
    return single


ROLES: dict[str, Callable[[], Single]] = {
    "unattached": unattached,
    "voted": voted,
    "knows leader": knows_leader,
    "prospective": prospective,
    "candidate": candidate,
    "leader": leader,
    "follower": follower,
    "fetched": fetched,
    "resigned": resigned,
    "observer": observer,
}
