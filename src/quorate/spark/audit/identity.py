"""Cluster ids, node ids and directory ids: each cluster has an id of its own, each node and each
voter is one directory.

Copies of one directory from different days do not contradict each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from quorate.base.ids import ZERO_UUID, uuid_to_text
from quorate.formats.files import QuorumState
from quorate.spark.audit.committed import Voters
from quorate.spark.audit.model import VIOLATION, WARNING, Finding, ReplicaFiles, Spot
from quorate.spark.files.histories import split_name
from quorate.spark.files.naming import ClusterName

_DUPLICATE_NODE: Final = (
    "If both run, two nodes vote as one: stop the one whose node.id is wrong (perhaps it was copied "
    "with a server.properties). If the node got an empty directory in between, audit only the later "
    "copy"
)
_OBSERVER: Final = (
    "Until this is resolved the node is no voter, and the quorum is smaller than it seems: restore "
    "the directory of the voter, or replace the voter ('remove-controller', 'add-controller'; "
    "docs/recovery.md)"
)
_TWO_VOTES: Final = (
    "Two nodes run as one, or a node lost its vote: this epoch may have two leaders. Copy everything "
    "away before anything is started, and start only one of the two"
)
_SHARED_ID: Final = (
    "Kafka checks nothing but the cluster id: a node that reaches a controller of the other cluster "
    "joins that one, truncates its log to the other log, and loses its records. Keep their networks "
    "apart, or format one of the clusters anew with an id of its own ('storage random-uuid')"
)


def check_cluster_id(replicas: Iterable[ReplicaFiles]) -> list[Finding]:
    """A finding for a cluster whose id other clusters have, and for logs that may be of these."""
    clusters = {one.cluster for one in replicas if one.cluster is not None}
    return [
        Finding("cluster-id", WARNING, one.why_undecided or _shared_id(one), _SHARED_ID)
        for one in clusters
    ]


def _shared_id(cluster: ClusterName) -> str:
    count = 1 + len(cluster.others)
    return (
        f"{'two' if count == 2 else count} clusters with one id: {split_name(cluster.name)[0]} is also "
        f"the id of {', '.join(cluster.others)}, of which no record is in this log"
    )


def check_identities(
    replicas: Sequence[ReplicaFiles], voters: Voters, states: Mapping[str, QuorumState]
) -> list[tuple[str, Finding]]:
    """(path, finding) for nodes that exist twice, and voters with another directory.

    voters: those in force, empty where unknown; states: quorum-state by path.
    """
    by_node: dict[int, list[ReplicaFiles]] = defaultdict(list)
    for one in replicas:
        if one.node_id >= 0:
            by_node[one.node_id].append(one)
    found = [one for same in by_node.values() for one in _duplicate_nodes(same)]
    found += [one for same in by_node.values() for one in _two_votes(same, states)]
    for one in replicas:
        wrong = _other_directory(one, voters)
        if wrong is not None:
            found.append((one.path, wrong))
    return found


def _directory(replica: ReplicaFiles) -> str | None:
    """The directory id as text; None when it is unknown."""
    known = replica.directory_id
    return None if known is None or known == ZERO_UUID else uuid_to_text(known)


def _duplicate_nodes(same: Iterable[ReplicaFiles]) -> list[tuple[str, Finding]]:
    """Findings for replicas with one node id and several directory ids."""
    known = {one.path: (one, _directory(one)) for one in same if _directory(one)}
    found = []
    for path, (one, directory) in known.items():
        others = [
            f"{where} (directory id {its})" for where, (_, its) in known.items() if its != directory
        ]
        if others:
            what = (
                f"this replica, of directory id {directory}, has node id {one.node_id}, "
                f"and so has {', '.join(others)}"
            )
            found.append((path, Finding("node-id", WARNING, what, _DUPLICATE_NODE)))
    return found


def _two_votes(
    same: Iterable[ReplicaFiles], states: Mapping[str, QuorumState]
) -> list[tuple[str, Finding]]:
    """Findings for a node that voted for two candidates in one epoch, which Raft forbids."""
    known = [(one, states[one.path].election) for one in same if one.path in states]
    found = []
    for (one, ours), (other, theirs) in combinations(known, 2):
        if ours.epoch != theirs.epoch or ours.voted is None or theirs.voted is None:
            continue
        if ours.voted.id == theirs.voted.id:
            continue
        for who, vote, where in ((one, ours.voted, other), (other, theirs.voted, one)):
            what = (
                f"node {who.node_id} voted for {vote.id} in epoch {ours.epoch}, and according to the "
                f"quorum-state of {where.path} for another candidate"
            )
            spot = Spot(who.quorum_state.name if who.quorum_state else None, epoch=ours.epoch)
            found.append((who.path, Finding("one-vote", VIOLATION, what, _TWO_VOTES, spot)))
    return found


def _other_directory(replica: ReplicaFiles, voters: Voters) -> Finding | None:
    """A finding for a node that the voter set has with another directory id."""
    known = {voter.directory_id for voter in voters if voter.id == replica.node_id}
    directory, texts = _directory(replica), sorted(map(uuid_to_text, known))
    if directory is None or not known or ZERO_UUID in known or directory in texts:
        return None
    what = (
        f"the directory id is {directory}, but the voters in force have node {replica.node_id} "
        f"with {', '.join(texts)}"
    )
    return Finding("directory-id", WARNING, what, _OBSERVER)
