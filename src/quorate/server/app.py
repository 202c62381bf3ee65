"""One node as a process: from Kafka's properties file to an exit code."""

from __future__ import annotations

import asyncio
import gc
import random
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listeners, Uuid, uuid_to_text
from quorate.formats.errors import FormatError
from quorate.formats.files import BOOTSTRAP_CHECKPOINT
from quorate.formats.snapshot import read_snapshot
from quorate.formats.versions import FeatureError
from quorate.node.config import NodeConfig, raft_config
from quorate.node.controller import Controller
from quorate.node.cross_checks import OVERRIDES
from quorate.node.ensemble import Identity, load_identity
from quorate.node.metadata_machine import (
    Bootstrap,
    MetadataMachine,
    Registrant,
    metadata_version_in,
)
from quorate.node.replica import Replica
from quorate.node.servable import check_servable
from quorate.node.snapshots import SnapshotPolicy
from quorate.server.descriptors import in_force, most_connections, raise_limit
from quorate.server.driver import Driver, present
from quorate.server.limits import Limits
from quorate.server.logs import LOG, level_of
from quorate.server.meters import Meters
from quorate.server.sockets import Bound, backlog, bind, bind_metrics
from quorate.storage.api import Recovered, Storage
from quorate.storage.disk import read_regular
from quorate.storage.files import FileStorage
from quorate.storage.log import LogOptions

if TYPE_CHECKING:
    from quorate.server.metric_table import Observed
    from quorate.server.web import WebServer

SHUTDOWN_TIMEOUT_MS: Final = 5_000
FAULT_EXIT_CODE: Final = 1
_TURN_S: Final = 0.0002
"""How long the loop waits at most for the interpreter while a snapshot is written beside it; 25
times as long by default, several times for each message."""


class NodeFault(QuorateError):
    """The node could not start, or stopped itself; the message says why."""


def run(config: NodeConfig) -> None:
    """Run a node until SIGTERM or SIGINT.

    Raises NodeFault whatever the reason: Kafka's server ends with 1 for all of them.
    """
    try:
        _run(config)
    except NodeFault:
        raise
    except QuorateError as error:
        raise NodeFault(str(error)) from error


def _run(config: NodeConfig) -> None:
    check_servable(config)
    raise_limit()
    sys.setswitchinterval(_TURN_S)
    identity = load_identity(config)
    for warning in config.warnings:
        LOG.warning("%s", warning)
    for note in identity.notes:
        LOG.log(level_of(note), "%s", note)
    bound = bind(config)
    try:
        metrics = bind_metrics(config)
        try:
            _run_on_loop(_serve(config, identity, bound, metrics))
        finally:
            if metrics is not None:
                metrics.close()
    finally:
        bound.close()


def open_storage(config: NodeConfig) -> Storage:
    """The metadata log directory; nothing is read before its `open`."""
    options = LogOptions(
        segment_bytes=config.segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        needs_vote=True,
    )
    return FileStorage(Path(config.metadata_log_dir), options)


def build(
    config: NodeConfig, identity: Identity, advertised: Listeners, recovered: Recovered
) -> Controller:
    """The node itself, with a new incarnation id. Raises FormatError for a bad bootstrap file."""
    registrant = Registrant(
        config.node_id,
        Uuid(secrets.token_bytes(16)),
        advertised,
        config.unstable_feature_versions_enable,
    )
    machine = MetadataMachine(
        registrant,
        read_bootstrap(config, recovered.log.end_offset == 0),
        config.metadata_max_idle_interval_ms,
        config.min_insync_replicas,
    )
    replica = Replica(
        raft_config(config, identity.cluster_id, identity.directory_id, advertised),
        recovered,
        machine,
        random.random,
        snapshot_policy(config),
    )
    return Controller(replica, machine, registrant)


def snapshot_policy(config: NodeConfig) -> SnapshotPolicy:
    return SnapshotPolicy(
        config.metadata_log_max_record_bytes_between_snapshots,
        config.metadata_log_max_snapshot_interval_ms,
        config.metadata_max_retention_bytes,
        config.metadata_max_retention_ms,
    )


def read_bootstrap(config: NodeConfig, is_new: bool) -> Bootstrap:
    """`bootstrap.checkpoint` of the metadata log directory, if there is one.

    is_new: the log is empty and may begin with it: then it must be of a version that we know.
    """
    path = Path(config.metadata_log_dir, BOOTSTRAP_CHECKPOINT)
    try:
        data = read_regular(str(path))
    except FileNotFoundError:
        return Bootstrap()
    try:
        bootstrap = Bootstrap(read_snapshot(data).values)
        records = bootstrap.records()
        if is_new:
            metadata_version_in(records)
    except (FormatError, FeatureError) as error:
        raise FormatError(f"{path}: {error}. Restore the file, or format anew") from None
    return bootstrap


