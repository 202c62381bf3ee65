"""Calls about the configs of topics, brokers, loggers, client metrics and groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.client.admin.parts import each_failed, in_parts, merged, parts_of, text_bytes
from quorate.client.admin.routing import Calls, item_failure
from quorate.client.connection import Connection
from quorate.client.errors import ClientError
from quorate.client.results import RequestFailedError, check

if TYPE_CHECKING:
    from quorate.wire.messages.configs import DescribeConfigsResponse


class ResourceType(IntEnum):
    """`ConfigResource.Type`."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigEntrySource(IntEnum):
    """`ConfigEntry.ConfigEntrySource`: where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def of(cls, code: int) -> ConfigEntrySource:
        """The source of a code; UNKNOWN for one that this release does not know."""
        return _SOURCES.get(code, cls.UNKNOWN)


_SOURCES: Final = {int(source): source for source in ConfigEntrySource}


_REQUEST_BYTES: Final = 48 * 1024
_RESOURCE_BYTES: Final = 8
"""Of a resource in a request, without its name."""
_MOST_RESOURCES: Final = 250
"""Of one request: a broker describes the parts of a longer list at the same time."""


class OpType(IntEnum):
    """`AlterConfigOp.OpType` (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Resource(NamedTuple):
    """Whose configs. The name of a broker is its id, or empty for the default of all brokers."""

    type: ResourceType
    name: str

    @property
    def node_id(self) -> int | None:
        """The node that alone knows these configs in full; None: any node knows them.

        Raises ClientError where the name of a node is not its id.
        """
        of_node = self.type == ResourceType.BROKER_LOGGER or (
            self.type == ResourceType.BROKER and self.name != ""
        )
        if not of_node:
            return None
        try:
            return int(self.name)
        except ValueError:
            raise ClientError(
                f"The name of a {self.type.name} resource is the id of a node, not '{self.name}'"
            ) from None


class ConfigSynonym(NamedTuple):
    """A config that gives the value, in the order in which they count."""

    name: str
    value: str | None
    source: ConfigEntrySource


class ConfigEntry(NamedTuple):
    """A config; the value of a sensitive one is None."""

    name: str
    value: str | None
    source: ConfigEntrySource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    documentation: str | None = None


class AlterConfigOp(NamedTuple):
    """A change of one config; DELETE needs no value."""

    name: str
    operation: OpType
    value: str | None = None


class ConfigCalls(Calls):
    """describeConfigs, incrementalAlterConfigs, listConfigResources, listGroups."""

    async def describe_configs(
        self,
        resources: Iterable[Resource],
        *,
        synonyms: bool = False,
        documentation: bool = False,
        defaults: bool = True,
    ) -> Mapping[Resource, tuple[ConfigEntry, ...] | RequestFailedError]:
        """The configs of each resource, or why they cannot be reported.

        `defaults=False` leaves out those that have Kafka's default value: of many topics there is
        little else.

        A broker and its loggers are asked about themselves; with `bootstrap_controllers` the ids are
        those of controllers (`KafkaAdminClient.describeConfigs`).
        """
        by_node: dict[int | None, list[Resource]] = {}
        for resource in resources:
            by_node.setdefault(resource.node_id, []).append(resource)
        jobs = [
            each_failed(
                self._describe_on(node_id, wanted, synonyms, documentation, defaults),
                wanted,
                is_only=len(by_node) == 1,
            )
            for node_id, wanted in by_node.items()
        ]
        return merged(await self.router.gather(jobs))

    async def _describe_on(
        self,
        node_id: int | None,
        resources: Sequence[Resource],
        synonyms: bool,
        texts: bool,
        defaults: bool,
    ) -> dict[Resource, tuple[ConfigEntry, ...] | RequestFailedError]:
        from quorate.client.admin.config_results import decode_config_response
        from quorate.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResponse

        requests = [
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=None
                    )
                    for each in part
                ],
                include_synonyms=synonyms,
                include_documentation=texts,
            )
            for part in requests_of(resources)
        ]
        left_out = None if defaults else ConfigEntrySource.DEFAULT_CONFIG.value

        async def ask() -> dict[Resource, tuple[ConfigEntry, ...] | RequestFailedError]:
            router = self.router
            if node_id is None:
                answers = await router.ask_spread(
                    requests, DescribeConfigsResponse, decode_config_response
                )
            else:
                node = await router.node(node_id)
                answers = [
                    await router.ask(node, each, DescribeConfigsResponse) for each in requests
                ]
            return _by_resource(answers, left_out)

        return await self.router.retry(ask)

    async def incremental_alter_configs(
        self, changes: Mapping[Resource, Sequence[AlterConfigOp]], validate_only: bool = False
    ) -> Mapping[Resource, RequestFailedError | None]:
        """Change single configs; returns when the change is committed.

        A broker validates a change of its own configs, so it is asked itself. With
        `bootstrap_controllers` that validation is left out (KIP-919), and only a change of loggers
        goes to the named node.
        """
        by_node: dict[int | None, list[Resource]] = {}
        direct = self.router.config.controllers
        for resource in changes:
            of_active = direct and resource.type != ResourceType.BROKER_LOGGER
            by_node.setdefault(None if of_active else resource.node_id, []).append(resource)
        jobs = [
            each_failed(
                self._alter_on(node_id, {each: changes[each] for each in resources}, validate_only),
                resources,
                is_only=len(by_node) == 1,
            )
            for node_id, resources in by_node.items()
        ]
        return merged(await self.router.gather(jobs))

    async def _alter_on(
        self,
        node_id: int | None,
        changes: Mapping[Resource, Sequence[AlterConfigOp]],
        validate_only: bool,
    ) -> dict[Resource, RequestFailedError | None]:
        from quorate.wire.messages.configs import (
            IncrementalAlterConfigsRequest,
            IncrementalAlterConfigsResponse,
        )

        cls = IncrementalAlterConfigsRequest.AlterConfigsResource

        async def send(part: Sequence[Resource]) -> dict[Resource, RequestFailedError | None]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    cls(
                        resource_type=resource.type,
                        resource_name=resource.name,
                        configs=[
                            cls.AlterableConfig(
                                name=each.name, config_operation=each.operation, value=each.value
                            )
                            for each in changes[resource]
                        ],
                    )
                    for resource in part
                ],
                validate_only=validate_only,
            )
            node = await self._node(node_id)
            answer = await self.router.ask(node, request, IncrementalAlterConfigsResponse)
            return {
                Resource(ResourceType(each.resource_type), each.resource_name): item_failure(
                    each.error_code, each.error_message
                )
                for each in answer.responses
            }

        parts = parts_of(
            changes,
            lambda resource: (
                text_bytes(resource.name)
                + sum(text_bytes(each.name, each.value) for each in changes[resource])
            ),
            lambda resource: max(len(changes[resource]), 1),
        )
        return merged(await in_parts(self.router, parts, send))

    async def _node(self, node_id: int | None) -> Connection:
        router = self.router
        return await (router.active() if node_id is None else router.node(node_id))

    async def list_config_resources(self, *types: ResourceType) -> tuple[Resource, ...]:
        """The resources of these types (none: of all types) that have configs.

        Kafka before 4.1 lists client metrics only: UnsupportedVersionError for any other type.
        """
        from quorate.wire.messages.configs import (
            ListConfigResourcesRequest,
            ListConfigResourcesResponse,
        )

        only_metrics = types == (ResourceType.CLIENT_METRICS,)

        async def ask() -> tuple[Resource, ...]:
            node = await self.router.active_to_read()
            with_types = not only_metrics or node.supports(74, 1)
            request = ListConfigResourcesRequest(
                resource_types=list(map(int, types)) if with_types else []
            )
            lowest = 1 if with_types else 0
            answer = await self.router.ask(node, request, ListConfigResourcesResponse, lowest)
            check(answer.error_code, None)
            return tuple(
                Resource(ResourceType(each.resource_type), each.resource_name)
                for each in answer.config_resources
            )

        return await self.router.retry(ask)

    async def list_groups(self) -> tuple[str, ...]:
        """The ids of all groups, sorted; every broker knows those that it coordinates."""
        from quorate.wire.messages.groups import ListGroupsRequest, ListGroupsResponse

        self.router.refuse_controllers("ListGroups")

        async def of_broker(node_id: int) -> list[str]:
            node = await self.router.node(node_id)
            answer = await self.router.ask(node, ListGroupsRequest(), ListGroupsResponse)
            check(answer.error_code, None)
            return [group.group_id for group in answer.groups]

        async def ask() -> tuple[str, ...]:
            cluster = await self.router.describe_cluster()
            found = await self.router.gather([of_broker(each) for each in cluster.nodes])
            return tuple(sorted({group for part in found for group in part}))

        return await self.router.retry(ask)


