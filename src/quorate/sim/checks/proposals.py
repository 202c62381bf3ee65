"""Outcomes of proposals: the proposed records at the reported offsets, in order.

A refused proposal was never appended; a proposal in doubt was. A leader refuses nothing without a
reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.raft.ready import Refused
from quorate.replica.replica import Committed, Submit
from quorate.sim.checks.history import ClusterHistory, LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.times import FOREVER
from quorate.sim.world.observer import ViolationError
from quorate.verify.batches import RECORDS_AT
from quorate.verify.batches import values as values_of

if TYPE_CHECKING:
    from quorate.replica.proposals import Outcome
    from quorate.replica.replica import Effects, Replica

CHECK = "proposal outcome"
REFUSED = "refused means never appended"
ACCEPTS = "leader accepts valid proposals"
BATCHING = "proposal batching delay"
_BATCHING_DELAY_MS = 2
"""The longest batching delay (decision 7)."""
_LONG_MS = 2000
_OVERHEAD = 24
"""Upper bound of the bytes of a record beside its value."""
_Values = tuple[bytes, ...]
_PendingProposal = tuple[_Values, int, int]
"""(values, log end at their arrival, arrival time in ms)."""


class ProposalCheck:
    """Checks each replica's proposals that have no outcome yet, in order."""

    def __init__(self, history: ClusterHistory) -> None:
        self._history = history
        self._waiting: dict[int, dict[int, _PendingProposal]] = {}
        """By node and token: the open proposals."""
        self._possible: dict[int, Counter[_Values]] = {}
        """By node: how often these values were proposed and not refused for good."""
        self._batching: dict[int, tuple[int, int]] = {}
        """By leader: (token of the first open proposal, since when it waits while no round is in
        progress)."""

    def process_started(self, model: ReplicaModel) -> None:
        """A new incarnation: the clients of the previous one have lost their connection."""
        self._waiting[model.id] = {}
        self._possible[model.id] = Counter()
        self._batching.pop(model.id, None)

    def proposal_received(self, model: ReplicaModel, submit: Submit, now_ms: int) -> None:
        values = tuple(submit.values)
        self._waiting[model.id][submit.token] = (values, model.tip.end, now_ms)
        self._possible[model.id][values] += 1

    def outcomes_reported(
        self,
        model: ReplicaModel,
        outcomes: Sequence[Outcome],
        replica: Replica,
        *,
        is_over: bool = False,
    ) -> None:
        """`replica` after the step with these outcomes; `is_over`: the replica stopped in that
        step."""
        waiting = self._waiting[model.id]
        for outcome in outcomes:
            found = waiting.get(outcome.token)
            if found is None:
                raise ViolationError(CHECK, f"{model} answers {outcome.token}, which is not open")
            if isinstance(outcome, Committed):
                self._committed(model, outcome, found, replica.applied.offset)
                first = next(iter(waiting))
                if first != outcome.token:
                    raise ViolationError(
                        CHECK,
                        f"{model} reports {_outcome_text(outcome)} as committed, and has not answered "
                        f"{first}, which arrived before it",
                    )
            else:
                self._refused(model, outcome, found)
                self._check_reason(model, outcome, found[0], replica, is_over)
            del waiting[outcome.token]

    def _refused(self, model: ReplicaModel, outcome: Refused, asked: _PendingProposal) -> None:
        """A proposal is in doubt exactly when it was appended."""
        values, end, _ = asked
        if not values:
            return
        likely = self._possible[model.id]
        if not outcome.in_doubt:
            likely[values] -= 1
        done = sum(map(values.__eq__, self._appended_runs(model, end, len(values))))
        if done > likely[values]:
            raise ViolationError(
                REFUSED,
                f"{model} refuses {outcome.token} for good, and has appended {_hex(values)}",
            )
        if outcome.in_doubt and not done:
            raise ViolationError(
                REFUSED,
                f"{model} reports {outcome.token} in doubt, and has never appended {_hex(values)}",
            )

    def _appended_runs(self, model: ReplicaModel, start: int, count: int) -> Iterator[_Values]:
        """Every run of `count` records that this replica has appended as the leader from this
        offset on."""
        at: LoggedBatch | None = model.tip
        while at is not None and at.end > start:
            if not at.control and self._is_own(model, at):
                records = values_of(at.data)
                for i in range(len(records) - count + 1):
                    yield tuple(records[i : i + count])
            at = at.parent

    def _is_own(self, model: ReplicaModel, entry: LoggedBatch) -> bool:
        leadership = self._history.leaderships.get(entry.epoch)
        return leadership is not None and (leadership.node_id, leadership.incarnation) == (
            model.id,
            model.incarnation,
        )

    def _check_reason(
        self,
        model: ReplicaModel,
        outcome: Refused,
        values: _Values,
        replica: Replica,
        is_over: bool,
    ) -> None:
        most = replica.config.limits.batch_bytes
        if outcome.error == ErrorCode.RECORD_LIST_TOO_LARGE:
            if _fits(values, most):
                raise ViolationError(
                    CHECK,
                    f"{model} refuses {_hex(values)} as too large for a batch of {most} bytes",
                )
        elif (
            model.machine_epoch is not None
            and model.machine_epoch == replica.leading_epoch
            and not is_over
        ):
            raise ViolationError(
                ACCEPTS,
                f"{model} leads epoch {model.machine_epoch}, before and after, and refuses "
                f"{outcome.token}: {outcome.error.name} {outcome.message}",
            )

    def _committed(
        self, model: ReplicaModel, outcome: Committed, asked: _PendingProposal, applied: int
    ) -> None:
        values, end, _ = asked
        if outcome.end_offset > applied:
            raise ViolationError(
                CHECK,
                f"{model} reports {_outcome_text(outcome)} as committed, and has applied {applied}",
            )
        if not values:
            if outcome.base_offset < end or outcome.base_offset != outcome.end_offset:
                said = f"{model} reports {_outcome_text(outcome)} to a barrier at {end}"
                raise ViolationError(CHECK, said)
            return
        found = _values(model.committed_tip, outcome.base_offset, outcome.end_offset)
        if found != list(values):
            raise ViolationError(
                CHECK,
                f"{model} reports {len(values)} records are {_outcome_text(outcome)}; the log there has "
                f"{'none of one batch' if found is None else _hex(found)}, they are {_hex(values)}",
            )

    def after_step(
        self, model: ReplicaModel, effects: Effects, replica: Replica, now_ms: int
    ) -> None:
        """Check a whole step: with no round in progress, a proposal waits for the batching delay
        at most."""
        waiting = self._waiting[model.id]
        if not waiting:
            return
        epoch, end = replica.leading_epoch, model.tip.end
        is_idle = model.committed_tip.end == end == replica.applied.offset
        if epoch is None or not is_idle or effects.is_over:
            self._batching.pop(model.id, None)
            return
        first = next(iter(waiting))
        token, since = self._batching.get(model.id, (first, now_ms))
        if token != first:
            since = now_ms
        self._batching[model.id] = first, since
        wakes = FOREVER if effects.wake_at_ms is None else effects.wake_at_ms
        if wakes > since + _BATCHING_DELAY_MS:
            raise ViolationError(
                BATCHING,
                f"{model} leads epoch {epoch}, has no round in progress, and has delayed {first} for "
                f"{now_ms - since} ms; it sleeps for {wakes - now_ms} ms",
            )

    def finish(self, model: ReplicaModel, now_ms: int) -> None:
        """Everything is committed at the end of a run: an old proposal will never get an outcome."""
        for token, asked in self._waiting[model.id].items():
            if now_ms - asked[2] > _LONG_MS:
                raise ViolationError(CHECK, f"{model} never answers {token}")


def _fits(values: Sequence[bytes], most: int) -> bool:
    """Whether the values fit one batch, whatever the record headers need."""
    return RECORDS_AT + sum(_OVERHEAD + len(value) for value in values) <= most


def _outcome_text(outcome: Committed) -> str:
    return f"proposal {outcome.token} at [{outcome.base_offset}, {outcome.end_offset})"


def _hex(values: Sequence[bytes]) -> str:
    return "[" + ", ".join(value.hex() for value in values) + "]"


def _values(entry: LoggedBatch, base: int, end: int) -> list[bytes] | None:
    """The records between these offsets in the log that ends with `entry`; None where they are not
    in one batch."""
    at: LoggedBatch | None = entry
    while at is not None and at.base > base:
        at = at.parent
    if at is None or at.end < end:
        return None
    return values_of(at.data)[base - at.base : end - at.base]
