"""A member on real files and sockets; in memory, `local` does the same."""

from __future__ import annotations

import asyncio
import random
import secrets
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from quorate.embed.first_start import refuse_a_second_founding
from quorate.embed.machine import OpaqueMachine
from quorate.embed.node import EmbeddedNode
from quorate.node.config import NodeConfig, raft_config
from quorate.node.ensemble import Identity
from quorate.node.replica import Replica
from quorate.server import app, sockets
from quorate.server.disk import off_the_loop
from quorate.server.driver import Driver
from quorate.server.meters import Meters
from quorate.storage.api import Storage

if TYPE_CHECKING:
    from quorate.server.web import WebServer


class DurableDriver:
    """The server's driver, with what ends when it does: the page for Prometheus, the storage."""

    def __init__(self, driver: Driver, storage: Storage, pages: WebServer | None) -> None:
        self.start = driver.start
        self.post = driver.post
        self.shutdown = driver.shutdown
        self._driver = driver
        self._storage = storage
        self._pages = pages

    async def close(self) -> bool:
        free = await self._driver.close()
        if self._pages is not None:
            self._pages.close()
        if free:
            await off_the_loop(self._storage.close)
        return free


async def recover(
    config: NodeConfig,
    identity: Identity,
    bound: sockets.Bound,
    storage: Storage,
    machine: OpaqueMachine,
) -> Replica:
    """The replica that the storage holds. Raises QuorateError: damaged, in use, founded again."""
    recovered = await off_the_loop(storage.open)
    raft = raft_config(config, identity.cluster_id, identity.directory_id, bound.advertised)
    await refuse_a_second_founding(raft, recovered)
    return Replica(
        raft,
        recovered,
        machine,
        random.Random(secrets.randbits(64)).random,
        replace(app.snapshot_policy(config), in_proportion=True),
    )


async def serve(
    node: EmbeddedNode,
    config: NodeConfig,
    bound: sockets.Bound,
    page: socket.socket | None,
    storage: Storage,
    ended: Callable[[str | None], None],
) -> DurableDriver:
    """Listen; the driver is not started yet. `ended` is called once, with the fault if any."""
    meters = None if page is None else Meters(node.replica)
    driver = Driver(
        node,
        storage,
        asyncio.get_running_loop(),
        app.limits(config),
        config.queued_max_requests,
        ended,
        meters,
    )
    with ExitStack() as undo:
        undo.callback(driver.acceptor.close)
        pages = None
        if page is not None and meters is not None:
            pages = await app.serve_pages(page, node, driver, meters)
            undo.callback(pages.close)
        for name, sock in bound.sockets.items():
            await driver.acceptor.listen(name, sock)
        undo.pop_all()
    return DurableDriver(driver, storage, pages)
