"""Client quotas (KIP-546) and finalized features (KIP-584)."""

from __future__ import annotations

from quorate.wire.schema import Message, Struct, array, boolean, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Message, kind="request", key=48, versions=(0, 1), flexible=1):
    """Asks for the quotas that match all components."""

    class ComponentData(Struct):
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable=0)

    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class DescribeClientQuotasResponse(Message, kind="response", key=48, versions=(0, 1), flexible=1):
    """The entities found (null: none) with their quotas."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable=0)

        class ValueData(Struct):
            key: str = string()
            value: float = float64()

        entity: list[EntityData] = array(EntityData)
        values: list[ValueData] = array(ValueData)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    entries: list[EntryData] | None = array(EntryData, nullable=0)


class AlterClientQuotasRequest(Message, kind="request", key=49, versions=(0, 1), flexible=1):
    """Sets or removes quotas of entities."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable=0)

        class OpData(Struct):
            key: str = string()
            value: float = float64()
            remove: bool = boolean()

        entity: list[EntityData] = array(EntityData)
        ops: list[OpData] = array(OpData)

    entries: list[EntryData] = array(EntryData)
    validate_only: bool = boolean()


class AlterClientQuotasResponse(Message, kind="response", key=49, versions=(0, 1), flexible=1):
    """The outcome per entity."""

    class EntryData(Struct):
        class EntityData(Struct):
            entity_type: str = string()
            entity_name: str | None = string(nullable=0)

        error_code: int = int16()
        error_message: str | None = string(nullable=0)
        entity: list[EntityData] = array(EntityData)

    throttle_time_ms: int = int32()
    entries: list[EntryData] = array(EntryData)


class UpdateFeaturesRequest(Message, kind="request", key=57, versions=(0, 2)):
    """Sets finalized feature levels; upgrade type 1 up, 2 safe down, 3 unsafe down."""

    class FeatureUpdateKey(Struct):
        feature: str = string(key=True)
        max_version_level: int = int16()
        allow_downgrade: bool = boolean(until=0)
        upgrade_type: int = int8(since=1, default=1)

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean(since=1)


class UpdateFeaturesResponse(Message, kind="response", key=57, versions=(0, 2)):
    """The outcome; per feature up to v1."""

    class UpdatableFeatureResult(Struct):
        feature: str = string(key=True)
        error_code: int = int16()
        error_message: str | None = string(nullable=0)

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, until=1, ignorable=True)
