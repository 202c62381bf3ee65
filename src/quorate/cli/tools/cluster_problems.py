"""`quorate cluster problems`: which node has which fault, and what to do about it.

Everything is asked of the cluster itself, by requests that Kafka's tools send too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.cli.tools.cluster_partitions import (
    Problem,
    partition_problems,
    partitions_described,
    partitions_of,
)
from quorate.cli.tools.cluster_probe import Probe, bootstrap_words, probe
from quorate.cli.tools.cluster_registrations import registrations, removal
from quorate.client import NoActiveControllerError, NoReachableNodeError, NotLoadedError
from quorate.client.admin.absent_nodes import ADVICE
from quorate.client.admin.deadlines import time_limit
from quorate.client.admin.reassignments import PartitionName, Reassignment
from quorate.client.errors import (
    ClientError,
    ConnectError,
    LoginError,
    SilentNodeError,
    UnsupportedVersionError,
)
from quorate.client.results import QuorumInfo, ReplicaStatus, RequestFailedError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.client.admin.topics import PartitionDescription
    from quorate.metadata.image import Image

LEADER_WAIT_MS: Final = 5_000
"""How long to wait for a leader: an election takes two to three seconds after a failure."""
_METADATA_VERSION: Final = "metadata.version"
_NO_LEADER: Final = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_REFUSED: Final = frozenset(
    {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
_Probes = Callable[[Address], Probe]


def problems(
    admin: Admin, silent_after_ms: int, command_config: str | None = None
) -> list[Problem]:
    """The faults that the cluster shows, those of the quorum first.

    A voter that has not fetched, or not caught up, for `silent_after_ms` has one. What this user may not
    ask is a problem of the client. `command_config`: the file that printed commands shall name.

    Raises ClientError when no node answers, or where this client does not fit the listener.
    """
    # Each address is tried once: a process that hangs takes two seconds.
    probed = cache(partial(probe, admin))
    words = bootstrap_words(admin, command_config)
    quorum = _quorum(admin, probed)
    if not isinstance(quorum, QuorumInfo):
        return quorum
    found: list[Problem] = []
    image = None
    if admin.config.controllers:
        try:
            image = read_image(admin)
        except ImageUnreadableError as error:
            found.append(_unread(error))
    checks: tuple[tuple[str, Callable[[], Iterator[Problem]]], ...] = (
        ("voters", lambda: _voters(admin, quorum, silent_after_ms, probed, words)),
        (
            "registrations",
            lambda: _registered(admin, quorum, silent_after_ms, image, command_config),
        ),
        ("partitions", lambda: _partitions(admin, image)),
        ("versions", lambda: _versions(admin, probed)),
        ("reassignments", lambda: _reassignments(admin)),
    )
    for name, look in checks:
        try:
            found += look()
        except RequestFailedError as error:
            if error.code not in _REFUSED:
                raise
            found.append(_refused(name, error.reason, "Describe and Alter"))
    return list(dict.fromkeys(found))


def _quorum(admin: Admin, probed: _Probes) -> QuorumInfo | list[Problem]:
    """The quorum as its leader sees it, or why it is not known. Raises ClientError as `problems`."""
    try:
        with time_limit(LEADER_WAIT_MS):
            return admin.describe_quorum()
    except NoActiveControllerError as error:
        return [*_without_leader(error.nodes, without_advice(str(error)), probed)]
    except NoReachableNodeError as error:
        if not any(isinstance(each, SilentNodeError) for each in error.causes):
            raise
        return [_nobody_answers(error), *_unanswered(admin.config.bootstrap, probed)]
    except (ConnectError, LoginError):
        raise
    except ClientError as error:
        if isinstance(error, RequestFailedError) and error.code in _REFUSED:
            # The requests after this one need the same permission.
            return [_refused("the quorum", error.reason, "Describe and Alter")]
        if not _means_no_leader(error):
            raise
        return [*_without_leader(admin.config.bootstrap, str(error), probed)]


def without_advice(reason: str) -> str:
    """The reason without the advice to use this tool."""
    return reason.replace(ADVICE, "")


def _means_no_leader(error: ClientError) -> bool:
    """Whether the cluster says that it has no leader, or nodes hang that could make one."""
    if isinstance(error, RequestFailedError):
        return error.code in _NO_LEADER
    return isinstance(error, NotLoadedError | SilentNodeError)


def _refused(what: str, reason: str, operations: str) -> Problem:
    return Problem(
        "this client",
        f"it may not see {what}, which is not checked: {reason}",
        f"let the user {operations} on Cluster (quorate acls), or name another user's file with "
        "--command-config",
        "QuorateAuthorizationDenied",
    )


def _unread(error: ImageUnreadableError) -> Problem:
    """Without the metadata log, controllers name no brokers."""
    if error.is_refused:
        return _refused("the metadata log", str(error), "ClusterAction")
    return Problem(
        "this client",
        f"the metadata log cannot be read, so brokers are not checked: {error}",
        "check that the leader answers, and ask again; with --bootstrap-server ask brokers",
        "QuorateNoActiveController",
    )


# -- the quorum ----------------------------------------------------------------------------------
def _without_leader(
    addresses: Iterable[Address], reason: str, probed: _Probes
) -> Iterator[Problem]:
    yield Problem(
        "quorum",
        f"no leader: {reason}",
        "start voters until a majority of them runs and reaches each other",
        "QuorateNoActiveController",
    )
    yield from _unanswered(addresses, probed)


def _nobody_answers(error: NoReachableNodeError) -> Problem:
    return Problem(
        "this client",
        f"no node answers, so the quorum is not checked: {error}",
        "start one of these nodes, or name others, and ask again",
        "QuorateNoActiveController",
    )


def _unanswered(addresses: Iterable[Address], probed: _Probes) -> Iterator[Problem]:
    """Name the addresses at which nobody answers."""
    for address in addresses:
        seen = probed(address)
        if seen.hangs:
            yield Problem(
                str(address),
                "its process hangs: it accepts connections and answers nothing",
                "kill the process and start it again; then look at its disk",
                "Wedged follower",
            )
        elif seen.error is not None:
            yield Problem(
                str(address), str(seen.error), "start it, or correct the address", "Wrong address"
            )


def _voters(
    admin: Admin, quorum: QuorumInfo, silent_after_ms: int, probed: _Probes, words: str
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
            yield _silent(name, since, row, address, seen, quorum, words)
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
    words: str,
) -> Problem:
    """A voter that does not fetch, by what its address does."""
    remove = removal(row.key, words)
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
def _registered(
    admin: Admin,
    quorum: QuorumInfo,
    silent_after_ms: int,
    image: Image | None,
    command_config: str | None,
) -> Iterator[Problem]:
    try:
        rows = registrations(
            admin, silent_after_ms, read=lambda: image, command_config=command_config
        )
    except UnsupportedVersionError:
        return  # brokers before Kafka 4.0
    voters = {row.key.id for row in quorum.voters}
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
        elif row.state == "silent" and (row.kind == "broker" or row.id not in voters):
            fenced = "is fenced, and " if row.kind == "broker" else ""
            yield Problem(
                name,
                f"it {fenced}does not fetch from the quorum (last seen: {row.last_seen}); it is "
                f"registered at {row.host}:{row.port}",
                "start it, or wake its process; a broker that is lost for ever may be unregistered once "
                "its replicas are reassigned",
                "QuorateFencedBrokers" if row.kind == "broker" else "Ghost registration",
            )
        elif row.state == "fenced":
            yield Problem(
                name,
                f"it is fenced: it fetches metadata, but its heartbeats at {row.host}:{row.port} do "
                "not count",
                "its log says why its heartbeats fail",
                "Fenced broker",
            )


def _partitions(admin: Admin, image: Image | None) -> Iterator[Problem]:
    """Partitions that nobody leads, or that do not take writes with acks=all."""
    try:
        yield from partition_problems(
            admin, partitions_described(admin) if image is None else partitions_of(image)
        )
    except UnsupportedVersionError:
        return  # a controller of Kafka that does not let this user read its log: `_unread` says so


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
