"""Submissions of a leader: gathered into batches, proposed to the core, followed to the commit.

Replication goes in rounds: one batch is on its way, and what arrives meanwhile is the next one.
`BatchingDelay` decides how long the first submissions of a round wait for others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.formats.batch import HEADER_SIZE, MAX_BATCH_SIZE, encode_batch
from quorate.raft.inputs import Event, Propose, UpgradeKRaftVersion
from quorate.raft.ready import Accepted, Refused

RECORD_OVERHEAD: Final = 24
"""Most bytes that a record needs in a batch beside its value."""
_NO_CLIENT: Final = -1
"""Token of the state machine's own batches: they have no outcome."""
_FULL_FETCH_BYTES: Final = 1024 * 1024
"""Bytes that one Fetch carries: so many are proposed before the round on its way ends."""
BATCHING_DELAY_MS: Final = 2
"""How long a submission waits for others, at most."""
MAX_ROUNDS_WITHOUT_DELAY: Final = 64


@frozen
class Submit:
    """Append these record values in one batch; answered by Committed or Refused with `token`.

    Without values it waits for everything that was submitted before.
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


def size_in_batch(values: Sequence[bytes]) -> int:
    """Bytes that these record values take of a batch's room, at most."""
    return sum(map(len, values)) + len(values) * RECORD_OVERHEAD


def batch_room(batch_bytes: int) -> int:
    """Room for records in a batch of so many bytes."""
    return batch_bytes - HEADER_SIZE


class BatchingDelay:
    """Decides how long the first submissions of a round wait for those that will follow anyway.

    Writers that were answered together submit again together, one shortly after the other. Were
    the first of them replicated at once, all others would wait for its whole round of syncs. A lone
    writer never waits, nor do writers that do not come back. Kafka waits by a fixed linger instead
    (`BatchAccumulator`, 25 ms); docs/decisions/0007 says why this differs.

    1. Each commit reports how many submissions and records the round had (`round_ended`).
    2. A later round that begins with fewer of both waits, BATCHING_DELAY_MS at most.
    3. The missing ones arrive: the round begins at once, and the back-off starts anew at 1.
    4. They do not: 2 rounds go without a delay before the next attempt, then 4, up to
       MAX_ROUNDS_WITHOUT_DELAY. So a writer that has gone away costs ever less.

    Times are monotonic, ms.
    """

    def __init__(self) -> None:
        self.until_ms: int | None = None
        """When the present wait ends; None: nothing waits."""
        self._proposals = 1
        self._records = 1
        self._backoff = 1
        self._rounds_without_delay = 0

    def is_to_wait(self, proposals: int, records: int, now_ms: int) -> bool:
        """Do so many submissions, with nothing on its way, wait for more of them?"""
        enough = proposals >= self._proposals or records >= self._records
        if self._rounds_without_delay or enough:
            if self.until_ms is not None:  # step 3
                self.until_ms, self._backoff = None, 1
            return False
        if self.until_ms is None:
            self.until_ms = now_ms + BATCHING_DELAY_MS
        if now_ms < self.until_ms:
            return True
        self.until_ms = None  # step 4
        self._backoff = min(self._backoff * 2, MAX_ROUNDS_WITHOUT_DELAY)
        self._rounds_without_delay = self._backoff
        return False

    def round_ended(self, proposals: int, records: int) -> None:
        """So many were on their way, or had been submitted when the round ended."""
        self._proposals, self._records = proposals, records
        if self._rounds_without_delay:
            self._rounds_without_delay -= 1


class Proposals:
    """Gathers submissions into batches and follows each to its commit or its refusal.

    Submissions that arrive while a round is on its way form the next round. A follower fetches again
    only to acknowledge, so appending sooner gains nothing, and one batch costs less than many.
    """

    def __init__(self, batch_bytes: int = MAX_BATCH_SIZE) -> None:
        self._room = batch_room(batch_bytes)
        self._submitted: list[Submit] = []
        self._records = 0
        self._bytes = 0
        self._proposed: dict[int, list[Submit]] = {}
        self._uncommitted: deque[Committed] = deque()
        self._delay = BatchingDelay()
        self._token = 0

    def is_due(self, now_ms: int) -> bool:
        """The submissions are to be proposed now; else at the next commit, or at `wake_at_ms`.

        Monotonic, ms.
        """
        if not self._submitted:
            return False
        if self._bytes >= _FULL_FETCH_BYTES:
            return True
        if self._uncommitted:
            return False
        return not self._delay.is_to_wait(len(self._submitted), self._records, now_ms)

    @property
    def wake_at_ms(self) -> int | None:
        """When to call `is_due` again at the latest; None: no time decides."""
        return self._delay.until_ms

    @property
    def pending_end(self) -> int | None:
        """End offset (exclusive) of the newest proposal that is not committed; None: there is none."""
        # Not the last one's: an upgrade of kraft.version that changes nothing is accepted at the end
        # of the record that is in force, which may lie far below.
        return max((item.end_offset for item in self._uncommitted), default=None)

    @property
    def submitted_records(self) -> int:
        """How many records wait to be proposed."""
        return sum(len(item.values) for item in self._submitted)

    def submit(self, item: Submit) -> None:
        self._submitted.append(item)
        self._records += len(item.values) or 1
        self._bytes += sum(map(len, item.values))

    def upgrade(self, event: UpgradeKRaftVersion) -> UpgradeKRaftVersion:
        """The event for the core. Its outcome is Committed or Refused, as that of a Submit."""
        return replace(event, token=self._remember([Submit(event.token, ())]))

    def of_machine(
        self, own: Iterable[Sequence[bytes]], epoch: int, wall_ms: int
    ) -> Iterator[Event]:
        """The state machine's own batches, one by one, without a delay."""
        for values in own:
            yield self._event([Submit(_NO_CLIENT, values)], epoch, wall_ms)

    def propose(
        self, epoch: int, wall_ms: int, log_end_offset: int, outcomes: list[Outcome]
    ) -> Iterator[Event]:
        """All submissions, in as few batches as possible. One that fits no batch is refused."""
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
        self._delay.until_ms = None

    def _groups(self, outcomes: list[Outcome]) -> Iterator[list[Submit]]:
        group: list[Submit] = []
        room = self._room
        for item in self._submitted:
            size = size_in_batch(item.values)
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
        """The core gave a batch its offsets, or refused it."""
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
            if committed.token != _NO_CLIENT:
                outcomes.append(committed)
        self._delay.round_ended(proposals, records)

    def lose(self, outcomes: list[Outcome]) -> None:
        """Leadership is lost: what was appended may or may not commit."""
        self._refuse(self._submitted, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, outcomes)
        self._forget_submitted()
        outcomes.extend(
            Refused(item.token, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, in_doubt=True)
            for item in self._uncommitted
            if item.token != _NO_CLIENT
        )
        self._uncommitted.clear()

    @staticmethod
    def _refuse(
        items: Iterable[Submit], error: ErrorCode, message: str, outcomes: list[Outcome]
    ) -> None:
        outcomes.extend(
            Refused(item.token, error, message) for item in items if item.token != _NO_CLIENT
        )


NOT_ACTIVE: Final = "This node is not the active controller."
