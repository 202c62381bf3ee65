"""DescribeConfigs and ListConfigResources: what a node answers from its image and its own file.

Source: `ControllerApis.handleDescribeConfigsRequest`, `ConfigHelper`, `KafkaApis` (a controller of
Kafka does not serve ListConfigResources).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.config_definitions.java_text import parse_integer
from quorate.controller.building import LOOKED_AT, Building, each, in_order, parts
from quorate.controller.config_descriptions import (
    Description,
    Layers,
    describe_brokers,
    describe_client_metrics,
    describe_group,
    describe_node,
    describe_topic,
    layers_of,
)
from quorate.controller.configs import permission_for
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.controller.node_configs import ConfigSource
from quorate.controller.result import ApiError, error_text
from quorate.controller.topic_names import check_topic_name
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from quorate.security.acl import AclResource
from quorate.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_Result = DescribeConfigsResponse.DescribeConfigsResult
_Entry = _Result.DescribeConfigsResourceResult
_Resource = DescribeConfigsRequest.DescribeConfigsResource

_LISTED: Final = (
    GROUP_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
)
"""Types of resources, in the order in which Kafka lists them."""
_DESCRIBED: Final = 50
"""Resources that are described in one step, each with all its configs."""
_SENTENCES: Final[Mapping[int, tuple[str, ...]]] = {
    TOPIC_RESOURCE: ("topics",),
    GROUP_RESOURCE: ("groups",),
    CLIENT_METRICS_RESOURCE: ("client_metrics",),
    BROKER_RESOURCE: ("broker_logs", "broker_coordinators", "broker_security", "broker_nodes"),
}
"""The modules of `sentences`, by type of resource."""


@cache
def documentation(resource_type: int) -> Mapping[str, str]:
    """What each config is for, by its name; empty for a type without configs of its own."""
    found = {}
    for module in _SENTENCES.get(resource_type, ()):
        text: str = import_module(f"quorate.config_definitions.sentences.{module}").SENTENCES
        for line in text.splitlines():
            name, _, sentence = line.partition(": ")
            found[name] = sentence
    return MappingProxyType(found)


def describe_configs(
    image: Image,
    request: DescribeConfigsRequest,
    configs: ConfigsInForce,
    levels: Mapping[str, str],
    may: Callable[[AclResource, str], bool],
) -> Building[DescribeConfigsResponse]:
    """`levels` are those of the node's loggers, by name. `may`: whether the requester may describe the
    configs of what is guarded under this name. A resource that is named twice is described once, with
    the keys that are named last."""
    if any(asked.resource_type not in _LISTED for asked in request.resources):
        # Kafka's check of permissions fails for the whole request.
        refused = ApiError.of(ErrorCode.INVALID_REQUEST)
        return DescribeConfigsResponse(
            results=[_refused(asked, refused, str(refused)) for asked in request.resources]
        )
    layers = layers_of(configs, image)
    # Most topics set no config, or few: what they have in common is written once.
    writers = {kind: _writer(kind, request) for kind in _LISTED}

    def result(asked: _Resource) -> _Result:
        try:
            if asked.resource_type == BROKER_LOGGER_RESOURCE:
                _check_logger_node(asked.resource_name, configs.node_id)
                entries = [_logger(name, levels[name]) for name in sorted(levels)]
            else:
                found = _describe(image, asked, configs.node_id, layers)
                write = writers[asked.resource_type]
                entries = [write(found[name]) for name in sorted(found)]
        except ApiError as refused:
            return _refused(asked, refused, error_text(refused.error, str(refused)))
        wanted = asked.configuration_keys
        return _Result(
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
            configs=[entry for entry in entries if not wanted or entry.name in wanted],
        )

    shown: list[_Result] = []
    denied: list[_Result] = []
    # A short request could ask for this node's hundreds of configs thousands of times.
    once = {(asked.resource_type, asked.resource_name): asked for asked in request.resources}
    for number, asked in enumerate(once.values()):
        if number % _DESCRIBED == _DESCRIBED - 1:
            yield None
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        guarded, name, error = permission_for(resource)
        if may(guarded, name):
            shown.append(result(asked))
        else:
            denied.append(_refused(asked, ApiError.of(error), error.message))
    return DescribeConfigsResponse(results=[*shown, *denied])


def _describe(
    image: Image, asked: _Resource, node_id: int, layers: Layers
) -> dict[str, Description]:
    """Describe a resource. Raises ApiError where this node cannot describe it."""
    name = asked.resource_name
    match asked.resource_type:
        case kind if kind == TOPIC_RESOURCE:
            check_topic_name(name)
            if name not in image.topics.ids:
                raise ApiError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return describe_topic(image, name, layers)
        case kind if kind == BROKER_RESOURCE:
            if not name:
                return describe_brokers(layers)
            if _node_id(name) != node_id:
                raise _invalid_request(
                    f"Unexpected broker id, expected {node_id} or empty string, but received {name}"
                )
            return describe_node(layers)
        case kind if kind == CLIENT_METRICS_RESOURCE:
            if not name:
                raise _invalid_request("Client metrics subscription name must not be empty")
            return describe_client_metrics(image, name)
        case _:
            if not name:
                raise _invalid_request("Group name must not be empty")
            return describe_group(image, name, layers)


def _check_logger_node(name: str, node_id: int) -> None:
    if not name:
        raise _invalid_request("Broker id must not be empty")
    if _node_id(name) != node_id:
        raise _invalid_request(f"Unexpected broker id, expected {node_id} but received {name}")


def _node_id(name: str) -> int:
    found = parse_integer(name, 32)
    if found is None:
        raise _invalid_request(f"Broker id must be an integer, but it is: {name}")
    return found


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _refused(asked: _Resource, refused: ApiError, text: str | None) -> _Result:
    return _Result(
        error_code=refused.error,
        error_message=text or "",  # not null, as Kafka leaves it
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def _writer(resource_type: int, request: DescribeConfigsRequest) -> Callable[[Description], _Entry]:
    """Writes descriptions; the same description, e.g. of a default, is written once."""
    texts = documentation(resource_type) if request.include_documentation else {}
    written: dict[int, tuple[Description, _Entry]] = {}

    def write(found: Description) -> _Entry:
        known = written.get(id(found))  # it is kept beside the entry: no other one has its id
        if known is None:
            known = written[id(found)] = found, entry(found)
        return known[1]

    def entry(found: Description) -> _Entry:
        line = found.line if request.include_synonyms else ()
        return _Entry(
            name=found.name,
            value=found.value,
            read_only=found.read_only,
            config_source=found.source,
            is_sensitive=found.is_sensitive,
            synonyms=[
                _Entry.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
                for one in line
            ],
            config_type=found.type,
            documentation=texts.get(found.name),
        )

    return write


def _logger(name: str, level: str) -> _Entry:
    return _Entry(name=name, value=level, config_source=ConfigSource.DYNAMIC_BROKER_LOGGER)


# -- ListConfigResources --------------------------------------------------------------------------
def list_config_resources(
    image: Image, request: ListConfigResourcesRequest, version: int
) -> Building[ListConfigResourcesResponse]:
    """The resources of the types that are asked for, or of all types. Version 0 lists the client
    metrics subscriptions only."""
    known = _LISTED if version > 0 else (CLIENT_METRICS_RESOURCE,)
    wanted = request.resource_types or known
    if not set(wanted) <= set(known):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    listed: list[ListConfigResourcesResponse.ConfigResource] = []
    for kind in known:
        if kind in wanted:
            names = yield from _names(image, kind)
            listed += yield from each(names, partial(_listed_resource, kind))
    return ListConfigResourcesResponse(config_resources=listed)


def _listed_resource(kind: int, name: str) -> ListConfigResourcesResponse.ConfigResource:
    return ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)


def _names(image: Image, kind: int) -> Building[list[str]]:
    """The names of nodes and topics that exist, and of groups and subscriptions that set a config."""
    if kind == TOPIC_RESOURCE:
        return (yield from in_order(image.topics.ids))
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(each) for each in sorted({*image.cluster.brokers, *image.cluster.controllers})]
    names: list[str] = []
    for part in parts(image.configs, LOOKED_AT):
        yield None
        names += (one.name for one in part if one.type == kind)
    return (yield from in_order(names))
