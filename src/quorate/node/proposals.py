"""What a leader has been asked to append, from the asking to the commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.formats.batch import HEADER_SIZE, MAX_BATCH_SIZE, encode_batch
from quorate.node.company import Company
from quorate.raft.inputs import Event, Propose, UpgradeKRaftVersion
from quorate.raft.ready import Accepted, Refused

RECORD_OVERHEAD: Final = 24
"""Most bytes that a record needs in a batch beside its value."""
_NOBODY: Final = -1
"""Token of the machine's own batches: nobody waits for them."""
_ENOUGH: Final = 1024 * 1024
"""Bytes that one Fetch carries: so much need not wait for a round to end."""


@frozen
class Submit:
    """Append these record values as one; answered by Committed or Refused with `token`.

    Without values it only waits for everything that was submitted before.
    """

    token: int
    values: Sequence[bytes]


@frozen
class Committed:
    """A Submit (or kraft.version upgrade) is committed and applied: [base_offset, end_offset)."""

    token: int
    base_offset: int
    end_offset: int


Outcome = Committed | Refused


class Proposals:
    """Gathers what is submitted into batches, and follows each to its end.

    What comes while a round is on its way is the next round. A follower fetches no more before it
    has acknowledged, so nothing is won by appending sooner, and one batch costs less than many.
    """

    def __init__(self, batch_bytes: int = MAX_BATCH_SIZE) -> None:
        self._room = batch_bytes - HEADER_SIZE
        self._submitted: list[Submit] = []
        self._records = 0
        self._bytes = 0
        self._proposed: dict[int, list[Submit]] = {}
        self._uncommitted: deque[Committed] = deque()
        self._company = Company()
        self._token = 0

    def is_due(self, now_ms: int) -> bool:
        """Should what was submitted be proposed now? If not: at the next commit, or `wake_at_ms`.

        Monotonic, ms.
        """
        if not self._submitted:
            return False
        if self._bytes >= _ENOUGH:
            return True
        if self._uncommitted:
            return False
        return not self._company.is_worth_waiting_for(len(self._submitted), self._records, now_ms)

    @property
    def wake_at_ms(self) -> int | None:
        """When to ask `is_due` again at the latest; None: no time decides."""
        return self._company.until_ms

    def submit(self, item: Submit) -> None:
        self._submitted.append(item)
        self._records += len(item.values) or 1
        self._bytes += sum(map(len, item.values))

    def upgrade(self, event: UpgradeKRaftVersion) -> UpgradeKRaftVersion:
        """The event for the core; its outcome comes like that of a Submit."""
        return replace(event, token=self._remember([Submit(event.token, ())]))

    def of_machine(
        self, own: Iterable[Sequence[bytes]], epoch: int, wall_ms: int
    ) -> Iterator[Event]:
        """The machine's own batches, one by one; they wait for nothing."""
        for values in own:
            yield self._event([Submit(_NOBODY, values)], epoch, wall_ms)

    def propose(
        self, epoch: int, wall_ms: int, log_end_offset: int, outcomes: list[Outcome]
    ) -> Iterator[Event]:
        """As few batches as can be for all submissions. One that fits no batch is refused."""
        for group in self._groups(outcomes):
            if any(item.values for item in group):
                yield self._event(group, epoch, wall_ms)
            else:
                self._uncommitted.extend(
                    Committed(item.token, log_end_offset, log_end_offset) for item in group
                )
        self._forget_submitted()

    def _forget_submitted(self) -> None:
        self._submitted = []
        self._records = self._bytes = 0
        self._company.until_ms = None

    def _groups(self, outcomes: list[Outcome]) -> Iterator[list[Submit]]:
        group: list[Submit] = []
        room = self._room
        for item in self._submitted:
            size = sum(map(len, item.values)) + len(item.values) * RECORD_OVERHEAD
            if size > self._room:
                most = self._room + HEADER_SIZE
                text = f"{size} bytes of records do not fit one batch of {most}"
                outcomes.append(Refused(item.token, ErrorCode.RECORD_LIST_TOO_LARGE, text))
                continue
            if size > room:
                yield group
                group, room = [], self._room
            group.append(item)
            room -= size
        if group:
            yield group

    def _event(self, items: list[Submit], epoch: int, wall_ms: int) -> Propose:
        values = [value for item in items for value in item.values]
        data = encode_batch(0, epoch, wall_ms, values)
        return Propose(self._remember(items), epoch, len(values), len(data), data)

    def _remember(self, items: list[Submit]) -> int:
        self._token += 1
        self._proposed[self._token] = items
        return self._token

    def settle(self, outcome: Accepted | Refused, outcomes: list[Outcome]) -> None:
        """The core gave a batch its place, or refused it."""
        items = self._proposed.pop(outcome.token)
        if isinstance(outcome, Refused):
            self._refuse(items, outcome.error, outcome.message, outcomes)
            return
        offset = outcome.base_offset
        for item in items:
            end = outcome.end_offset if len(items) == 1 else offset + len(item.values)
            self._uncommitted.append(Committed(item.token, offset, end))
            offset = end

    def release(self, applied: int, outcomes: list[Outcome]) -> None:
        """Everything below `applied` is committed and applied."""
        waiting = self._uncommitted
        if not waiting or waiting[0].end_offset > applied:
            return
        proposals, records = len(self._submitted) + len(waiting), self._records
        records += waiting[-1].end_offset - waiting[0].base_offset
        while waiting and waiting[0].end_offset <= applied:
            committed = waiting.popleft()
            if committed.token != _NOBODY:
                outcomes.append(committed)
        self._company.met(proposals, records)

    def lose(self, outcomes: list[Outcome]) -> None:
        """Leadership is lost: what was appended may or may not commit, some day."""
        self._refuse(self._submitted, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, outcomes)
        self._forget_submitted()
        outcomes.extend(
            Refused(item.token, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, in_doubt=True)
            for item in self._uncommitted
            if item.token != _NOBODY
        )
        self._uncommitted.clear()

    @staticmethod
    def _refuse(
        items: Iterable[Submit], error: ErrorCode, message: str, outcomes: list[Outcome]
    ) -> None:
        outcomes.extend(
            Refused(item.token, error, message) for item in items if item.token != _NOBODY
        )


NOT_ACTIVE: Final = "This node is not the active controller."
