"""`quorate cluster problems`: which node has which fault, and what to do about it.

Everything is asked of the cluster itself, by requests that Kafka's tools send too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from quorate.base.ids import Address, uuid_to_text
from quorate.cli.tools.cluster_registrations import registrations
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.connection import (
    ClientError,
    ConnectError,
    Connection,
    LoginError,
    SilentNodeError,
    UnsupportedVersionError,
)
from quorate.client.results import QuorumInfo, ReplicaStatus, RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.client.admin.topics import PartitionDescription

PROBE_MS: Final = 2_000
"""How long a node may take to accept a connection, and then to answer."""
_METADATA_VERSION: Final = "metadata.version"


class Problem(NamedTuple):
    """A fault. `runbook` is the heading of its entry in docs/operations.md."""

    node: str
    what: str
    remedy: str
    runbook: str


class Probe(NamedTuple):
    """What became of a connection: an error, or what the node supports."""

    error: ClientError | None
    versions: tuple[int, int] | None = None
    """Of metadata.version, lowest and highest; None for unknown."""

    @property
    def hangs(self) -> bool:
        """The machine accepted the connection, and the process did not answer."""
        return isinstance(self.error, SilentNodeError)


_Probes = Callable[[Address], Probe]


def problems(admin: Admin, silent_after_ms: int) -> list[Problem]:
    """The faults that the cluster shows, those of the quorum first.

    A voter that has not fetched, or not caught up, for `silent_after_ms` has one. Raises ClientError
    when no node answers at all.
    """
    found: list[Problem] = []
    # Each address is tried once: a process that hangs takes two seconds.
    probed = cache(partial(probe, admin))
    try:
        quorum = admin.describe_quorum()
    except (ConnectError, LoginError):
        raise
    except ClientError as error:
        return [*_without_leader(admin, str(error), probed)]
    found += _voters(admin, quorum, silent_after_ms, probed)
    found += _registered(admin, silent_after_ms)
    found += _versions(admin, probed)
    found += _reassignments(admin)
    return found


# -- the quorum ----------------------------------------------------------------------------------
def probe(admin: Admin, address: Address) -> Probe:
    """Connect as the client does, and exchange ApiVersions."""
    config = admin.config
    try:
        with Connection(address, config.client_id, PROBE_MS, config.security) as connection:
            features = connection.features.supported_features
    except ClientError as error:
        return Probe(error)
    ranges = {each.name: (each.min_version, each.max_version) for each in features}
    return Probe(None, ranges.get(_METADATA_VERSION))


def _without_leader(admin: Admin, reason: str, probed: _Probes) -> Iterator[Problem]:
    yield Problem(
        "quorum",
        f"no leader: {reason}",
        "start voters until a majority of them runs and reaches each other",
        "QuorateNoActiveController",
    )
    for address in admin.config.bootstrap:
        error = probed(address).error
        if error is not None:
            yield Problem(
                str(address), str(error), "start it, or correct the address", "Wrong address"
            )


def _voters(
    admin: Admin, quorum: QuorumInfo, silent_after_ms: int, probed: _Probes
) -> Iterator[Problem]:
    now_ms = quorum.leader.last_fetch_ms
    addresses = _addresses(admin, quorum)
    for row in quorum.voters:
        if row.key.id == quorum.leader_id:
            continue
        name = f"controller {row.key.id}"
        address = addresses.get(row.key.id)
        seen = None if address is None else probed(address)
        silent_ms = now_ms - row.last_fetch_ms
        if silent_ms > silent_after_ms:
            since = (
                f"it has not fetched for {silent_ms / 1000:.1f} s"
                if row.last_fetch_ms >= 0
                else "it has never fetched from this leader"
            )
            yield _silent(name, since, row, address, seen, quorum)
            continue
        if seen is not None and seen.error is not None:
            yield Problem(
                name,
                f"nobody answers at its address {address}, but it fetches: {seen.error}",
                "correct listeners or advertised.listeners in its file, or open the port, and "
                "restart it",
                "Wrong address",
            )
        behind_ms = now_ms - row.last_caught_up_ms
        if row.last_caught_up_ms >= 0 and behind_ms > silent_after_ms:
            lag = quorum.leader.log_end_offset - row.log_end_offset
            yield Problem(
                name,
                f"it fetches, but has not caught up for {behind_ms / 1000:.1f} s (lag {lag})",
                "look at its disk: quorate_disk_sync_seconds on its metrics page, and its log",
                "Slow disk",
            )


def _silent(
    name: str,
    since: str,
    row: ReplicaStatus,
    address: Address | None,
    seen: Probe | None,
    quorum: QuorumInfo,
) -> Problem:
    """A voter that does not fetch, by what its address does."""
    remove = (
        f"quorate metadata-quorum remove-controller -i {row.key.id} "
        f"-d {uuid_to_text(row.key.directory_id)}"
    )
    if seen is None:
        return Problem(name, since, "look at its process and its log", "QuorateVotersOffline")
    if seen.error is None:
        return Problem(
            name,
            f"{since}, but answers at {address}: its way to the leader, controller "
            f"{quorum.leader_id}, is cut",
            "check the network from its machine to the leader, and its log",
            "Cut link",
        )
    if seen.hangs:
        return Problem(
            name,
            f"{since}, and its process hangs: {address} accepts connections and answers nothing",
            "kill the process and start it again; then look at its disk",
            "Wedged follower",
        )
    if "certificate" in str(seen.error):
        return Problem(
            name,
            f"{since}: {seen.error}",
            "replace the key store; a node takes a changed one without a restart",
            "Expired certificate",
        )
    return Problem(
        name,
        f"{since}, and is not reachable: {seen.error}",
        f"start it, or correct its address; if it is lost for ever: {remove}",
        "QuorateVotersOffline",
    )


def _addresses(admin: Admin, quorum: QuorumInfo) -> Mapping[int, Address]:
    """Return where the voters listen. None over brokers: their controllers may be in another network."""
    if not admin.config.controllers:
        return {}
    named = {node_id: listeners[0].address for node_id, listeners in quorum.listeners.items()}
    return named or {
        node_id: node.address for node_id, node in admin.describe_cluster().nodes.items()
    }


# -- registrations -------------------------------------------------------------------------------
def _registered(admin: Admin, silent_after_ms: int) -> Iterator[Problem]:
    try:
        rows = registrations(admin, silent_after_ms)
    except UnsupportedVersionError:
        return  # brokers before Kafka 4.0
    for row in rows:
        name = f"{row.kind} {row.id}"
        if row.state == "ghost":
            yield Problem(
                name,
                f"it is registered at {row.host}:{row.port}, and does not fetch from the quorum "
                f"(last seen: {row.last_seen})",
                f"start it; if it is gone for ever: {row.remedy}",
                "Ghost registration",
            )
        elif row.state == "fenced":
            yield Problem(
                name,
                f"it is fenced: it fetches metadata, but its heartbeats at {row.host}:{row.port} do "
                "not count",
                "its log says why its heartbeats fail",
                "Fenced broker",
            )


# -- versions ------------------------------------------------------------------------------------
def _versions(admin: Admin, probed: _Probes) -> Iterator[Problem]:
    """Nodes that lack the finalized metadata.version, or that hold the others' upgrade back."""
    level = admin.describe_features().finalized.get(_METADATA_VERSION)
    nodes = admin.describe_cluster().nodes
    known = {node_id: probed(nodes[node_id].address).versions for node_id in sorted(nodes)}
    ranges = {node_id: versions for node_id, versions in known.items() if versions is not None}
    kind = "controller" if admin.config.controllers else "broker"
    newest = max((high for _, high in ranges.values()), default=0)
    for node_id, (low, high) in ranges.items():
        if level is not None and not low <= level <= high:
            what = f"it supports {_METADATA_VERSION} {low} to {high}; the cluster is at {level}"
            remedy = "run it with a release that has this level"
        elif high < newest:
            what = (
                f"it supports {_METADATA_VERSION} {low} to {high}, and others up to {newest}: an "
                f"upgrade beyond {high} is refused"
            )
            remedy = "finish the rolling upgrade: start it with the release of the others"
        else:
            continue
        yield Problem(f"{kind} {node_id}", what, remedy, "Version mismatch")


