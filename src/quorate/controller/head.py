"""The head of the log: the image that the next decision sees, beside the committed one.

The active controller decides on records that are written but not committed yet
(`QuorumController` keeps both in timeline structures). Here both are immutable images, so going
back costs nothing. Standbys keep a head too; it is their committed image.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from quorate.controller.partition_index import PartitionIndex
from quorate.controller.token_secrets import TokenSecrets
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    PartitionRecord,
    UnregisterControllerRecord,
)
from quorate.metadata.bulk import replay_plain_partition
from quorate.metadata.delta import ImageDelta
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Image
from quorate.metadata.interning import Interner
from quorate.metadata.loader import Transaction
from quorate.metadata.topics import ElectionCounts, Touched
from quorate.wire.schema import Message

_MARKERS: Final = frozenset({BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord})
_OFFSET_UNKNOWN: Final = -1


class _State(NamedTuple):
    """An image with the records of the open metadata transaction (KIP-868), if there is one."""

    image: Image
    transaction: Transaction | None = None
    before: Image | None = None
    """The image to go back to when the transaction is aborted."""


class _Outstanding(NamedTuple):
    """Records that were applied to the head and are not committed yet."""

    values: list[bytes]
    state: _State
    """After them."""
    has_markers: bool
    touched: Touched
    """What they changed of the topics."""
    elections: ElectionCounts


class Head:
    """Owns the uncommitted image. The state machine reports what is committed.

    Invariants: `image` holds every record of `committed`; it differs only while `outstanding` is
    not 0 or a transaction is open.
    """

    def __init__(self, interner: Interner | None = None) -> None:
        """interner: the loader's, so that both images share their tuples."""
        self._interner = Interner() if interner is None else interner
        self._committed = Image()
        self._base = _State(self._committed)
        """All that is committed, with the records of an open transaction."""
        self._state = self._base
        self._outstanding: deque[_Outstanding] = deque()
        self.index = PartitionIndex()
        """Of the topics of `image`."""
        self._indexed = self._committed.topics
        self.token_secrets = TokenSecrets()
        """Of the delegation tokens of `image`."""
        self.elections = ElectionCounts()
        """Of the committed records whose image `commit` knew."""
        self._in_transaction: Touched = {}
        """What the committed part of the open transaction changed."""

    @property
    def image(self) -> Image:
        """Everything that was decided, committed or not, open transaction included."""
        return self._state.image

    @property
    def committed(self) -> Image:
        """Everything that is committed, without the records of an open transaction."""
        return self._committed

    @property
    def transaction(self) -> Transaction | None:
        """The open transaction; its offset is -1 when it began here and is not committed."""
        return self._state.transaction

    @property
    def outstanding(self) -> int:
        """How many calls of `apply` are not committed."""
        return len(self._outstanding)

    def apply(self, records: Sequence[Message], values: list[bytes]) -> None:
        """These records are about to be proposed; `values` are their bytes in the log.

        Raises ReplayError when a record does not fit; the head is unchanged then.
        """
        state = self._state
        touched: Touched = {}
        elections = ElectionCounts()
        delta = ImageDelta(state.image, self._interner, touched, elections)
        transaction, before = state.transaction, state.before
        has_markers = transaction is not None
        for record, value in zip(records, values, strict=True):
            if type(record) is PartitionRecord and replay_plain_partition(delta, value):
                continue  # of many new partitions: the bytes are faster to read than the record
            if isinstance(record, UnregisterControllerRecord):
                _check_registered(delta.image, record.controller_id)
            if type(record) not in _MARKERS:
                delta.replay(record)
                continue
            has_markers = True
            if isinstance(record, BeginTransactionRecord):
                if transaction is not None:
                    raise ReplayError("BeginTransactionRecord: another transaction has not ended")
                before = delta.apply()
                transaction = Transaction(record.name, _OFFSET_UNKNOWN)
                delta = ImageDelta(before, self._interner, touched, elections)
                continue
            if transaction is None:
                raise ReplayError(f"{type(record).__name__}: no transaction has begun")
            if isinstance(record, AbortTransactionRecord):
                assert before is not None
                delta = ImageDelta(before, self._interner, touched, elections)
                self._add_uncommitted(touched)
            transaction = before = None
        self._state = _State(delta.apply(), transaction, before)
        tokens = state.image.delegation_tokens, self._state.image.delegation_tokens
        if tokens[0] is not tokens[1]:
            self.token_secrets.follow(*tokens, records)
        self._outstanding.append(_Outstanding(values, self._state, has_markers, touched, elections))
        self._index(touched)

    def commit(self, values: Sequence[bytes]) -> Image | None:
        """A batch with these record values is committed: the image after it, if it is known.

        The image is known when the batch holds exactly the records that `apply` was given next, so
        that nothing is decoded and replayed twice. Equal records on an equal base give an equal
        image, whichever leader wrote them: offsets and epochs need not be compared. None: the
        image is not known, replay the batch.
        """
        outstanding = self._outstanding
        position, state, has_markers = 0, None, False
        elections = ElectionCounts()
        while position < len(values):
            if not outstanding:
                return None
            first = outstanding[0]
            end = position + len(first.values)
            if list(values[position:end]) != first.values:
                # Another leader's records: what was decided here is not in the log at this place.
                self.revert()
                return None
            outstanding.popleft()
            position, state = end, first.state
            has_markers = has_markers or first.has_markers
            elections.add(first.elections)
        if state is None or has_markers:
            return None
        self.elections.add(elections)
        return state.image

    def set_committed(
        self,
        committed: Image,
        pending: Image,
        transaction: Transaction | None,
        touched: Touched | None,
    ) -> None:
        """The committed image changed. `pending` is that with the records of `transaction`.

        touched: what changed of the topics of `pending`; None: all of it, as by a snapshot. Nothing
        that was decided before a snapshot can follow on it.
        """
        if touched is None:
            self._outstanding.clear()
        self._committed = committed
        before = None if transaction is None else committed
        self._base = _State(pending, transaction, before)
        changed = dict(self._in_transaction)
        _merge(changed, touched or {})
        self._in_transaction = {} if transaction is None else changed
        if self._outstanding:
            return
        self._state = self._base
        if touched is None:
            self._indexed = pending.topics
            self.index.rebuild(self._indexed)
        else:
            self._index(changed)

    def revert(self) -> None:
        """Leadership is lost: what is not committed may never be."""
        touched: Touched = {}
        self._add_uncommitted(touched)
        self._outstanding.clear()
        self._state = self._base
        self._index(touched)

    def _add_uncommitted(self, touched: Touched) -> None:
        """Add what the outstanding records and the open transaction changed."""
        for item in self._outstanding:
            _merge(touched, item.touched)
        _merge(touched, self._in_transaction)

    def _index(self, touched: Touched) -> None:
        """Bring the index to the topics of `image`; at least `touched` differs."""
        topics = self._state.image.topics
        if topics is not self._indexed:
            self.index.advance(self._indexed, topics, touched)
            self._indexed = topics


def _merge(into: Touched, more: Touched) -> None:
    for topic_id, indexes in more.items():
        into.setdefault(topic_id, set()).update(indexes)


def _check_registered(image: Image, controller_id: int) -> None:
    """Raise ReplayError unless the controller is registered, as `ClusterControlManager.replay` does.

    Only the writer of the record asks: an image without the registration stays as it is.
    """
    if controller_id not in image.cluster.controllers:
        raise ReplayError(
            f"UnregisterControllerRecord: controller {controller_id} is not registered"
        )