def _by_resource(
    answers: Iterable[DescribeConfigsResponse], left_out: int | None
) -> dict[Resource, tuple[ConfigEntry, ...] | RequestFailedError]:
    """The configs without those of one source; results that share a list share their entries."""
    found: dict[Resource, tuple[ConfigEntry, ...] | RequestFailedError] = {}
    for answer in answers:
        configs = None
        entries: tuple[ConfigEntry, ...] = ()
        for each in answer.results:
            resource = Resource(ResourceType(each.resource_type), each.resource_name)
            if each.configs is not configs:
                configs = each.configs
                entries = tuple(_entry(one) for one in configs if one.config_source != left_out)
            found[resource] = item_failure(each.error_code, each.error_message) or entries
    return found


def requests_of(resources: Sequence[Resource]) -> Iterator[Sequence[Resource]]:
    """The resources in parts that fit into one request to a controller of Quorate, of 64 KiB."""
    part: list[Resource] = []
    size = 0
    for resource in resources:
        needed = _RESOURCE_BYTES + len(resource.name)
        if part and (size + needed > _REQUEST_BYTES or len(part) == _MOST_RESOURCES):
            yield part
            part, size = [], 0
        part.append(resource)
        size += needed
    yield part


def _entry(
    each: DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult,
) -> ConfigEntry:
    return ConfigEntry(
        each.name,
        each.value,
        ConfigEntrySource.of(each.config_source),
        each.is_sensitive,
        each.read_only,
        tuple(
            ConfigSynonym(s.name, s.value, ConfigEntrySource.of(s.source)) for s in each.synonyms
        ),
        each.documentation,
    )
