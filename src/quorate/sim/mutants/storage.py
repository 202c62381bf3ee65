"""Bugs in files, snapshots, the state machine's feeding, and in what clients are told."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

STORAGE = (
    Mutant(
        "log-not-synced",
        "sync returns without having synced",
        "storage.log",
        "        if self._dirty:\n            self._segments[-1].file.sync()\n",
        "        if self._dirty:\n",
    ),
    Mutant(
        "written-before-sync",
        "the disk's owner reports a write as durable before it has synced",
        "node.disk",
        "        if self._dirty:\n            self._sync_storage()\n",
        "        if False:\n",
    ),
    Mutant(
        "quorum-state-not-synced",
        "a replaced file is renamed before its bytes are synced",
        "storage.disk",
        "        file.write_at(0, data)\n        file.sync()\n    finally:",
        "        file.write_at(0, data)\n    finally:",
    ),
    Mutant(
        "rename-not-synced",
        "a replaced file's new name is not made durable",
        "storage.disk",
        "    disk.rename(temporary, name)\n    disk.sync()\n",
        "    disk.rename(temporary, name)\n",
    ),
    Mutant(
        "segment-without-a-name",
        "a new segment's name is not made durable before it is written",
        "storage.log",
        "    file.truncate(0)\n    disk.sync()\n",
        "    file.truncate(0)\n",
    ),
    Mutant(
        "truncation-not-synced",
        "a truncation of the log is not made durable",
        "storage.log",
        "        segment.file.truncate(segment.size)\n        segment.file.sync()\n",
        "        segment.file.truncate(segment.size)\n",
    ),
    Mutant(
        "truncates-forwards",
        "a truncation removes the first of its segments first: a power cut leaves a hole",
        "storage.log",
        "        remove_segments(self._disk, reversed(dropped))\n",
        "        remove_segments(self._disk, dropped)\n",
    ),
    Mutant(
        "segment-not-synced-when-it-is-full",
        "the log goes on in a new segment before the old one is synced",
        "storage.log",
        "        self.sync()\n        self._segments[-1].write_indexes",
        "        self._segments[-1].write_indexes",
    ),
    Mutant(
        "log-dropped-before-the-snapshot-is-there",
        "installing a snapshot drops the log before the snapshot has its name",
        "storage.disk_storage",
        "            self._snapshots.publish_download(snapshot_id)\n"
        "            self._log.reset(snapshot_id.offset)\n",
        "            self._log.reset(snapshot_id.offset)\n"
        "            self._snapshots.publish_download(snapshot_id)\n",
    ),
    Mutant(
        "sound-log-cut",
        "damage in the middle of the log is cut off like a torn tail",
        "storage.recovery",
        "        if beyond is None:\n            found.torn_bytes",
        "        if True:\n            found.torn_bytes",
    ),
    Mutant(
        "checksums-not-verified",
        "recovery believes every batch that has a header",
        "formats.batch",
        "    def verify(self) -> None:\n",
        "    def verify(self) -> None:\n        return\n\n    def verify_really(self) -> None:\n",
    ),
    Mutant(
        "snapshot-installed-unseen",
        "a downloaded snapshot is published before its bytes are synced",
        "storage.snapshots",
        "        download.file.sync()\n        download.file.close()\n",
        "        download.file.close()\n",
    ),
    Mutant(
        "snapshot-voters-ignored",
        "the voter set of an installed snapshot does not come into force",
        "raft.following",
        "    s.controls.reset(event.snapshot_id, event.control)\n",
        "",
    ),
    Mutant(
        "applies-the-uncommitted",
        "the state machine is fed up to the end of the log",
        "node.replica",
        "return self._applier.advance(self._high_watermark, self._tail, token, jobs)",
        "return self._applier.advance(self._tail.end_offset, self._tail, token, jobs)",
    ),
    Mutant(
        "answered-when-appended",
        "a client is told that its write is committed when it is in the leader's log",
        "node.replica",
        "self._proposals.release(self._applier.applied.offset, effects.outcomes)",
        "self._proposals.release(self._tail.end_offset, effects.outcomes)",
    ),
    Mutant(
        "snapshot-half-loaded",
        "the last record of each batch of a snapshot is not loaded",
        "node.applier",
        "                self._machine.load(found)\n",
        "                self._machine.load(found[:-1])\n",
    ),
    Mutant(
        "applies-twice",
        "a batch is applied again when the machine has caught up to its end",
        "node.applier",
        "            if view.end_offset > self.applied.offset:\n",
        "            if view.end_offset % 7 == 0:\n                self._apply(view)\n"
        "            if view.end_offset > self.applied.offset:\n",
    ),
    Mutant(
        "loss-called-refusal",
        "what was appended by a leader that lost its place is reported as never appended",
        "node.proposals",
        "            Refused(item.token, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, in_doubt=True)\n",
        "            Committed(item.token, item.base_offset, item.end_offset)\n",
    ),
    Mutant(
        "tail-kept-on-truncation",
        "batches that were cut are still served from memory",
        "node.replica",
        "            self._tail.truncate(write.end_offset)\n",
        "            pass\n",
    ),
    Mutant(
        "tail-trimmed-askew",
        "the tail in memory takes batches for others once it was trimmed",
        "node.tail",
        "        del self._batches[:count], self._bases[:count]\n",
        "        del self._batches[:count], self._bases[: count - 1]\n",
    ),
    Mutant(
        "old-slice-after-a-snapshot",
        "what was read of the log before a snapshot came is applied after it",
        "node.applier",
        '        self._rest = self._data = b""\n        self._reading = 0\n\n    def is_at',
        '        self._rest = b""\n        self._reading = 0\n\n    def is_at',
    ),
    Mutant(
        "late-read-of-another-snapshot",
        "what was read of a snapshot is taken for a part of the newer one that took its place",
        "node.applier",
        '        self._rest = self._data = b""\n        self._reading = 0\n',
        '        self._rest = self._data = b""\n',
    ),
    Mutant(
        "leads-before-it-has-applied",
        "the state machine leads before it has applied what was committed before",
        "node.replica",
        "if self._elected is not None and self._applier.applied.offset > self._elected[1]:",
        "if self._elected is not None:",
    ),
    Mutant(
        "disk-failure-ignored",
        "a failed write or sync is answered as if it were done",
        "node.disk",
        "            results.append(DiskFailed(str(error)))\n",
        "            results.extend([] if self._unsynced is None else [Written(self._unsynced)])\n",
    ),
)
