"""What must hold in every state, named as in Raft's figure 3 and in the simulator.

History that no replica remembers (who has led which epoch, what was ever committed) is a part of
the state, so that a state is the same only with the same past.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.raft.messages import FetchRequest, VoteResponse
from quorate.raft.values import Batch, ElectionState, Voters

if TYPE_CHECKING:
    from quorate.sim.explore.replica import Batches, Local

PRE_VOTE_BIT = 1
"""In the number by which a request is answered: it was a pre-vote. Above it: a label, the asker."""
LABEL_BITS = 5


class Broken(QuorateError):
    """A law does not hold."""

    def __init__(self, law: str, message: str) -> None:
        super().__init__(f"{law}: {message}")
        self.law = law
        self.message = message


class History(NamedTuple):
    leaders: tuple[tuple[int, int], ...] = ()
    """(epoch, node), ascending: all that have led, as far as others may know."""
    committed: tuple[Batch, ...] = ()
    """The longest log that any replica has known to be committed."""


def asker_of(code: int) -> int:
    """The node that waits for an answer; 0: a client."""
    return code >> LABEL_BITS


def label_of(code: int) -> int:
    return (code & ((1 << LABEL_BITS) - 1)) >> 1


def code_of(asker: int, label: int, *, pre_vote: bool) -> int:
    """The number by which this request is answered."""
    return asker << LABEL_BITS | label << 1 | (PRE_VOTE_BIT if pre_vote else 0)


# -- durable before audible --------------------------------------------------------------------
def check_promises(
    node: int,
    disk: Batches,
    election: ElectionState | None,
    requests: Sequence[Any],
    replies: Sequence[tuple[int, Any]],
) -> None:
    """Nothing is said that a crash could unsay: epochs, votes, what a Fetch acknowledges."""
    epoch = 0 if election is None else election.epoch
    for request in requests:
        if epoch_of(request) > epoch:
            raise Broken("epochs durable before audible", f"node {node} says {request}")
        end = disk[-1].end_offset if disk else 0
        if isinstance(request, FetchRequest) and request.offset > end:
            raise Broken("log durable before acknowledged", f"node {node}: {request}, has {end}")
    for code, response in replies:
        if epoch_of(response) > epoch:
            raise Broken("epochs durable before audible", f"node {node} says {response}")
        if isinstance(response, VoteResponse) and response.granted and not code & PRE_VOTE_BIT:
            voted = None if election is None else election.voted
            if response.leader.epoch == epoch and (voted is None or voted.id != asker_of(code)):
                text = f"node {node} votes for {asker_of(code)}, its disk for {voted}"
                raise Broken("votes durable before audible", text)


def epoch_of(body: Any) -> int:
    """The epoch in which this is said; -1 where it names none."""
    if hasattr(body, "leader"):
        return int(body.leader.epoch)
    return int(getattr(body, "epoch", -1))


# -- the cluster -------------------------------------------------------------------------------
class Laws:
    """Checks one step: the replica that took it, against all and against the past."""

    def __init__(self) -> None:
        self._concerned: dict[tuple[int, int], bool] = {}
        self._matching: set[tuple[int, int]] = set()
        self._logs: dict[Batches, int] = {}
        self._lawful_voters: set[tuple[int, int]] = set()

    def concern(self, before: Local, after: Local) -> bool:
        """Is there anything in this step that the laws speak of?"""
        pair = (before.id, after.id)
        known = self._concerned.get(pair)
        if known is None:
            known = self._concerned[pair] = (
                after.log != before.log
                or after.high_watermark != before.high_watermark
                or (after.role, after.spoken, after.epoch)
                != (before.role, before.spoken, before.epoch)
            )
        return known

    def check(
        self, before: Local, after: Local, cluster: Sequence[Local], past: History
    ) -> History:
        """The history with this step; raises Broken. `cluster` has `after` in it."""
        past = self._election_safety(after, past)
        changed = after.log != before.log
        if changed or (after.role, after.spoken) != (before.role, before.spoken):
            self._log_matching(after, cluster)
        if after.high_watermark > before.high_watermark or after.role != before.role:
            past = self._committed(before, after, cluster, past)
        self._voter_sets(after, past)
        return past

    def _election_safety(self, after: Local, past: History) -> History:
        if after.role != "leader" or not after.spoken:
            return past
        for epoch, node in past.leaders:
            if epoch == after.epoch:
                if node != after.node:
                    text = f"{node} and {after.node} have led epoch {epoch}"
                    raise Broken("election safety", text)
                return past
        self._has_all(after, past)
        return past._replace(leaders=tuple(sorted([*past.leaders, (after.epoch, after.node)])))

    def _has_all(self, leader: Local, past: History) -> None:
        if leader.live[: len(past.committed)] != past.committed:
            text = f"{leader.node} leads epoch {leader.epoch} without {_show(past.committed)}"
            raise Broken("leader completeness", text)

    def _log_matching(self, after: Local, cluster: Sequence[Local]) -> None:
        if _unheard(after):
            return
        mine = self._log_id(after.log)
        for other in cluster:
            if other is after or _unheard(other):
                continue
            theirs = self._log_id(other.log)
            pair = (mine, theirs) if mine <= theirs else (theirs, mine)
            if mine != theirs and pair not in self._matching:
                if not _match(after.log, other.log):
                    text = f"{after.node} has {_show(after.log)}, {other.node} {_show(other.log)}"
                    raise Broken("log matching", text)
                self._matching.add(pair)

    def _log_id(self, log: Batches) -> int:
        return self._logs.setdefault(log, len(self._logs))

    def _committed(
        self, before: Local, after: Local, cluster: Sequence[Local], past: History
    ) -> History:
        known = tuple(b for b in after.live if b.end_offset <= after.high_watermark)
        short = min(len(known), len(past.committed))
        if known[:short] != past.committed[:short]:
            text = f"{after.node} takes {_show(known)} for committed, it was "
            raise Broken("committed prefix", text + _show(past.committed))
        leads = before.role == "leader" and before.epoch == after.epoch
        if leads and after.high_watermark > before.high_watermark:
            self._majority(after, known, cluster)
        if len(known) <= len(past.committed):
            return past
        past = past._replace(committed=known)
        for other in cluster:
            if other.role == "leader" and other.spoken and other.epoch >= after.epoch:
                self._has_all(other, past)
        return past

    def _majority(self, leader: Local, known: Batches, cluster: Sequence[Local]) -> None:
        """A high watermark never passes what a majority of the voters in force has on disk."""
        ids = {key.id for key in leader.voters}
        having = [c.node for c in cluster if c.node in ids and c.disk[: len(known)] == known]
        if len(having) <= len(ids) // 2:
            text = f"{leader.node} commits {_show(known)}, of {sorted(ids)} only {having} have it"
            raise Broken("committed on a durable majority", text)

    def _voter_sets(self, after: Local, past: History) -> None:
        key = (self._log_id(after.log), len(past.committed))
        if key in self._lawful_voters:
            return
        uncommitted = 0
        last: frozenset[ReplicaKey] | None = None
        for i, batch in enumerate(after.log):
            for record in batch.control:
                if not isinstance(record, Voters):
                    continue
                keys = frozenset(voter.key for voter in record.voters)
                if last is not None and len(keys ^ last) > 1:
                    text = f"{after.node}: {sorted(last)}, then {sorted(keys)}"
                    raise Broken("consecutive voter sets overlap", text)
                uncommitted += last is not None and keys != last and i >= len(past.committed)
                last = keys
        if uncommitted > 1:
            raise Broken("one voter change at a time", f"{after.node}: {_show(after.log)}")
        self._lawful_voters.add(key)


def _unheard(replica: Local) -> bool:
    """A leader of whom nobody can have heard: after a crash its batch may be another one."""
    return replica.role == "leader" and not replica.spoken


def _match(one: Batches, other: Batches) -> bool:
    """The same offset and epoch: the same batch, and all before it the same."""
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    rest = {(batch.base_offset, batch.epoch) for batch in one[shared:]}
    return not any((batch.base_offset, batch.epoch) in rest for batch in other[shared:])


def _show(log: Batches) -> str:
    entries = [f"{b.base_offset}:{b.payload or 'control'} e{b.epoch}" for b in log]
    return "[" + ", ".join(entries) + "]"
