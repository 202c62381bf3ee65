"""Follows the metadata of a running quorum: the snapshot and the committed log of its leader.

This is the observer that KIP-631 describes for the shell. It fetches as a consumer, so the quorum does
not count it (`quorate.client.log_fetcher`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import ClassVar, Final

from quorate.base.garbage import without_collections
from quorate.base.ids import OffsetAndEpoch
from quorate.base.sentences import sentence
from quorate.client.leader import Controllers, LeaderDivergedError, LeaderUnreachableError
from quorate.client.log_fetcher import Fetched, LogFetcher
from quorate.formats.batch import iter_batches
from quorate.formats.files import snapshot_name
from quorate.metadata.loader import Loader, log_batch
from quorate.shell.image_tree import MetadataView
from quorate.shell.loading import EMPTY, LoadError, errors_of, snapshot_view, with_controls

_POLL_S: Final = 0.05


class NoControllerError(LeaderUnreachableError):
    """No leader answered; the text says what to check."""

    def __str__(self) -> str:
        return (
            f"{super().__str__()} (are these addresses of controllers, and do the controllers run?)"
        )


class ShellLogFetcher(LogFetcher):
    """Reads the log for the shell, whose errors name what to check."""

    unreachable: ClassVar[type[LeaderUnreachableError]] = NoControllerError


class QuorumFollower:
    """The view of a running quorum; `catch_up` brings it up to date. The caller closes it."""

    def __init__(
        self, controllers: Controllers, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._controllers = controllers
        self._fetcher = ShellLogFetcher(controllers, monotonic=monotonic)
        self._now = monotonic
        self._loader = Loader()
        self._control = EMPTY.control
        self._last_epoch = 0
        """Of the record before `_loader.next_offset`."""
        self.leader_id = -1
        """The leader that answered last; -1 before the first response."""

    def close(self) -> None:
        """Close the connection; `catch_up` opens it again."""
        self._fetcher.close()

    @property
    def view(self) -> MetadataView:
        """What was read so far: committed records only."""
        return MetadataView(self._loader.published, self._control)

    @property
    def position(self) -> str:
        """What `view` shows, for people."""
        shown = self._loader.published.provenance
        return (
            f"Cluster {self._fetcher.cluster_id}, leader {self.leader_id}: "
            f"offset {shown.offset} (inclusive), epoch {shown.epoch}"
        )

    @without_collections()
    def catch_up(self) -> MetadataView:
        """Read up to the high watermark, as the leader names it in its first response with one.

        1. Ask the leader for the log after the last record that was read.
        2. Where it names a snapshot, the log does not go back that far: the snapshot replaces all.
        3. Apply the batches below the high watermark; a later one could still be removed.

        A new leader has no high watermark before it commits a record of its own epoch: ask again.
        Raises LeaderUnreachableError, ForeignQuorumError, LeaderDivergedError, LoginError, LoadError.
        """
        deadline = self._now() + self._controllers.timeout_ms / 1000
        target: int | None = None
        while target is None or self._loader.next_offset < target:
            before = self._loader.next_offset
            got = self._fetcher.fetch(before, self._last_epoch)
            self.leader_id = got.leader_id
            if got.diverging is not None:
                raise self._diverged(f"its epoch {got.diverging.epoch} ends before that record")
            if target is None and got.high_watermark >= 0:
                target = got.high_watermark
            if got.snapshot is not None:
                self._install(got.snapshot)
            else:
                self._apply(got)
            if self._loader.next_offset > before:
                deadline = self._now() + self._controllers.timeout_ms / 1000
            elif target is None or before < target:
                self._wait(deadline, target)
        return self.view

    def _wait(self, deadline: float, target: int | None) -> None:
        if self._now() >= deadline:
            raise LeaderUnreachableError(
                f"controllers {self._controllers}: no progress from offset "
                f"{self._loader.next_offset} within {self._controllers.timeout_ms} ms",
                f"leader {self.leader_id} has not committed a record of its epoch: a majority of "
                "the voters must run"
                if target is None
                else f"leader {self.leader_id} does not return the records up to {target - 1}",
            )
        time.sleep(_POLL_S)

    def _install(self, snapshot_id: OffsetAndEpoch) -> None:
        if snapshot_id.offset < self._loader.next_offset:
            raise self._diverged(f"its snapshot ends at offset {snapshot_id.offset} (exclusive)")
        with TemporaryFile(prefix="quorate-snapshot-") as file:
            if self._fetcher.copy_snapshot(snapshot_id, file) is None:
                return  # the leader deleted it meanwhile, and names a newer one next time
            file.flush()
            view = snapshot_view(snapshot_id, file.fileno(), snapshot_name(snapshot_id))
        self._loader.install(view.published)
        self._control = view.control
        self._last_epoch = snapshot_id.epoch

    def _apply(self, got: Fetched) -> None:
        source = f"the log of leader {got.leader_id}"
        with errors_of(source):
            for batch in iter_batches(got.records):
                if batch.last_offset < self._loader.next_offset:
                    continue
                if batch.end_offset > got.high_watermark:
                    return
                if batch.base_offset != self._loader.next_offset:
                    raise LoadError(
                        f"{source} goes on at offset {batch.base_offset}, but "
                        f"{self._loader.next_offset} is the next one: start again"
                    )
                self._control = with_controls(self._control, batch)
                self._loader.feed(log_batch(batch))
                self._last_epoch = batch.epoch

    def _diverged(self, why: str) -> LeaderDivergedError:
        return LeaderDivergedError(
            f"controllers {self._controllers}: the record at offset {self._loader.next_offset - 1} "
            f"(epoch {self._last_epoch}) was committed and read, but leader {self.leader_id} does not "
            f"have it: {sentence(why)} {self._fetcher.another_log}"
        )
