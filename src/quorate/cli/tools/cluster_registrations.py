"""`quorate cluster registrations`: who is registered, and who of them is gone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.base.ids import Address, ReplicaKey, uuid_to_text
from quorate.cli.tools.cluster_probe import bootstrap_words, probe
from quorate.cli.tools.known_replicas import replicas_in, sees_every_topic
from quorate.client.results import (
    ClusterDescription,
    NodeDescription,
    QuorumInfo,
    ReplicaStatus,
    RequestFailedError,
)
from quorate.formats.versions import MetadataVersion

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.metadata.image import Image

SILENT_AFTER_MS: Final = 10_000
"""A node without a Fetch for this time is silent; Kafka's fetch timeout is 2000 ms."""
GONE_AFTER_MS: Final = 600_000
"""A node without a Fetch for this time is gone: a pause or a restart is shorter."""
TOO_OLD: Final = (
    "At this metadata.version no request removes the registration of a controller (KIP-1312 needs "
    "4.4-IV2). Where the upgrade is refused because of a ghost, start a new controller with its id first: "
    "docs/recovery.md, 'A registration of a controller that is gone'."
)


class RegisteredNode(NamedTuple):
    """A registered node. `state` is one of STATES; `remedy` is the command that removes a ghost."""

    id: int
    kind: str
    host: str
    port: int
    state: str
    last_fetch_ms: int
    """Of the leader's clock, ms since 1970; -1 for unknown."""
    remedy: str | None
    silent_ms: int
    """How long before the leader's present that was; -1 for unknown."""
    may_be_ghost: bool = False
    """It is gone, but may hold replicas of topics that the requester does not see."""

    @property
    def last_seen(self) -> str:
        return "never" if self.silent_ms < 0 else f"{self.silent_ms / 1000:.1f} s ago"


HIDDEN_TOPICS: Final = (
    "A silent broker may hold replicas of topics that this user may not describe, so none is called a "
    "ghost. --bootstrap-controller with ClusterAction on Cluster reports them."
)


STATES: Final = {
    "active": "a broker that serves clients",
    "fenced": "a broker that fetches, but does not serve clients yet",
    "voter": "a controller that votes",
    "observer": "a controller that fetches, but does not vote",
    "silent": "a node that does not fetch, and may come back: start it",
    "ghost": "a registration of a node that is gone",
}


@dataclass(frozen=True, slots=True)
class _View:
    """What the states are decided by."""

    admin: Admin
    quorum: QuorumInfo
    silent_after_ms: int
    words: str
    """The options of a printed command that reach this cluster."""

    def is_live(self, row: ReplicaStatus | None) -> bool:
        return row is not None and is_live(self.quorum, row, self.silent_after_ms)

    def is_gone(
        self, row: ReplicaStatus | None, address: Address, *, restart_ms: int = GONE_AFTER_MS
    ) -> bool:
        """Whether a silent node will hardly come back. A restart may take `restart_ms`.

        A paused process still accepts connections, so the address is tried: also where a new leader has
        not seen the Fetch of the node at all.
        """
        _, silent_ms = _seen(self.quorum, row)
        if silent_ms >= GONE_AFTER_MS:
            return True
        if 0 <= silent_ms < restart_ms:
            return False
        return not probe(self.admin, address).is_alive


def registrations(
    admin: Admin,
    silent_after_ms: int = SILENT_AFTER_MS,
    *,
    read: Callable[[], Image | None] = lambda: None,
    command_config: str | None = None,
) -> list[RegisteredNode]:
    """The brokers or the controllers, as the bootstrap list is, in order of ids.

    A node without a Fetch for `silent_after_ms` is silent. `read` returns what controllers know of
    brokers, which are then listed first; it is called once a leader has answered. `command_config`: the
    file that the printed commands shall name.

    Raises UnsupportedVersionError for brokers before Kafka 4.0, which do not list fenced brokers.
    """
    direct = admin.config.controllers
    cluster = admin.describe_cluster(include_fenced_brokers=not direct)
    view = _View(
        admin, admin.describe_quorum(), silent_after_ms, bootstrap_words(admin, command_config)
    )
    if not direct:
        return sorted(_brokers(cluster.nodes, view, None))
    level = admin.describe_features().finalized.get("metadata.version")
    old = level is not None and level < MetadataVersion.IBP_4_4_IV2
    first = f"quorate features {view.words} upgrade --release-version 4.4 && " if old else ""
    image = read()
    found = sorted(_controllers(cluster, view, first))
    if image is None:
        return found
    holders = {broker for replicas in replicas_in(image).values() for broker in replicas}
    return [*sorted(_brokers(_nodes_of(image), view, holders)), *found]


