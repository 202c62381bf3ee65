"""The invariants of every state, named as in Raft's figure 3 and in the simulator.

History variables (who led which epoch, what was ever committed) are a part of the state. Two states
are equal only if their history is equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.raft.messages import FetchRequest, VoteResponse
from quorate.raft.values import Batch, ElectionState, Voters
from quorate.sim.explore.local_state import Batches, LocalState

PRE_VOTE_BIT = 1
"""Bit of a request's code: it was a pre-vote. The bits above are a label and the sender."""
LABEL_BITS = 5


class InvariantViolationError(QuorateError):
    """An invariant is violated: `invariant` names it, `message` has the details."""

    def __init__(self, invariant: str, message: str) -> None:
        super().__init__(f"{invariant}: {message}")
        self.invariant = invariant
        self.message = message


class HistoryVariables(NamedTuple):
    """What no replica remembers: an auxiliary variable of the specification, as in TLA+."""

    leaders: tuple[tuple[int, int], ...] = ()
    """(epoch, node), ascending: all leaders whose election is durable."""
    committed: tuple[Batch, ...] = ()
    """The longest log that any replica has known to be committed."""


def asker_of(code: int) -> int:
    """The node that waits for the response; 0: a client."""
    return code >> LABEL_BITS


def label_of(code: int) -> int:
    """The label that distinguishes requests of one sender to one receiver."""
    return (code & ((1 << LABEL_BITS) - 1)) >> 1


def code_of(asker: int, label: int, *, pre_vote: bool) -> int:
    """The code of this request, by which it is answered."""
    return asker << LABEL_BITS | label << 1 | (PRE_VOTE_BIT if pre_vote else 0)


# -- durable before sent --------------------------------------------------------------------
def check_durability(
    node: int,
    disk: Batches,
    election: ElectionState | None,
    requests: Sequence[Any],
    replies: Sequence[tuple[int, Any]],
) -> None:
    """Durable before sent: a crash must not retract an epoch, a vote or an acknowledgement
    (KIP-595)."""
    epoch = 0 if election is None else election.epoch
    for request in requests:
        if epoch_of(request) > epoch:
            raise InvariantViolationError(
                "epoch durable before sent", f"node {node} says {request}"
            )
        end = disk[-1].end_offset if disk else 0
        if isinstance(request, FetchRequest) and request.offset > end:
            raise InvariantViolationError(
                "log durable before acknowledged", f"node {node}: {request}, has {end}"
            )
    for code, response in replies:
        if epoch_of(response) > epoch:
            raise InvariantViolationError(
                "epoch durable before sent", f"node {node} says {response}"
            )
        if isinstance(response, VoteResponse) and response.granted and not code & PRE_VOTE_BIT:
            voted = None if election is None else election.voted
            if response.leader.epoch == epoch and (voted is None or voted.id != asker_of(code)):
                text = f"node {node} votes for {asker_of(code)}, its disk for {voted}"
                raise InvariantViolationError("vote durable before sent", text)


def epoch_of(body: Any) -> int:
    """The epoch of a message; -1 where it has none."""
    if hasattr(body, "leader"):
        return int(body.leader.epoch)
    return int(getattr(body, "epoch", -1))


