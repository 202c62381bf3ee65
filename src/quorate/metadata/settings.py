"""What records do to features, configs, client quotas and producer ids.

Rules: `FeaturesDelta`, `ConfigurationsDelta`, `ClientQuotasDelta`, `ProducerIdsDelta` and the
replay methods of the control managers.
"""

from __future__ import annotations

from dataclasses import replace

from immutables import Map

from quorate.formats.records import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
)
from quorate.formats.versions import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureError,
    metadata_version_of,
)
from quorate.metadata.errors import ReplayError, UnknownLevelError
from quorate.metadata.image import ConfigResource, Features, QuotaEntity
from quorate.metadata.resource_types import TOPIC_RESOURCE

Configs = Map[ConfigResource, Map[str, str]]
Quotas = Map[QuotaEntity, Map[str, float]]


def set_feature(features: Features, record: FeatureLevelRecord) -> Features:
    """Set a level; 0 removes the feature.

    kraft.version is passed over: it lives in control records, and older versions wrote it here by
    mistake (KAFKA-18979). Raises UnknownLevelError for a metadata.version that we cannot read.
    """
    if record.name == METADATA_VERSION:
        try:
            version = metadata_version_of(record.feature_level)
        except FeatureError as error:
            raise UnknownLevelError(f"FeatureLevelRecord: {error}") from None
        return replace(features, metadata_version=version)
    if record.name == KRAFT_VERSION:
        return features
    if record.feature_level:
        return replace(features, levels=features.levels.set(record.name, record.feature_level))
    if record.name in features.levels:
        return replace(features, levels=features.levels.delete(record.name))
    return features


def set_config(configs: Configs, record: ConfigRecord) -> Configs:
    """Set one config of a resource; a null value removes it, and the resource with its last."""
    resource = ConfigResource(record.resource_type, record.resource_name)
    values = configs.get(resource)
    if record.value is not None:
        return configs.set(resource, (values or Map()).set(record.name, record.value))
    if values is None or record.name not in values:
        return configs
    if len(values) == 1:
        return configs.delete(resource)
    return configs.set(resource, values.delete(record.name))


def remove_topic_configs(configs: Configs, topic: str) -> Configs:
    """Drop the configs of a removed topic."""
    resource = ConfigResource(TOPIC_RESOURCE, topic)
    return configs.delete(resource) if resource in configs else configs


def set_client_quota(quotas: Quotas, record: ClientQuotaRecord) -> Quotas:
    """Set or remove one quota of an entity, and the entity with its last."""
    entity = quota_entity({part.entity_type: part.entity_name for part in record.entity})
    values = quotas.get(entity)
    if not record.remove:
        return quotas.set(entity, (values or Map()).set(record.key, record.value))
    if values is None or record.key not in values:
        return quotas
    if len(values) == 1:
        return quotas.delete(entity)
    return quotas.set(entity, values.delete(record.key))


def quota_entity(names: dict[str, str | None]) -> QuotaEntity:
    """The entity of these names by type; None is the type's default entity."""
    return tuple((kind, names[kind]) for kind in sorted(names))


def set_next_producer_id(current: int, record: ProducerIdsRecord) -> int:
    """The next producer id after the block; it never goes back."""
    if current >= 0 and record.next_producer_id <= current:
        raise ReplayError(
            f"ProducerIdsRecord: next producer id {record.next_producer_id} is not above "
            f"the current {current}"
        )
    return record.next_producer_id
