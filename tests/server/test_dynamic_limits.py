"""Limits on the number of connections that dynamic configs change (`SocketServer.reconfigure`)."""

import asyncio

import pytest
from immutables import Map

from quorate.base.errors import QuorateError
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import BROKER_RESOURCE
from quorate.server.dynamic_limits import DynamicLimits
from quorate.server.limits import ConnectionLimits

FILE = ConnectionLimits(
    max_connections=100, max_connections_per_ip=10, max_connections_by_ip={"10.0.0.1": 7}
)
OVERRIDES = "max.connections.per.ip.overrides"


def image(own=(), of_all=()):
    node, everyone = (ConfigResource(BROKER_RESOURCE, name) for name in ("1", ""))
    return Image(configs=Map({node: Map(own), everyone: Map(of_all)}))


def addresses(by_host):
    if "unknown" in by_host:
        raise QuorateError("unknown names the host unknown")
    return {f"10.0.0.{len(host)}": most for host, most in by_host.items()}


def dynamic():
    return DynamicLimits(FILE, ConfigsInForce(1, Map()), addresses)


def counts(limits):
    return limits.max_connections, limits.max_connections_per_ip


def test_without_dynamic_configs_the_file_counts():
    assert dynamic().of(Image()) == FILE


def test_the_config_of_the_node_counts_before_that_of_all():
    limits = dynamic()
    of_all = {"max.connections": "50", "max.connections.per.ip": "5"}
    assert counts(limits.of(image(of_all=of_all))) == (50, 5)
    assert counts(limits.of(image({"max.connections": "60"}, of_all))) == (60, 5)
    assert limits.of(image()) == FILE


@pytest.mark.parametrize("value", ["-1", "many", ""])
def test_a_value_that_is_not_allowed_leaves_the_one_of_the_file(value):
    assert counts(dynamic().of(image({"max.connections": value}))) == (100, 10)


async def by_ip(limits, found, text):
    limits.of(image({OVERRIDES: text}))
    for _ in range(1000):
        if limits.of(image({OVERRIDES: text})).max_connections_by_ip == found:
            return
        await asyncio.sleep(0.001)
    raise AssertionError(limits.of(image({OVERRIDES: text})))


def test_overrides_replace_those_of_the_file_and_give_way_to_them(caplog):
    async def change():
        limits = dynamic()
        await by_ip(limits, {"10.0.0.2": 1, "10.0.0.3": 2}, "ab:1,abc:2")
        for wrong in ("ab", "ab:x", "unknown:3"):
            await by_ip(limits, {"10.0.0.2": 1, "10.0.0.3": 2}, wrong)
        limits.of(image({OVERRIDES: "abcd:4"}))  # replaced before it is resolved
        await by_ip(limits, {"10.0.0.5": 5}, "abcde:5")
        assert limits.of(image()) == FILE

    asyncio.run(change())
