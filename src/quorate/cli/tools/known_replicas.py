"""The replicas of topics, and whether the user sees all of them.

An authorizer hides the topics that a user may not describe. The metadata log of the controllers has all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.cli.flat_options import FlatToolError
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.client.admin.acls import AclFilter
from quorate.client.admin.reassignments import PartitionName
from quorate.client.errors import UnsupportedVersionError
from quorate.client.results import RequestFailedError
from quorate.security.acl import AclResource

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.metadata.image import Image

ReplicasByIndex = Mapping[int, tuple[int, ...]]
_NOBODY: AclFilter = AclFilter(AclResource.CLUSTER, "kafka-cluster", principal="User:")
"""A filter with a short answer."""


def sees_every_topic(admin: Admin) -> bool:
    """Whether no topic is hidden from the requester; False where that is not known.

    Only a cluster without an authorizer says so. With one, no request reports whether topics are hidden.
    """
    try:
        admin.describe_acls(_NOBODY)
    except RequestFailedError as error:
        return error.code is ErrorCode.SECURITY_DISABLED
    except UnsupportedVersionError:
        pass
    return False


def replicas_in(image: Image) -> dict[PartitionName, tuple[int, ...]]:
    """The replicas of all partitions that controllers know."""
    return {
        PartitionName(topic.name, index): partition.replicas
        for topic in image.topics.by_id.values()
        for index, partition in topic.partitions.items()
    }


def replicas_by_topic(
    admin: Admin, topics: Iterable[str]
) -> dict[str, ReplicasByIndex | RequestFailedError]:
    """The replicas of each topic, or why they are not known.

    Controllers report those of topics that the user may not describe, if their log may be read.
    """
    found: dict[str, ReplicasByIndex | RequestFailedError] = {}
    hidden = []
    for name, topic in admin.describe_topics(topics).items():
        if isinstance(topic, RequestFailedError):
            found[name] = topic
            if topic.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                hidden.append(name)
        else:
            found[name] = {each.index: each.replicas for each in topic.partitions}
    if hidden and admin.config.controllers:
        try:
            known = read_image(admin).topics
        except ImageUnreadableError:
            return found
        for name in hidden:
            in_log = known.named(name)
            if in_log is not None:
                found[name] = {index: each.replicas for index, each in in_log.partitions.items()}
    return found


def topic_replicas(admin: Admin, topics: Iterable[str]) -> dict[PartitionName, tuple[int, ...]]:
    """The replicas of all partitions of topics. Raises FlatToolError for an unknown topic."""
    replicas = {}
    for name, found in replicas_by_topic(admin, topics).items():
        if isinstance(found, RequestFailedError):
            unknown = found.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise FlatToolError(f"Topic {name} not found." if unknown else found.reason)
        for index, ids in found.items():
            replicas[PartitionName(name, index)] = ids
    return replicas