def limits(config: NodeConfig) -> Limits:
    return Limits(
        max_request_bytes=config.socket_request_max_bytes,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_by_ip=_by_ip(config.max_connections_by_host),
        max_idle_ms=config.connections_max_idle_ms,
        backlog=backlog(config),
        fitting_connections=most_connections(in_force()),
        max_incoming_bytes=_max_incoming_bytes(config),
    )


def _by_ip(by_host: Mapping[str, int]) -> dict[str, int]:
    """The bounds of hosts for all their addresses, in the order of the hosts."""
    return {ip: most for host, most in by_host.items() for ip in _addresses(host)}


def _addresses(host: str) -> tuple[str, ...]:
    if not host:  # for Java the loopback address; more likely a slip
        raise QuorateError(
            f"{OVERRIDES} has a bound without a host: put one in front of its colon, localhost "
            "for this machine"
        )
    try:
        return tuple(str(found[4][0]) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "this can be no name of a host"
        raise QuorateError(f"{OVERRIDES} names the host {host}: {why}") from None


def _max_incoming_bytes(config: NodeConfig) -> int:
    """`queued.max.request.bytes`; where that is no limit, ours, and a whole request at least."""
    if config.queued_max_request_bytes > 0:
        return config.queued_max_request_bytes
    return max(Limits().max_incoming_bytes, config.socket_request_max_bytes)


def _run_on_loop(main: Coroutine[Any, Any, None]) -> None:
    """asyncio.run on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop]
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


async def _serve(
    config: NodeConfig, identity: Identity, bound: Bound, metrics: socket.socket | None
) -> None:
    loop = asyncio.get_running_loop()
    storage = open_storage(config)
    try:
        recovered = storage.open()
        for note in recovered.notes:
            LOG.log(level_of(note), "%s", note)
        controller = build(config, identity, bound.advertised, recovered)
        ended: asyncio.Future[str | None] = loop.create_future()

        def end(fault: str | None) -> None:
            if not ended.done():
                ended.set_result(fault)

        meters = None if metrics is None else Meters(controller.replica)
        most = config.queued_max_requests
        driver = Driver(controller, storage, loop, limits(config), most, end, meters)
        _handle_signals(loop, driver)
        pages = None
        if metrics is not None and meters is not None:
            pages = await serve_pages(metrics, controller, driver, meters)
        for name, sock in bound.sockets.items():
            await driver.acceptor.listen(name, sock)
        _say_hello(config, identity, bound)
        gc.collect()
        gc.freeze()
        driver.start()
        fault = await ended
        await driver.close()
        if pages is not None:
            pages.close()
        if fault is not None:
            raise NodeFault(f"Node {config.node_id} stopped: {fault}")
        LOG.info("The log is closed")
    finally:
        storage.close()


async def serve_pages(
    sock: socket.socket, controller: Observed, driver: Driver, meters: Meters
) -> WebServer:
    """`/metrics`, `/healthz` and `/readyz`."""
    # Only those who want them pay for the client of Prometheus.
    from quorate.server.health import Health
    from quorate.server.metrics import MetricsPage, NodeCollector
    from quorate.server.web import WebServer

    health = Health(driver, controller.replica, meters)
    collector = NodeCollector(controller, meters, present, driver.acceptor)
    server = WebServer(
        asyncio.get_running_loop(),
        {
            "/metrics": MetricsPage(collector),
            "/healthz": lambda headers: health.health_page(),
            "/readyz": lambda headers: health.ready_page(),
        },
    )
    await server.listen(sock)
    host, port = sock.getsockname()[:2]
    LOG.info("Metrics on %s, paths /metrics, /healthz and /readyz", Address(host, port))
    return server


def _handle_signals(loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
    def leave(name: str) -> None:
        LOG.info("Received %s, leaving the quorum in good order", name)
        driver.shutdown(SHUTDOWN_TIMEOUT_MS)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number.name)
    loop.add_signal_handler(signal.SIGHUP, LOG.info, "Received SIGHUP: nothing to do")


def _say_hello(config: NodeConfig, identity: Identity, bound: Bound) -> None:
    LOG.info(
        "Cluster %s, directory %s (%s), listening on %s",
        identity.cluster_id,
        uuid_to_text(identity.directory_id),
        config.metadata_log_dir,
        ", ".join(f"{name}://{Address(host, port)}" for name, host, port in bound.advertised),
    )
