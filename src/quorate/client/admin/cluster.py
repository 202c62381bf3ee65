"""Calls about the nodes of the cluster."""

from __future__ import annotations

from typing import NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.admin.routing import Calls
from quorate.client.errors import ClientError
from quorate.client.results import ClusterDescription, check


class ApiRange(NamedTuple):
    """An API that a node serves: lowest and highest version, inclusive."""

    key: int
    min_version: int
    max_version: int


class NodeVersions(NamedTuple):
    """What a node serves; `error` says why it is not known."""

    node_id: int
    address: Address
    rack: str | None
    is_fenced: bool
    apis: tuple[ApiRange, ...] = ()
    error: str | None = None


class ClusterCalls(Calls):
    """describeCluster, unregisterBroker, unregisterController, and ApiVersions of all nodes."""

    async def describe_cluster(self, include_fenced_brokers: bool = False) -> ClusterDescription:
        """Describe the cluster; `nodes` are controllers or brokers, as the bootstrap list is."""

        async def ask() -> ClusterDescription:
            return await self.router.describe_cluster(with_fenced=include_fenced_brokers)

        return await self.router.retry(ask)

    async def api_versions(self) -> tuple[NodeVersions, ...]:
        """The APIs of every node, in order of ids; one attempt per node."""
        cluster = await self.describe_cluster()
        ids = sorted(cluster.nodes)
        return tuple(await self.router.gather([self._versions(cluster, each) for each in ids]))

    async def _versions(self, cluster: ClusterDescription, node_id: int) -> NodeVersions:
        node = cluster.nodes[node_id]
        facts = (node_id, node.address, node.rack, node.is_fenced)
        try:
            connection = await self.router.node(node_id)
        except ClientError as error:
            return NodeVersions(*facts, error=str(error))
        keys = connection.features.api_keys
        apis = [ApiRange(each.api_key, each.min_version, each.max_version) for each in keys]
        return NodeVersions(*facts, tuple(apis))

    async def unregister_broker(self, broker_id: int) -> None:
        """Remove the registration of a broker; returns when the change is committed.

        Raises RequestFailedError with the controller's reason.
        """
        from quorate.wire.messages.nodes import UnregisterBrokerRequest, UnregisterBrokerResponse

        request = UnregisterBrokerRequest(broker_id=broker_id)

        async def send() -> None:
            answer = await self.router.ask_active(request, UnregisterBrokerResponse)
            check(answer.error_code, answer.error_message)

        async def is_done(refusal: ErrorCode) -> bool:
            return refusal == ErrorCode.BROKER_ID_NOT_REGISTERED

        await self.router.change(send, is_done)

    async def unregister_controller(self, controller_id: int) -> None:
        """Remove the registration of a controller; returns when the change is committed.

        Raises RequestFailedError with the controller's reason, and UnsupportedVersionError for a
        node of Kafka 4.3 or before.
        """
        from quorate.wire.messages.nodes import (
            UnregisterControllerRequest,
            UnregisterControllerResponse,
        )

        request = UnregisterControllerRequest(controller_id=controller_id)

        async def send() -> None:
            answer = await self.router.ask_active(request, UnregisterControllerResponse)
            check(answer.error_code, answer.error_message)

        async def is_done(refusal: ErrorCode) -> bool:
            return refusal == ErrorCode.CONTROLLER_ID_NOT_REGISTERED

        await self.router.change(send, is_done)
