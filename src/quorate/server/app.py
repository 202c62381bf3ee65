"""Run one controller as a process: from a node's configuration to an exit code."""

from __future__ import annotations

import asyncio
import gc
import random
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listeners, Uuid, uuid_to_text
from quorate.config.listeners import PROTOCOLS
from quorate.config.monitoring_settings import METRICS_LISTENER
from quorate.config.node_config import SUPER_USERS, NodeConfig
from quorate.config.raft_config import raft_config
from quorate.config.unsupported import check_servable
from quorate.log_dirs.meta_properties import NodeIdentity, load_identity
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import BROKER_RESOURCE
from quorate.node.controller_node import ControllerNode
from quorate.node.feature_guard import FeatureGuard, check_log
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.registration import Registrant
from quorate.replica.replica import Replica
from quorate.security.authorizer import DecisionLog
from quorate.server.audit_log import AuditLog
from quorate.server.authentication import ListenerSecurity
from quorate.server.authorizer_log import AuthorizerLog
from quorate.server.bootstrap import read_bootstrap
from quorate.server.certificates import security_detail
from quorate.server.credentials import Credentials
from quorate.server.descriptors import raise_limit
from quorate.server.driver import Driver, fault_of, present
from quorate.server.dynamic_limits import DynamicLimits
from quorate.server.local_security import NOTHING, LocalSecurity, read_local
from quorate.server.log_verification import verify_log
from quorate.server.logs import LOG, PythonLoggers, level_of
from quorate.server.meters import Meters
from quorate.server.node_security import NodeSecurity
from quorate.server.sasl import SaslListeners, check_sasl, peer_login
from quorate.server.settings import (
    addresses_of,
    controller_config,
    limits,
    snapshot_policy,
)
from quorate.server.sockets import BoundSockets, ListenError, bind, bind_metrics
from quorate.storage.api import Recovered, Storage
from quorate.storage.disk_storage import FileStorage
from quorate.storage.log import LogOptions

if TYPE_CHECKING:
    from quorate.server.metric_definition import ObservedNode
    from quorate.server.web import WebServer

SHUTDOWN_TIMEOUT_MS: Final = 5_000
FAULT_EXIT_CODE: Final = 1
_SWITCH_INTERVAL_S: Final = 0.0002
"""How long the loop waits at most for the interpreter lock while a thread writes a snapshot.

Python's default is 5 ms, and one message may wait for it several times.
"""
_LATE_S: Final = 0.05
"""How often a node looks whether it may open the listeners that wait for the authorizer."""


class NodeFaultError(QuorateError):
    """The node cannot start, or stopped itself. The message gives the reason."""


def run(config: NodeConfig) -> None:
    """Run a node until SIGTERM or SIGINT.

    Raises NodeFaultError for every failure: Kafka's server exits with 1 for all of them.
    """
    try:
        _run(config)
    except NodeFaultError:
        raise
    except QuorateError as error:
        raise NodeFaultError(str(error)) from error


def _run(config: NodeConfig) -> None:
    # 1. Refuse what Quorate does not support, before anything is opened.
    check_servable(config)
    controller_config(config, "")  # loads the policies
    check_sasl(config)
    security = NodeSecurity(config)
    raise_limit()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # 2. Verify that the directories belong to this node.
    identity = load_identity(config)
    for warning in config.warnings:
        LOG.warning("%s", warning)
    for note in identity.notes:
        LOG.log(level_of(note), "%s", note)
    # 3. Bind the sockets before reading the log, which may take long: a taken port fails at once.
    bound = bind(config)
    try:
        metrics = bind_metrics(config)
        try:
            _run_on_loop(_serve(config, identity, bound, metrics, security))
        finally:
            if metrics is not None:
                metrics.close()
    finally:
        bound.close()


def open_storage(config: NodeConfig) -> Storage:
    """The storage of the metadata log directory. It reads nothing before its `open`."""
    options = LogOptions(
        segment_bytes=config.segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        needs_vote=True,
        node_id=config.node_id,
        static_voter_ids=tuple(voter.key.id for voter in config.static_voters),
    )
    return FileStorage(Path(config.metadata_log_dir), options)


