"""Configs that a topic, or a name without a topic, has of a topic that is gone.

Kafka 4.3.1 leaves them in the image of a node, and so in its snapshots, where it applies a topic's
first config and its removal as one delta; docs/known-bugs.md tells how that was shown. They say
nothing about the log, and such a node is as sound as others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.metadata.image import TOPIC_RESOURCE, ConfigResource, Image
from quorate.spark.audit.model import WARNING, Finding, Spot

INHERITED: Final = "inherited-configs"

_FAULT: Final = (
    "The file may well be as its node wrote it: Kafka 4.3.1 can keep the configs of a topic that "
    "is removed (docs/known-bugs.md). "
)
_CREATE_AND_REMOVE: Final = _FAULT + (
    "A new topic of that name would have them on this node and not on others; create one and "
    "remove it again, and they are gone"
)
_SET: Final = _FAULT + (
    "A topic that was created later under that name has them here and not on others; set them, and "
    "delete them again where they are not wanted, and all nodes have the same"
)


def orphaned(image: Image) -> list[ConfigResource]:
    """What has configs of a topic and is none, by name."""
    topics = image.topics.ids
    return sorted(
        resource
        for resource in image.configs
        if resource.type == TOPIC_RESOURCE and resource.name not in topics
    )


def without_orphaned(image: Image) -> Image:
    """The image as it is where a removed topic's configs went with it."""
    configs = image.configs
    for resource in orphaned(image):
        configs = configs.delete(resource)
    return image if configs is image.configs else replace(image, configs=configs)


def without_inherited(image: Image, log: Image) -> Image:
    """The image without those configs of its topics that the log's image does not have."""
    configs = image.configs
    for resource, values in image.configs.items():
        own = log.configs.get(resource, ())
        left = values
        for name in values if resource.type == TOPIC_RESOURCE else ():
            left = left if name in own else left.delete(name)
        if left is not values:
            configs = configs.set(resource, left) if left else configs.delete(resource)
    return replace(image, configs=configs)


def judge_orphaned(image: Image, spot: Spot) -> tuple[Finding, ...]:
    """What is to be said of a snapshot with this image."""
    found = orphaned(image)
    if not found:
        return ()
    topics = "1 topic that does" if len(found) == 1 else f"{len(found)} topics that do"
    what = f"it has configs of {topics} not exist ({found[0].name})"
    return (Finding("orphaned-configs", WARNING, what, _CREATE_AND_REMOVE, spot),)


def inherited(what: str, spot: Spot) -> Finding:
    """Of a snapshot that differs in nothing but configs of topics."""
    return Finding(INHERITED, WARNING, what, _SET, spot)
