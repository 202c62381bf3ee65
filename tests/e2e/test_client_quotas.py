"""Quotas of clients at a real process: `request_percentage` and the rate of new connections."""

import time

import pytest
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.static.primitive import i8

from interop.kafka import HOST, Quorum, wait_for
from interop.probe import Connection
from quorate.base.ids import Address
from quorate.client import Admin, ClientConfig
from quorate.client.admin.configs import AlterConfigOp, OpType, Resource, ResourceType

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
DESCRIBE = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=i8(2))


@pytest.fixture
def quorum(tmp_path):
    # Two windows of a second: what a client used is soon forgotten.
    with Quorum(tmp_path, {1: "quorate"}, config={"quota.window.num": 2}) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader()
        yield quorum


def test_clients_beyond_their_quotas_wait(quorum):
    port = quorum.nodes[1].port
    with Admin(ClientConfig((Address(HOST, port),), controllers=True)) as admin:
        with Connection(HOST, port, 10.0) as client:
            assert client.ask(DESCRIBE).throttle_time.total_seconds() == 0
            admin.alter_client_quota({"client-id": "probe"}, {"request_percentage": 0.001})

            # The node has the quota as soon as it is committed. The response itself comes at once.
            throttled = client.ask(DESCRIBE)
            begun = time.monotonic()
            assert throttled.throttle_time.total_seconds() > 0.5
            client.ask(DESCRIBE)
            assert time.monotonic() - begun >= throttled.throttle_time.total_seconds() - 0.1
        admin.alter_client_quota({"ip": HOST}, {"connection_creation_rate": 1})

        def is_refused():
            try:
                with Connection(HOST, port, 10.0) as client:
                    client.ask(DESCRIBE)
            except (OSError, EOFError):
                return True
            return False

        wait_for(is_refused, "a connection beyond the rate of its address is closed")
        admin.alter_client_quota({"ip": HOST}, {"connection_creation_rate": None})
        assert not is_refused()

        def set_for_all(name, value):
            resource = Resource(ResourceType.BROKER, "")
            kind = OpType.DELETE if value is None else OpType.SET
            op = AlterConfigOp(name, kind, value)
            assert admin.incremental_alter_configs({resource: [op]}) == {resource: None}

        # The connection of this client counts. The limits hold for new ones (`SocketServer.reconfigure`).
        set_for_all("max.connections.per.ip", "1")
        wait_for(is_refused, "a second connection of the address is refused")
        set_for_all("max.connections.per.ip.overrides", "localhost:3")
        wait_for(lambda: not is_refused(), "its own limit replaces the one of all addresses")
        set_for_all("max.connections", "1")
        wait_for(is_refused, "a second connection of any address is refused")
        set_for_all("max.connections", None)
        wait_for(lambda: not is_refused(), "the limit of the file is in force again")
    assert "Traceback" not in quorum.nodes[1].log