# -- reassignments -------------------------------------------------------------------------------
def _reassignments(admin: Admin) -> Iterator[Problem]:
    """Moves that wait for a broker which is not alive."""
    try:
        moves = admin.list_partition_reassignments()
        topics = admin.describe_topics({each.topic for each in moves}) if moves else {}
    except UnsupportedVersionError:
        return  # controllers of Kafka do not describe topics
    waiting: dict[int, list[PartitionName]] = {}
    for name, move in moves.items():
        topic = topics.get(name.topic)
        if topic is None or isinstance(topic, RequestFailedError):
            continue
        for partition in topic.partitions:
            if partition.index == name.partition:
                for broker in _blockers(move, partition):
                    waiting.setdefault(broker, []).append(name)
    for broker, names in sorted(waiting.items()):
        shown = ", ".join(map(str, sorted(names)[:5])) + (", ..." if len(names) > 5 else "")
        yield Problem(
            f"broker {broker}",
            f"it is not alive, and a reassignment waits for it: {shown}",
            "start it, or cancel: quorate reassign-partitions --cancel --reassignment-json-file FILE",
            "Stuck reassignment",
        )


def _blockers(move: Reassignment, partition: PartitionDescription) -> set[int]:
    return {each for each in move.adding if each in partition.offline}


# -- output --------------------------------------------------------------------------------------
def json_rows(found: list[Problem]) -> list[dict[str, Any]]:
    """The problems as `--json` prints them."""
    return [each._asdict() for each in found]


def text_lines(found: list[Problem]) -> Iterator[str]:
    """Three lines for each problem."""
    for each in found:
        yield f"{each.node}: {each.what}"
        yield f"    do: {each.remedy}"
        yield f"    see: docs/operations.md, {each.runbook}"
