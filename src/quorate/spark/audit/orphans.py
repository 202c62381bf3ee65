"""Configs of topics that do not exist.

Kafka 4.3.1 leaves them in the image of a node, and so in its snapshots, where it applies a topic's
first config and its removal as one delta; docs/known-bugs.md tells how that was shown. They say
nothing about the log, so states are compared without them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.metadata.image import TOPIC_RESOURCE, ConfigResource, Image
from quorate.spark.audit.model import WARNING, Finding, Spot

_CREATE_AND_REMOVE: Final = (
    "The file is as its node wrote it: Kafka 4.3.1 may keep the configs of a topic that is removed "
    "soon after they were set (docs/known-bugs.md). A new topic of that name would have them on "
    "this node and not on others; create one of that name and remove it again, and they are gone"
)


def orphaned(image: Image) -> list[ConfigResource]:
    """The topics without a topic that have configs, by name."""
    ids = image.topics.ids
    return sorted(
        one for one in image.configs if one.type == TOPIC_RESOURCE and one.name not in ids
    )


def without_orphaned(image: Image) -> Image:
    """The image as it is where a removed topic's configs went with it."""
    configs = image.configs
    for resource in orphaned(image):
        configs = configs.delete(resource)
    return image if configs is image.configs else replace(image, configs=configs)


def judge_orphaned(image: Image, spot: Spot) -> tuple[Finding, ...]:
    """What is to be said of a snapshot with this image."""
    found = orphaned(image)
    if not found:
        return ()
    topics = "1 topic that does" if len(found) == 1 else f"{len(found)} topics that do"
    what = f"it has configs of {topics} not exist ({found[0].name})"
    return (Finding("orphaned-configs", WARNING, what, _CREATE_AND_REMOVE, spot),)
