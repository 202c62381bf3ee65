"""Bugs in which kraft.version rules: for a vote, behind a truncation, in a snapshot."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

VERSIONS = (
    Mutant(
        "vote-without-directory",
        "quorum-state is written as of kraft.version 0, without the disk that was voted for "
        "(KAFKA-16526)",
        "raft.state",
        "SaveElection(election, self.controls.version, self.voters.ids)",
        "SaveElection(election, 0, self.voters.ids)",
    ),
    Mutant(
        "vote-of-a-later-version",
        "quorum-state is written as of kraft.version 1 before that rules",
        "raft.state",
        "SaveElection(election, self.controls.version, self.voters.ids)",
        "SaveElection(election, 1, self.voters.ids)",
    ),
    Mutant(
        "version-kept-on-truncation",
        "an upgrade that was cut off with its voter set still rules",
        "raft.history",
        "        voters = self._voters.truncate(end_offset)\n"
        "        versions = self._versions.truncate(end_offset)\n"
        "        if voters or versions:\n",
        "        voters = self._voters.truncate(end_offset)\n"
        "        versions = voters or self._versions.truncate(end_offset)\n"
        "        if voters or versions:\n",
    ),
    Mutant(
        "snapshot-of-a-later-version",
        "a snapshot that ends where the upgrade begins has the new kraft.version",
        "raft.history",
        "self._versions.at(end_offset - 1) or 0",
        "self._versions.at(end_offset) or 0",
    ),
)
