"""Configs of topics, brokers, clients, groups."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, boolean, int8, int16, int32, string


class DescribeConfigsRequest(Message, kind="request", key=32, versions=(1, 4), flexible=4):
    """Asks for configs; null keys: all."""

    class DescribeConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array("string", nullable=0)

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


class DescribeConfigsResponse(Message, kind="response", key=32, versions=(1, 4), flexible=4):
    """The configs and where each value comes from."""

    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name: str = string()
                value: str | None = string(nullable=0)
                source: int = int8()

            name: str = string()
            value: str | None = string(nullable=0)
            read_only: bool = boolean()
            config_source: int = int8(default=-1, ignorable=True)
            is_sensitive: bool = boolean()
            synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, ignorable=True)
            config_type: int = int8(since=3, ignorable=True)
            documentation: str | None = string(since=3, nullable=0, ignorable=True)

        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)


class AlterConfigsRequest(Message, kind="request", key=33, versions=(0, 2), flexible=2):
    """Replaces all configs of resources."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: str = string(key=True)
            value: str | None = string(nullable=0)

        resource_type: int = int8(key=True)
        resource_name: str = string(key=True)
        configs: list[AlterableConfig] = array(AlterableConfig)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class AlterConfigsResponse(Message, kind="response", key=33, versions=(0, 2), flexible=2):
    """The outcome per resource."""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


class IncrementalAlterConfigsRequest(Message, kind="request", key=44, versions=(0, 1), flexible=1):
    """Changes single configs; operation 0 set, 1 delete, 2 append, 3 subtract (KIP-339)."""

    class AlterConfigsResource(Struct):
        class AlterableConfig(Struct):
            name: str = string(key=True)
            config_operation: int = int8(key=True)
            value: str | None = string(nullable=0)

        resource_type: int = int8(key=True)
        resource_name: str = string(key=True)
        configs: list[AlterableConfig] = array(AlterableConfig)

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


class IncrementalAlterConfigsResponse(
    Message, kind="response", key=44, versions=(0, 1), flexible=1
):
    """The outcome per resource."""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        resource_type: int = int8()
        resource_name: str = string()

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)


class ListConfigResourcesRequest(Message, kind="request", key=74, versions=(0, 1), flexible=0):
    """Asks which resources have configs; no types: all of them (KIP-1142)."""

    resource_types: list[int] = array("int8", since=1)


class ListConfigResourcesResponse(Message, kind="response", key=74, versions=(0, 1), flexible=0):
    """The resources; version 0 knows client metrics only."""

    class ConfigResource(Struct):
        resource_name: str = string()
        resource_type: int = int8(since=1, default=16, ignorable=True)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array(ConfigResource)
