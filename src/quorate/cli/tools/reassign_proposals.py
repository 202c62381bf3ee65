"""Proposals of `quorate reassign-partitions`: whole topics onto brokers, or brokers emptied."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.flat_options import FlatToolError, JsonFileError, json_int
from quorate.cli.tools.cluster_image import ImageUnreadableError, read_image
from quorate.cli.tools.known_replicas import replicas_in, sees_every_topic, topic_replicas
from quorate.cli.tools.reassign_files import duplicates, read_topics
from quorate.cli.topic_filter import matching
from quorate.client.admin.reassignments import PartitionName
from quorate.client.errors import UnsupportedVersionError
from quorate.config_definitions.java_text import split_parts
from quorate.controller.placement import UsableBroker, by_rack, place
from quorate.controller.result import ApiError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.metadata.image import Image

Replicas = Mapping[PartitionName, Sequence[int]]
_ONLY_VISIBLE: Final = (
    "Warning: only the topics that this user may describe are moved. Replicas of others may stay on the "
    "broker. With --bootstrap-controller and ClusterAction on Cluster all topics are moved."
)


def propose(admin: Admin, options: Mapping[str, Any]) -> tuple[Replicas, Replicas]:
    """The replicas of now and the proposed ones, of the topics or brokers that the options name.

    Raises FlatToolError where the brokers are too few or unknown, and JsonFileError before anything is
    asked.
    """
    listed, file = _listed(options), options["topics_to_move_json_file"]
    named = None if file is None else read_topics(file)
    image: Image | ImageUnreadableError | None = None
    if admin.config.controllers:
        try:
            image = read_image(admin)
        except ImageUnreadableError as error:
            image = error
    brokers = _usable(admin, listed, options, image)
    leaving = options["from_broker"]
    if leaving:
        every = _every_replica(admin, image)
        _check_known(admin, leaving, {broker for ids in every.values() for broker in ids}, image)
        proposed = empty_brokers(every, set(leaving), brokers)
        return {partition: every[partition] for partition in proposed}, proposed
    replicas = topic_replicas(admin, _topics(admin, options["topic"]) if named is None else named)
    return replicas, place_topics(replicas, brokers)


def _every_replica(admin: Admin, image: Image | ImageUnreadableError | None) -> Replicas:
    """The replicas of all topics; says on stderr where some topics may be hidden."""
    if image is not None and not isinstance(image, ImageUnreadableError):
        return replicas_in(image)
    if not sees_every_topic(admin):
        why = "" if image is None else f" ({image})"
        click.echo(f"{_ONLY_VISIBLE}{why}", err=True)
    return topic_replicas(admin, (topic.name for topic in admin.list_topics()))


def _check_known(
    admin: Admin,
    wanted: Sequence[int],
    holders: Collection[int],
    image: Image | ImageUnreadableError | None,
) -> None:
    """Raise FlatToolError for a broker that holds no replica and is not registered."""
    unknown = [broker for broker in wanted if broker not in holders]
    if not unknown or isinstance(image, ImageUnreadableError):
        return
    known: Collection[int]
    if image is not None:
        known = image.cluster.brokers
    else:
        try:
            known = admin.describe_cluster(include_fenced_brokers=True).nodes
        except UnsupportedVersionError:  # Kafka before 4.0 lists those that are alive
            known = admin.describe_cluster().nodes
    for broker in sorted(unknown):
        if broker not in known:
            raise FlatToolError(f"Unknown broker id {broker}")


def _listed(options: Mapping[str, Any]) -> list[int] | None:
    return None if options["broker_list"] is None else broker_ids(options["broker_list"])


def _topics(admin: Admin, patterns: Sequence[str]) -> list[str]:
    found = matching([topic.name for topic in admin.list_topics()], patterns)
    if not found:
        raise FlatToolError(f"No topic matches {', '.join(patterns)}")
    return found


def broker_ids(text: str) -> list[int]:
    """The ids of --broker-list. Raises FlatToolError."""
    found = []
    for entry in split_parts(text.split(",")):
        try:
            found.append(json_int(int(entry), "--broker-list"))
        except (ValueError, JsonFileError):
            raise FlatToolError(
                f"--broker-list: '{entry}' is not a broker id; the list must be like 0,1,2"
            ) from None
    twice = duplicates(found)
    if twice:
        shown = ", ".join(map(str, twice))
        raise FlatToolError(f"Broker list contains duplicate entries: [{shown}]")
    return found


def _usable(
    admin: Admin,
    listed: Sequence[int] | None,
    options: Mapping[str, Any],
    image: Image | ImageUnreadableError | None,
) -> list[UsableBroker]:
    """The brokers of the list (None: all) that are alive.

    `image`: what controllers know; None over brokers. Raises FlatToolError if only some have a rack.
    Where the controllers' log cannot be read, the list counts, without racks.
    """
    with_racks = not options["disable_rack_aware"]
    if isinstance(image, ImageUnreadableError):
        if with_racks or listed is None:
            raise FlatToolError(
                f"The brokers and their racks cannot be read through controllers: {image}. Use "
                "--bootstrap-server, or add --broker-list and --disable-rack-aware"
            )
        return [UsableBroker(broker, None, False) for broker in listed]
    racks = _racks(admin, image)
    found = [
        UsableBroker(broker, rack if with_racks else None, False)
        for broker, rack in sorted(racks.items())
        if listed is None or broker in listed
    ]
    if with_racks and len({broker.rack is None for broker in found}) > 1:
        raise FlatToolError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make "
            "replica assignment without rack information."
        )
    return found


def _racks(admin: Admin, image: Image | None) -> dict[int, str | None]:
    """The racks of the brokers that are alive."""
    if image is None:
        return {broker: node.rack for broker, node in admin.describe_cluster().nodes.items()}
    return {
        broker_id: broker.rack
        for broker_id, broker in image.cluster.brokers.items()
        if not broker.fenced
    }


def place_topics(
    replicas: Replicas, brokers: Sequence[UsableBroker]
) -> dict[PartitionName, Sequence[int]]:
    """New replicas for whole topics, placed as those of new topics. Raises FlatToolError.

    The replication factor of a topic is that of its first partition (`calculateAssignment`).
    """
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(replicas):
        topics.setdefault(topic, []).append(index)
    found: dict[PartitionName, Sequence[int]] = {}
    for topic, indexes in topics.items():
        factor = len(replicas[PartitionName(topic, indexes[0])])
        try:
            placed = place(len(indexes), factor, by_rack(brokers), random.Random())  # noqa: S311
        except ApiError as error:
            raise FlatToolError(str(error)) from None
        for index, ids in zip(indexes, placed, strict=True):
            found[PartitionName(topic, index)] = ids
    return found


def empty_brokers(
    replicas: Replicas, leaving: Collection[int], brokers: Sequence[UsableBroker]
) -> dict[PartitionName, Sequence[int]]:
    """New replicas for the partitions on the brokers that leave; each replica moves at most once.

    A replica goes to the broker with the fewest replicas, in a rack of its own where there is one.
    Raises FlatToolError for a partition that no other broker can take.
    """
    load = Counter(broker for ids in replicas.values() for broker in ids)
    racks = {broker.id: broker.rack for broker in brokers}
    found: dict[PartitionName, Sequence[int]] = {}
    for partition, ids in sorted(replicas.items()):
        wanted = list(ids)
        for place_in_list, broker in enumerate(ids):
            if broker not in leaving:
                continue
            free = [each for each in racks if each not in wanted and each not in leaving]
            if not free:
                raise FlatToolError(
                    f"No broker is left for the replica of {partition} on broker {broker}: add brokers, "
                    "or reduce the replication factor first"
                )
            taken = {racks.get(each) for each in wanted if each != broker} - {None}
            best = min(free, key=lambda each: (racks[each] in taken, load[each], each))
            wanted[place_in_list] = best
            load[best] += 1
            load[broker] -= 1
        if wanted != list(ids):
            found[partition] = wanted
    return found