# -- the cluster -------------------------------------------------------------------------------
class StepInvariants:
    """Checks one step: the replica that took it against all replicas and the history variables."""

    def __init__(self) -> None:
        self._concerned: dict[tuple[int, int], bool] = {}
        self._matching: set[tuple[int, int]] = set()
        self._logs: dict[Batches, int] = {}
        self._valid_voter_sets: set[tuple[int, int]] = set()

    def concern(self, before: LocalState, after: LocalState) -> bool:
        """Whether an invariant depends on what this step changed."""
        pair = (before.id, after.id)
        known = self._concerned.get(pair)
        if known is None:
            known = self._concerned[pair] = (
                after.log != before.log
                or after.high_watermark != before.high_watermark
                or (after.role, after.election_is_durable, after.epoch)
                != (before.role, before.election_is_durable, before.epoch)
            )
        return known

    def check(
        self,
        before: LocalState,
        after: LocalState,
        cluster: Sequence[LocalState],
        past: HistoryVariables,
    ) -> HistoryVariables:
        """The history variables after this step; raises InvariantViolationError. `cluster` contains
        `after`."""
        past = self._election_safety(after, past)
        changed = after.log != before.log
        if changed or (after.role, after.election_is_durable) != (
            before.role,
            before.election_is_durable,
        ):
            self._log_matching(after, cluster)
        if after.high_watermark > before.high_watermark or after.role != before.role:
            past = self._committed(before, after, cluster, past)
        self._voter_sets(after, past)
        return past

    def _election_safety(self, after: LocalState, past: HistoryVariables) -> HistoryVariables:
        if after.role != "leader" or not after.election_is_durable:
            return past
        for epoch, node in past.leaders:
            if epoch == after.epoch:
                if node != after.node:
                    text = f"{node} and {after.node} have led epoch {epoch}"
                    raise InvariantViolationError("election safety", text)
                return past
        self._has_all_committed(after, past)
        return past._replace(leaders=tuple(sorted([*past.leaders, (after.epoch, after.node)])))

    def _has_all_committed(self, leader: LocalState, past: HistoryVariables) -> None:
        if leader.live[: len(past.committed)] != past.committed:
            text = f"{leader.node} leads epoch {leader.epoch} without {_show(past.committed)}"
            raise InvariantViolationError("leader completeness", text)

    def _log_matching(self, after: LocalState, cluster: Sequence[LocalState]) -> None:
        if _is_unknown_leader(after):
            return
        mine = self._log_id(after.log)
        for other in cluster:
            if other is after or _is_unknown_leader(other):
                continue
            theirs = self._log_id(other.log)
            pair = (mine, theirs) if mine <= theirs else (theirs, mine)
            if mine != theirs and pair not in self._matching:
                if not _match(after.log, other.log):
                    text = f"{after.node} has {_show(after.log)}, {other.node} {_show(other.log)}"
                    raise InvariantViolationError("log matching", text)
                self._matching.add(pair)

    def _log_id(self, log: Batches) -> int:
        return self._logs.setdefault(log, len(self._logs))

    def _committed(
        self,
        before: LocalState,
        after: LocalState,
        cluster: Sequence[LocalState],
        past: HistoryVariables,
    ) -> HistoryVariables:
        known = tuple(b for b in after.live if b.end_offset <= after.high_watermark)
        short = min(len(known), len(past.committed))
        if known[:short] != past.committed[:short]:
            text = f"{after.node} takes {_show(known)} for committed, it was "
            raise InvariantViolationError("committed prefix", text + _show(past.committed))
        leads = before.role == "leader" and before.epoch == after.epoch
        if leads and after.high_watermark > before.high_watermark:
            self._majority(after, known, cluster)
        if len(known) <= len(past.committed):
            return past
        past = past._replace(committed=known)
        for other in cluster:
            if other.role == "leader" and other.election_is_durable and other.epoch >= after.epoch:
                self._has_all_committed(other, past)
        return past

    def _majority(self, leader: LocalState, known: Batches, cluster: Sequence[LocalState]) -> None:
        """A leader's high watermark is durable on a majority of the voters in force (Raft, section
        5.3)."""
        ids = {key.id for key in leader.voters}
        having = [c.node for c in cluster if c.node in ids and c.disk[: len(known)] == known]
        if len(having) <= len(ids) // 2:
            text = f"{leader.node} commits {_show(known)}, of {sorted(ids)} only {having} have it"
            raise InvariantViolationError("committed on a durable majority", text)

    def _voter_sets(self, after: LocalState, past: HistoryVariables) -> None:
        key = (self._log_id(after.log), len(past.committed))
        if key in self._valid_voter_sets:
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
                    raise InvariantViolationError("consecutive voter sets overlap", text)
                uncommitted += last is not None and keys != last and i >= len(past.committed)
                last = keys
        if uncommitted > 1:
            raise InvariantViolationError(
                "one voter change at a time", f"{after.node}: {_show(after.log)}"
            )
        self._valid_voter_sets.add(key)


def _is_unknown_leader(replica: LocalState) -> bool:
    """A leader whose election is not durable: after a crash its batch may be a different one."""
    return replica.role == "leader" and not replica.election_is_durable


def _match(one: Batches, other: Batches) -> bool:
    """Log Matching: equal offset and epoch mean an equal batch and an equal log before it."""
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