def _nodes_of(image: Image) -> dict[int, NodeDescription]:
    """The brokers at the address of their first listener."""
    nodes = {}
    for broker_id, broker in image.cluster.brokers.items():
        ends = [Address(end.host, end.port) for end in broker.listeners]
        address = ends[0] if ends else Address("", 0)
        nodes[broker_id] = NodeDescription(address, broker.rack, broker.fenced)
    return nodes


def _brokers(
    nodes: Mapping[int, NodeDescription], view: _View, holders: Collection[int] | None
) -> list[RegisteredNode]:
    """List the brokers. `holders`: those that have replicas; None: ask for them when they matter.

    A broker that has replicas is no ghost: its records may exist nowhere else. Where topics may be hidden
    from the requester, none is one.
    """
    is_complete = True if holders is not None else None
    fetched = {row.key.id: row for row in view.quorum.observers}
    rows = []
    for node_id, node in nodes.items():
        last = fetched.get(node_id)
        state, remedy, may_be_ghost = "active", None, False
        if node.is_fenced:
            state = "fenced"
            if not view.is_live(last):
                state = "silent"
                if holders is None:
                    holders = _holders(view.admin)
                if node_id not in holders and view.is_gone(last, node.address):
                    if is_complete is None:
                        is_complete = sees_every_topic(view.admin)
                    if is_complete:
                        state = "ghost"
                        remedy = f"quorate cluster unregister {view.words} --id {node_id}"
                    may_be_ghost = not is_complete
        seen = _seen(view.quorum, last)
        rows.append(
            RegisteredNode(
                node_id, "broker", *node.address, state, seen[0], remedy, seen[1], may_be_ghost
            )
        )
    return rows


def _holders(admin: Admin) -> set[int]:
    """The brokers that have replicas of a topic that the requester may see."""
    return {
        replica
        for topic in admin.describe_topics().values()
        if not isinstance(topic, RequestFailedError)
        for partition in topic.partitions
        for replica in partition.replicas
    }


def _controllers(cluster: ClusterDescription, view: _View, first: str) -> list[RegisteredNode]:
    """List the controllers. `first`: the command that must precede the removal of a ghost; empty for none."""
    voters = {row.key.id: row for row in view.quorum.voters}
    observers = {row.key.id: row for row in view.quorum.observers}
    rows = []
    for node_id, node in cluster.nodes.items():
        last = voters.get(node_id) or observers.get(node_id)
        state, remedy = "voter" if node_id in voters else "observer", None
        if not view.is_live(last):
            state = "silent"
            if node_id in voters:
                if view.is_gone(last, node.address):
                    remedy = removal(voters[node_id].key, view.words)
            elif view.is_gone(last, node.address, restart_ms=0):
                # It has no vote and no records of its own, and registers again when it starts.
                state = "ghost"
                remedy = f"{first}quorate cluster unregister-controller {view.words} --id {node_id}"
        seen = _seen(view.quorum, last)
        rows.append(
            RegisteredNode(node_id, "controller", *node.address, state, seen[0], remedy, seen[1])
        )
    return rows


def needs_upgrade(rows: list[RegisteredNode]) -> bool:
    """Whether a ghost can be removed only after an upgrade of metadata.version."""
    return any((row.remedy or "").startswith("quorate features ") for row in rows)


def _seen(quorum: QuorumInfo, row: ReplicaStatus | None) -> tuple[int, int]:
    """The time of the last Fetch, and how long ago that is, in ms; -1 for unknown."""
    if row is None or row.last_fetch_ms < 0:
        return -1, -1
    return row.last_fetch_ms, max(quorum.leader.last_fetch_ms - row.last_fetch_ms, 0)


def removal(key: ReplicaKey, words: str) -> str:
    """The command that removes a voter; `words`: the options that reach the cluster."""
    directory = uuid_to_text(key.directory_id)
    return f"quorate metadata-quorum {words} remove-controller -i {key.id} -d {directory}"


def is_live(quorum: QuorumInfo, row: ReplicaStatus, silent_after_ms: int) -> bool:
    """Whether the replica is the leader, or fetched from it a short while ago."""
    if row.key.id == quorum.leader_id:
        return True
    return quorum.leader.last_fetch_ms - row.last_fetch_ms <= silent_after_ms


def json_rows(rows: list[RegisteredNode]) -> list[dict[str, Any]]:
    """The rows as `--json` prints them."""
    return [
        {
            "id": row.id,
            "kind": row.kind,
            "host": row.host,
            "port": row.port,
            "state": row.state,
            "lastFetchTimestamp": row.last_fetch_ms,
            "remedy": row.remedy,
        }
        for row in rows
    ]


def text_rows(rows: list[RegisteredNode]) -> list[list[Any]]:
    """Cells for a table: id, kind, address, state, last Fetch, remedy."""
    return [
        [r.id, r.kind, f"{r.host}:{r.port}", r.state, r.last_seen, r.remedy or ""] for r in rows
    ]
