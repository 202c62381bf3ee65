"""A metadata image in the columns of gold, to compare the result of a replay with the tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from quorate.formats.versions import METADATA_VERSION
from quorate.metadata.image import Features, Image
from quorate.spark.tables.kinds import (
    ACLS,
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    HIDDEN,
    MECHANISMS,
    PARTITIONS,
    PRODUCER_IDS,
    QUOTAS,
    SCRAM,
    TOKENS,
    TOPICS,
    Key,
    Row,
    ThingKind,
    TopicPartition,
    acl_row,
    config_type,
    feature_row,
    quota_key,
    text_of,
    word,
)
from quorate.spark.tables.secrets import is_secret_config

IMAGE_KINDS = (
    *(TOPICS, PARTITIONS, BROKERS, CONTROLLERS, CONFIGS, ACLS, QUOTAS, SCRAM, FEATURES),
    *(PRODUCER_IDS, TOKENS),
)
"""The kinds in an image; voters and leaders are in control records of the log only."""


def image_rows(image: Image) -> dict[str, dict[Key, Row]]:
    """Return, by kind and key, the columns of each thing in the image.

    A SCRAM credential has only its iterations; values of secret configs are hidden.
    """
    found: dict[str, dict[Key, Row]] = {kind.name: {} for kind in IMAGE_KINDS}
    for kind, key, value in _things(image):
        found[kind.name][key] = kind.to_values(value)
    return found


def _things(image: Image) -> Iterator[tuple[ThingKind, Key, Any]]:
    for topic in image.topics:
        topic_id = text_of(topic.id)
        yield TOPICS, (topic_id,), (topic.name,)
        for index, partition in topic.partitions.items():
            yield PARTITIONS, (topic_id, index), TopicPartition(topic.name, partition)
    for id, broker in image.cluster.brokers.items():
        yield BROKERS, (id,), broker
    for id, controller in image.cluster.controllers.items():
        yield CONTROLLERS, (id,), controller
    yield from _settings(image)
    yield from _security(image)


def _settings(image: Image) -> Iterator[tuple[ThingKind, Key, Any]]:
    for resource, values in image.configs.items():
        for name, value in values.items():
            shown = HIDDEN if is_secret_config(resource.type, name) else value
            yield CONFIGS, (config_type(resource.type), resource.name, name), (shown,)
    for entity, quotas in image.client_quotas.items():
        for quota, limit in quotas.items():
            yield QUOTAS, quota_key(entity, quota), (limit,)
    for name, level in _levels(image.features):
        yield FEATURES, (name,), feature_row(name, level)
    if image.next_producer_id >= 0:
        yield PRODUCER_IDS, (), (image.next_producer_id,)


def _security(image: Image) -> Iterator[tuple[ThingKind, Key, Any]]:
    for acl_id, acl in image.acls.items():
        yield ACLS, (text_of(acl_id),), acl_row(acl)
    for scram, credential in image.scram.items():
        yield SCRAM, (scram.user, word(MECHANISMS, scram.mechanism)), (credential.iterations,)
    for token_id, token in image.delegation_tokens.items():
        yield TOKENS, (token_id,), tuple(token)


def _levels(features: Features) -> Iterator[tuple[str, int]]:
    yield from features.levels.items()
    if features.metadata_version is not None:
        yield METADATA_VERSION, int(features.metadata_version)