def build(
    config: NodeConfig,
    identity: NodeIdentity,
    advertised: Listeners,
    recovered: Recovered,
    storage: Storage,
    local: LocalSecurity = NOTHING,
) -> ControllerNode:
    """Build the controller, with a new incarnation id. `storage` is open. local: what it has.

    Raises UnsupportedLevelError for a feature level that this release does not support, and
    FormatError for damaged bootstrap records.
    """
    guard = FeatureGuard(config.unstable_feature_versions_enable)
    has_levels = check_log(storage, recovered.log, guard.unstable)
    registrant = Registrant(
        config.node_id,
        Uuid(secrets.token_bytes(16)),
        advertised,
        config.unstable_feature_versions_enable,
        {name: PROTOCOLS.index(each) for name, each in config.security_protocols.items()},
    )
    machine = MetadataMachine(guard, owns_process=True)
    replica = Replica(
        raft_config(config, identity.cluster_id, identity.directory_id, advertised),
        recovered,
        machine,
        random.random,
        snapshot_policy(config),
        admit=guard.check_batch,
    )
    node = ControllerNode(
        replica,
        machine,
        registrant,
        random.SystemRandom(),
        read_bootstrap(Path(config.metadata_log_dir), not has_levels, guard.unstable),
        controller_config(config, identity.cluster_id),
        PythonLoggers(),
    )
    node.local_acls, node.disk_end = local.acls, storage.end_offset
    node.client_quotas.clock = time.perf_counter_ns
    return node


def open_audit(config: NodeConfig) -> AuditLog | None:
    """The audit trail, if `quorate.audit.dir` is set. Raises AuditError."""
    if not config.audit_dir:
        return None
    return AuditLog(
        Path(config.audit_dir),
        config.quorate_audit_max_bytes,
        config.quorate_audit_max_files,
        config.quorate_audit_entries,
    )


def open_authorizer_log(config: NodeConfig, controller: ControllerNode) -> AuthorizerLog | None:
    """The log of the node's authorizer, if there are both. Raises AuthorizerLogError."""
    if config.authorizer_log is None or not config.authorizer:
        return None
    decisions = DecisionLog(with_allowed=config.authorizer_log.with_allowed)
    log = AuthorizerLog(config.authorizer_log, decisions, config.node_id)
    controller.counts.decisions = decisions
    return log


def _run_on_loop(main: Coroutine[Any, Any, None]) -> None:
    """asyncio.run, on uvloop where it is installed."""
    factory: Callable[[], asyncio.AbstractEventLoop]
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


async def _serve(
    config: NodeConfig,
    identity: NodeIdentity,
    bound: BoundSockets,
    metrics: socket.socket | None,
    security: NodeSecurity,
) -> None:
    loop = asyncio.get_running_loop()
    storage = open_storage(config)
    try:
        recovered = storage.open()
        for note in recovered.notes:
            LOG.log(level_of(note), "%s", note)
        local = local_security(config, storage, recovered)
        controller = build(config, identity, bound.advertised, recovered, storage, local)
        ended: asyncio.Future[str | None] = loop.create_future()

        def end(fault: str | None) -> None:
            if not ended.done():
                ended.set_result(fault)

        meters = None if metrics is None else Meters(controller.replica)
        most = config.queued_max_requests
        audit = open_audit(config)
        of_file = limits(config)
        driver = Driver(controller, storage, loop, of_file, most, end, meters)
        driver.audit = audit
        verify_log(driver, controller.replica, storage, config)
        decisions = open_authorizer_log(config, controller)
        driver.authorizer_log = decisions
        driver.acceptor.admission = lambda listener, host: controller.client_quotas.admit(
            controller.image, listener, host, present().monotonic_ms
        )
        dynamic = DynamicLimits(of_file, controller.configs, addresses_of)
        driver.acceptor.count_limits = lambda: dynamic.of(controller.image)
        driver.peer_security = replace(security.peers, login=peer_login(config))
        logins = sasl_listeners(config, controller, local)
        _handle_signals(loop, driver)
        pages = None
        if metrics is not None and meters is not None:
            pages = await serve_pages(metrics, controller, driver, meters, security)
        ready = [
            (name, sock, logins.secured(name, security.of(name)))
            for name, sock in bound.sockets.items()
        ]
        late = [one for one in ready if one[0] in config.late_listeners]
        await _listen(driver, [one for one in ready if one not in late])
        _log_start(config, identity, bound)
        # What exists now lives as long as the process: keep the collector from scanning it again.
        gc.collect()
        gc.freeze()
        own = ConfigResource(BROKER_RESOURCE, str(config.node_id))
        security.watch(loop, lambda: controller.image.configs.get(own, {}))
        driver.start()
        opening = asyncio.ensure_future(_listen_late(driver, controller, late))
        # As in Kafka, a listener that fails to open ends the node (`ControllerServer.startup`).
        opening.add_done_callback(lambda task: _end_if_failed(task, config.node_id, end))
        fault = await ended
        opening.cancel()
        security.close()
        await driver.close()
        logins.close()
        if pages is not None:
            pages.close()
        if audit is not None:
            audit.close()
        if decisions is not None:
            decisions.close()
        if fault is not None:
            raise NodeFaultError(f"Node {config.node_id} stopped: {fault}")
        LOG.info("The log is closed")
    finally:
        storage.close()


