"""Limits on the number of connections that dynamic broker configs change while a node runs.

Kafka's controllers take `max.connections`, `max.connections.per.ip` and
`max.connections.per.ip.overrides` from the metadata log.

Source: `SocketServer.reconfigure`, `DynamicBrokerConfig.addReconfigurables(ControllerServer)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from quorate.base.errors import QuorateError
from quorate.config.validation import OVERRIDES, connections_by_host
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.node_configs import number_in
from quorate.metadata.image import Image
from quorate.server.limits import ConnectionLimits
from quorate.server.logs import LOG

ALL: Final = "max.connections"
PER_IP: Final = "max.connections.per.ip"

Addresses = Callable[[Mapping[str, int]], dict[str, int]]
"""The limits of hosts by their IP addresses. Raises QuorateError for an unknown host."""


class DynamicLimits:
    """The connection limits of a node's file, changed by the dynamic configs of the image.

    A value that is not valid leaves the file's in force. The names of hosts are resolved on another
    thread: until then the overrides of before are in force.
    """

    def __init__(
        self, limits: ConnectionLimits, configs: ConfigsInForce, addresses: Addresses
    ) -> None:
        self._file = self._now = limits
        self._configs = configs
        self._addresses = addresses
        self._seen: object = None
        self._overrides = self._of_file = configs.file.get(OVERRIDES, "")
        self._resolving: asyncio.Future[dict[str, int]] | None = None

    def of(self, image: Image) -> ConnectionLimits:
        """The limits in force. It costs one comparison while no config changes."""
        if image.configs is not self._seen:
            self._seen = image.configs
            self._change(image)
        return self._now

    def _change(self, image: Image) -> None:
        texts = self._configs.node_configs(image)
        self._now = replace(
            self._now,
            max_connections=number_in(texts, ALL, ALL, self._file.max_connections),
            max_connections_per_ip=number_in(
                texts, PER_IP, PER_IP, self._file.max_connections_per_ip
            ),
        )
        overrides = texts.get(OVERRIDES, "")
        if overrides != self._overrides:
            self._overrides = overrides
            self._override(overrides)

    def _override(self, text: str) -> None:
        if self._resolving is not None:
            self._resolving.cancel()
            self._resolving = None
        if text == self._of_file:
            self._set_by_ip(self._file.max_connections_by_ip)
            return
        try:
            by_host = connections_by_host(text)
        except ValueError as error:
            LOG.warning("The dynamic config %s stays without effect: %s", OVERRIDES, error)
            return
        loop = asyncio.get_running_loop()
        self._resolving = loop.run_in_executor(None, self._addresses, by_host)
        self._resolving.add_done_callback(self._resolved)

    def _resolved(self, found: asyncio.Future[dict[str, int]]) -> None:
        if found.cancelled() or found is not self._resolving:
            return
        self._resolving = None
        try:
            self._set_by_ip(found.result())
        except QuorateError as error:
            LOG.warning("The dynamic config %s stays without effect: %s", OVERRIDES, error)

    def _set_by_ip(self, by_ip: Mapping[str, int]) -> None:
        self._now = replace(self._now, max_connections_by_ip=by_ip)
