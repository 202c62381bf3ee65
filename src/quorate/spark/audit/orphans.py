"""Configs of a deleted topic that remain in an image, with or without a new topic of its name.

Kafka 4.3.1 keeps them where it applies a topic's first config and its deletion as one delta
(docs/known-bugs.md). They stay in the image of the node, and so in its snapshots. They
do not mean that the log is damaged: such a node is as sound as others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import TOPIC_RESOURCE
from quorate.spark.audit.model import WARNING, Finding, Spot

INHERITED: Final = "inherited-configs"

_FAULT: Final = (
    "The file may be as its node wrote it: Kafka 4.3.1 can keep the configs of a deleted topic "
    "(docs/known-bugs.md). "
)
_CREATE_AND_REMOVE: Final = _FAULT + (
    "A new topic of that name would have these configs on this node only; to remove them, create "
    "such a topic and delete it"
)
_SET: Final = _FAULT + (
    "A later topic of that name has these configs on this node only; to make all nodes equal, set "
    "the configs, and delete those that are not wanted"
)


def orphaned(image: Image) -> list[ConfigResource]:
    """The topic resources with configs whose topic does not exist, sorted by name."""
    topics = image.topics.ids
    return sorted(
        resource
        for resource in image.configs
        if resource.type == TOPIC_RESOURCE and resource.name not in topics
    )


def without_orphaned(image: Image) -> Image:
    """The image without configs of topics that do not exist."""
    configs = image.configs
    for resource in orphaned(image):
        configs = configs.delete(resource)
    return image if configs is image.configs else replace(image, configs=configs)


def without_inherited(image: Image, log: Image) -> Image:
    """The image without those topic configs that the log's image does not have."""
    configs = image.configs
    for resource, values in image.configs.items():
        own = log.configs.get(resource, ())
        left = values
        for name in values if resource.type == TOPIC_RESOURCE else ():
            left = left if name in own else left.delete(name)
        if left is not values:
            configs = configs.set(resource, left) if left else configs.delete(resource)
    return replace(image, configs=configs)


def check_orphaned_configs(image: Image, spot: Spot) -> tuple[Finding, ...]:
    """A finding for a snapshot whose image has configs of topics that do not exist."""
    found = orphaned(image)
    if not found:
        return ()
    topics = "1 topic that does" if len(found) == 1 else f"{len(found)} topics that do"
    what = f"it has configs of {topics} not exist ({found[0].name})"
    return (Finding("orphaned-configs", WARNING, what, _CREATE_AND_REMOVE, spot),)


def inherited(what: str, spot: Spot) -> Finding:
    """The finding for a snapshot that differs in topic configs only."""
    return Finding(INHERITED, WARNING, what, _SET, spot)