_Listeners = Sequence[tuple[str, socket.socket, ListenerSecurity]]


async def _listen(driver: Driver, listeners: _Listeners) -> None:
    """Open them. Raises ListenError."""
    for name, sock, security in listeners:
        try:
            await driver.acceptor.listen(name, sock, security)
        except OSError as error:
            raise ListenError(f"Cannot open the listener {name}: {error}") from error


async def _listen_late(driver: Driver, controller: ControllerNode, listeners: _Listeners) -> None:
    """Open them when the authorizer knows its entries."""
    while listeners and not controller.knows_entries:
        await asyncio.sleep(_LATE_S)
    await _listen(driver, listeners)


def _end_if_failed(
    task: asyncio.Future[None], node_id: int, end: Callable[[str | None], None]
) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        end(fault_of(error, node_id))


def local_security(config: NodeConfig, storage: Storage, recovered: Recovered) -> LocalSecurity:
    """What counts before anything is known to be committed, if the node needs it. Raises QuorateError."""
    mechanisms = (name for each in config.sasl.listeners.values() for name in each.mechanisms)
    if not config.authorizer and not any(name.startswith("SCRAM") for name in mechanisms):
        return NOTHING
    snapshots = recovered.log.snapshots
    local = read_local(
        storage,
        snapshots[-1] if snapshots and snapshots[-1].offset else None,
        read_bootstrap(Path(config.metadata_log_dir), is_new=False).records(),
    )
    if config.authorizer and not config.super_users and local.acls is None:
        LOG.warning(
            "The log is empty and %s names nobody: until this node knows access control entries, "
            "no other controller may vote or fetch here",
            SUPER_USERS,
        )
    return local


def sasl_listeners(
    config: NodeConfig, controller: ControllerNode, local: LocalSecurity
) -> SaslListeners:
    """Who may log in at the node's listeners. Raises QuorateError."""

    def now() -> tuple[int, int]:
        at = present()
        return at.monotonic_ms, at.wall_ms

    return SaslListeners(
        config,
        controller,
        Credentials(controller, local.scram, config.delegation_token_secret_key or None),
        now,
    )


async def serve_pages(
    sock: socket.socket,
    controller: ObservedNode,
    driver: Driver,
    meters: Meters,
    security: NodeSecurity,
) -> WebServer:
    """Serve `/metrics`, `/healthz`, `/readyz`, and `/audit` where there is a trail, on a bound socket."""
    # Imported here: the Prometheus client costs time and 7 MB, and most nodes have no metrics page.
    from quorate.server.audit_page import AuditPage
    from quorate.server.health import Health
    from quorate.server.metrics import MetricsPage, NodeCollector
    from quorate.server.web import Route, WebServer

    acceptor = driver.acceptor

    def detail() -> Mapping[str, object]:
        return security_detail(acceptor.failed_authentications, security.certificates())

    health = Health(driver, controller.replica, meters, detail)
    collector = NodeCollector(controller, meters, present, acceptor, security.certificates)
    routes: dict[str, Route] = {
        "/metrics": MetricsPage(collector),
        "/healthz": lambda _: health.health_page(),
        "/readyz": lambda _: health.ready_page(),
    }
    if driver.audit is not None:
        routes["/audit"] = AuditPage(driver.audit)
    server = WebServer(asyncio.get_running_loop(), routes, security=security.pages)
    if security.pages.is_secured:
        failures = acceptor.failed_authentications
        failures[METRICS_LISTENER] = 0
        server.on_refused = lambda: failures.update((METRICS_LISTENER,))
    await server.listen(sock)
    host, port = sock.getsockname()[:2]
    LOG.info("Metrics on %s, paths %s", Address(host, port), ", ".join(routes))
    return server


def _handle_signals(loop: asyncio.AbstractEventLoop, driver: Driver) -> None:
    def leave(name: str) -> None:
        LOG.info("Received %s, shutting down", name)
        driver.shutdown(SHUTDOWN_TIMEOUT_MS)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number.name)
    loop.add_signal_handler(signal.SIGHUP, LOG.info, "Received SIGHUP: nothing to do")


def _log_start(config: NodeConfig, identity: NodeIdentity, bound: BoundSockets) -> None:
    LOG.info(
        "Cluster %s, directory %s (%s), listening on %s",
        identity.cluster_id,
        uuid_to_text(identity.directory_id),
        config.metadata_log_dir,
        bound.description(),
    )
