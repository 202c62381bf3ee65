"""Who the replicas say that they are: each node and each voter is one directory.

Copies of one directory from different days are no contradiction, and may be audited together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from quorate.base.ids import ZERO_UUID, uuid_to_text
from quorate.formats.files import QuorumState
from quorate.spark.audit.commit import Voters
from quorate.spark.audit.model import VIOLATION, WARNING, Finding, Replica, Spot

_TWINS: Final = (
    "Where both run, two nodes vote as one: stop the one whose node.id is wrong (it may have been "
    "copied with a server.properties). If the node was given an empty directory in between, audit "
    "only the later copy"
)
_OBSERVER: Final = (
    "The node is no voter as long as that is so, and the others are fewer than they seem: put the "
    "directory of the voter back, or replace the voter ('remove-controller', 'add-controller'; "
    "docs/recovery.md)"
)
_TWO_VOTES: Final = (
    "Two nodes run as one, or a vote was forgotten: two leaders of this epoch may have been "
    "elected. Copy everything away before anything is started, and start only one of the two"
)


def judge_identities(
    replicas: Sequence[Replica], voters: Voters, states: Mapping[str, QuorumState]
) -> list[tuple[str, Finding]]:
    """(path, finding) for nodes and voters of whom there is more than one, or another.

    voters: those in force, empty where that is not known; states: quorum-state by paths.
    """
    by_node: dict[int, list[Replica]] = defaultdict(list)
    for one in replicas:
        if one.node_id >= 0:
            by_node[one.node_id].append(one)
    found = [told for same in by_node.values() for told in _twins(same)]
    found += [told for same in by_node.values() for told in _two_votes(same, states)]
    for one in replicas:
        wrong = _other_directory(one, voters)
        if wrong is not None:
            found.append((one.path, wrong))
    return found


def _directory(replica: Replica) -> str | None:
    """Its id as text; None when it is not known."""
    known = replica.directory_id
    return None if known is None or known == ZERO_UUID else uuid_to_text(known)


def _twins(same: Iterable[Replica]) -> list[tuple[str, Finding]]:
    """Of replicas that say that they are one node."""
    known = {one.path: (one, _directory(one)) for one in same if _directory(one)}
    found = []
    for path, (one, directory) in known.items():
        others = [
            f"{where} (directory id {its})" for where, (_, its) in known.items() if its != directory
        ]
        if others:
            what = (
                f"this replica, of directory id {directory}, says that it is node {one.node_id}, "
                f"and so does {', '.join(others)}"
            )
            found.append((path, Finding("node-id", WARNING, what, _TWINS)))
    return found


def _two_votes(
    same: Iterable[Replica], states: Mapping[str, QuorumState]
) -> list[tuple[str, Finding]]:
    """A node votes for one candidate an epoch, and keeps that."""
    known = [(one, states[one.path].election) for one in same if one.path in states]
    found = []
    for (one, his), (other, theirs) in combinations(known, 2):
        if his.epoch != theirs.epoch or his.voted is None or theirs.voted is None:
            continue
        if his.voted.id == theirs.voted.id:
            continue
        for who, vote, where in ((one, his.voted, other), (other, theirs.voted, one)):
            what = (
                f"node {who.node_id} voted for {vote.id} in epoch {his.epoch}, and by the "
                f"quorum-state of {where.path} for another"
            )
            spot = Spot(who.quorum_state.name if who.quorum_state else None, epoch=his.epoch)
            found.append((who.path, Finding("one-vote", VIOLATION, what, _TWO_VOTES, spot)))
    return found


def _other_directory(replica: Replica, voters: Voters) -> Finding | None:
    """Of a node whom the voter set has with another directory id."""
    known = {voter.directory_id for voter in voters if voter.id == replica.node_id}
    directory, texts = _directory(replica), sorted(map(uuid_to_text, known))
    if directory is None or not known or ZERO_UUID in known or directory in texts:
        return None
    what = (
        f"the directory id is {directory}, but the voters in force have node {replica.node_id} "
        f"with {', '.join(texts)}"
    )
    return Finding("directory-id", WARNING, what, _OBSERVER)
