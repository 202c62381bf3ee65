"""`quorate cluster registrations`: who is registered, and who of them is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.base.ids import ReplicaKey, uuid_to_text
from quorate.client.results import ClusterDescription, QuorumInfo, ReplicaStatus
from quorate.formats.versions import MetadataVersion

if TYPE_CHECKING:
    from quorate.client import Admin

SILENT_AFTER_MS: Final = 10_000
"""A node without a Fetch for this time counts as gone; Kafka's fetch timeout is 2000 ms."""
TOO_OLD: Final = (
    "At this metadata.version no request removes the registration of a controller (KIP-1312 needs "
    "4.4-IV2). Where the upgrade is refused because of a ghost, start a new controller with its id first: "
    "docs/recovery.md, 'A registration of a controller that is gone'."
)
_UPGRADE: Final = "quorate features upgrade --release-version 4.4 && "


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

    @property
    def last_seen(self) -> str:
        return "never" if self.silent_ms < 0 else f"{self.silent_ms / 1000:.1f} s ago"


STATES: Final = {
    "active": "a broker that serves clients",
    "fenced": "a broker that fetches, but does not serve clients yet",
    "voter": "a controller that votes",
    "observer": "a controller that fetches, but does not vote",
    "silent": "a voter that does not fetch: start it, or remove it from the voters",
    "ghost": "a registration of a node that is gone",
}


def registrations(admin: Admin, silent_after_ms: int = SILENT_AFTER_MS) -> list[RegisteredNode]:
    """The brokers or the controllers, as the bootstrap list is, in order of ids.

    A node without a Fetch for `silent_after_ms` counts as gone.

    Raises UnsupportedVersionError for brokers before Kafka 4.0, which do not list fenced brokers.
    """
    direct = admin.config.controllers
    cluster = admin.describe_cluster(include_fenced_brokers=not direct)
    quorum = admin.describe_quorum()
    if not direct:
        return sorted(_brokers(cluster, quorum, silent_after_ms))
    level = admin.describe_features().finalized.get("metadata.version")
    old = level is not None and level < MetadataVersion.IBP_4_4_IV2
    return sorted(_controllers(cluster, quorum, _UPGRADE if old else "", silent_after_ms))


def _brokers(
    cluster: ClusterDescription, quorum: QuorumInfo, silent_after_ms: int
) -> list[RegisteredNode]:
    fetched = {row.key.id: row for row in quorum.observers}
    rows = []
    for node_id, node in cluster.nodes.items():
        last = fetched.get(node_id)
        state, remedy = "active", None
        if node.is_fenced:
            state = "fenced"
            if last is None or not is_live(quorum, last, silent_after_ms):
                state = "ghost"
                remedy = f"quorate cluster unregister --id {node_id}"
        seen = _seen(quorum, last)
        rows.append(
            RegisteredNode(node_id, "broker", *node.address, state, seen[0], remedy, seen[1])
        )
    return rows


def needs_upgrade(rows: list[RegisteredNode]) -> bool:
    """Whether a ghost can be removed only after an upgrade of metadata.version."""
    return any((row.remedy or "").startswith(_UPGRADE) for row in rows)


def _controllers(
    cluster: ClusterDescription, quorum: QuorumInfo, first: str, silent_after_ms: int
) -> list[RegisteredNode]:
    """List the controllers. `first`: the command that must precede the removal of a ghost; empty for none."""
    voters = {row.key.id: row for row in quorum.voters}
    observers = {row.key.id: row for row in quorum.observers}
    rows = []
    for node_id, node in cluster.nodes.items():
        last = voters.get(node_id) or observers.get(node_id)
        live = last is not None and is_live(quorum, last, silent_after_ms)
        state, remedy = "voter" if node_id in voters else "observer", None
        if node_id in voters and not live:
            state, remedy = "silent", _removal(voters[node_id].key)
        elif not live:
            state = "ghost"
            remedy = f"{first}quorate cluster unregister-controller --id {node_id}"
        seen = _seen(quorum, last)
        rows.append(
            RegisteredNode(node_id, "controller", *node.address, state, seen[0], remedy, seen[1])
        )
    return rows


def _seen(quorum: QuorumInfo, row: ReplicaStatus | None) -> tuple[int, int]:
    """The time of the last Fetch, and how long ago that is, in ms; -1 for unknown."""
    if row is None or row.last_fetch_ms < 0:
        return -1, -1
    return row.last_fetch_ms, max(quorum.leader.last_fetch_ms - row.last_fetch_ms, 0)


def _removal(key: ReplicaKey) -> str:
    directory = uuid_to_text(key.directory_id)
    return f"quorate metadata-quorum remove-controller -i {key.id} -d {directory}"


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
