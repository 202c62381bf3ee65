"""Run a member on files and sockets. `local` does the same in memory."""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.config.node_config import NodeConfig
from quorate.config.raft_config import raft_config
from quorate.embed.first_start import checked_first_start
from quorate.embed.machine import OpaqueMachine
from quorate.embed.node import EmbeddedNode
from quorate.embed.security import MemberSecurity
from quorate.log_dirs.meta_properties import NodeIdentity
from quorate.replica.replica import Replica
from quorate.server import app, settings, sockets
from quorate.server.disk import run_in_thread
from quorate.server.driver import Driver
from quorate.server.log_verification import verify_log
from quorate.server.meters import Meters
from quorate.server.own_endpoints import OwnEndpoints
from quorate.storage.api import Storage

if TYPE_CHECKING:
    from quorate.server.web import WebServer


class DurableDriver:
    """The server's driver; closing it also closes the metrics page and the storage."""

    def __init__(
        self, driver: Driver, storage: Storage, pages: WebServer | None, release: Callable[[], None]
    ) -> None:
        """release: ends what secures connections."""
        self.start = driver.start
        self.post = driver.post
        self.shutdown = driver.shutdown
        self._driver = driver
        self._storage = storage
        self._pages = pages
        self._release = release

    async def close(self) -> bool:
        """Close the driver, and the storage unless the disk hangs; returns what `Driver.close` does."""
        free = await self._driver.close()
        self._release()
        if self._pages is not None:
            self._pages.close()
        if free:
            await run_in_thread(self._storage.close)
        return free


async def recover(
    config: NodeConfig,
    identity: NodeIdentity,
    bound: sockets.BoundSockets,
    storage: Storage,
    machine: OpaqueMachine,
    security: MemberSecurity,
) -> Replica:
    """Recover the replica from its storage.

    Raises QuorateError when the storage is damaged or in use, or the member was founded before.
    """
    recovered = await run_in_thread(storage.open)
    raft = raft_config(config, identity.cluster_id, identity.directory_id, bound.advertised)
    recovered = await checked_first_start(raft, recovered, OwnEndpoints(bound), security.peers)
    return Replica(
        raft,
        recovered,
        machine,
        random.Random(secrets.randbits(64)).random,  # noqa: S311 - jitter
        replace(settings.snapshot_policy(config), in_proportion=True),
    )


async def serve(
    node: EmbeddedNode,
    config: NodeConfig,
    bound: sockets.BoundSockets,
    page: socket.socket | None,
    storage: Storage,
    ended: Callable[[str | None], None],
    security: MemberSecurity,
) -> DurableDriver:
    """Open the listeners; the caller starts the driver.

    `ended` is called once, with None or the fault.
    """
    meters = None if page is None else Meters(node.replica)
    driver = Driver(
        node,
        storage,
        asyncio.get_running_loop(),
        settings.limits(config),
        config.queued_max_requests,
        ended,
        meters,
    )
    driver.peer_security = security.peers
    node.allowed = security.allowed
    logins = security.logins(node)

    def release() -> None:
        security.tls.close()
        logins.close()

    with ExitStack() as undo:
        undo.callback(driver.acceptor.close)
        verify_log(driver, node.replica, storage, config)
        undo.callback(release)
        pages = None
        if page is not None and meters is not None:
            pages = await app.serve_pages(page, node, driver, meters, security.tls)
            undo.callback(pages.close)
        for name, sock in bound.sockets.items():
            await driver.acceptor.listen(name, sock, logins.secured(name, security.tls.of(name)))
        security.tls.watch(asyncio.get_running_loop())
        undo.pop_all()
    return DurableDriver(driver, storage, pages, release)
