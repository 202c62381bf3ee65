"""Reassignments as JSON files, in the form of Kafka's kafka-reassign-partitions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from quorate.cli.flat_options import FlatToolError, JsonFileError, json_int, read_json_file
from quorate.client.admin.log_dirs import TopicPartitionReplica
from quorate.client.admin.reassignments import PartitionName

ANY_DIRECTORY: Final = "any"
_VERSION: Final = 1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReassignmentPlan:
    """Replicas that partitions shall have, and directories that replicas shall be in."""

    targets: Sequence[tuple[PartitionName, tuple[int, ...]]]
    """In the order of the file; a partition may be there twice."""
    directories: Mapping[TopicPartitionReplica, str] = field(default_factory=dict)

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition, _ in self.targets})

    @property
    def brokers(self) -> set[int]:
        return {broker for _, replicas in self.targets for broker in replicas}


def read_plan(path: str) -> ReassignmentPlan:
    """Read a file of --reassignment-json-file. Raises JsonFileError."""
    data = _read(path)
    targets = []
    directories = {}
    for number, entry in enumerate(_entries(path, data, "partitions")):
        match entry:
            case {"topic": str(topic), "partition": index, "replicas": list(ids)}:
                place = f"{path}: partitions[{number}]"
                partition = PartitionName(topic, json_int(index, f'{place}: "partition"'))
                replicas = tuple(json_int(each, f'{place}: "replicas"') for each in ids)
            case _:
                raise JsonFileError(
                    f'{path}: partitions[{number}] must have "topic" (text), "partition" (number) and '
                    '"replicas" (broker ids)'
                )
        dirs = entry.get("log_dirs", [ANY_DIRECTORY] * len(replicas))
        if not isinstance(dirs, list) or not all(isinstance(each, str) for each in dirs):
            raise JsonFileError(
                f'{path}: "log_dirs" of partitions[{number}] must be a list of paths'
            )
        if len(dirs) != len(replicas):
            raise JsonFileError(
                f"{path}: Size of replicas list {list(replicas)} is different from size of log dirs "
                f"list {dirs} for partition {partition}"
            )
        targets.append((partition, replicas))
        for broker, path_of in zip(replicas, dirs, strict=True):
            if path_of != ANY_DIRECTORY:
                directories[TopicPartitionReplica(partition, broker)] = path_of
    return ReassignmentPlan(targets, directories)


def check_plan(plan: ReassignmentPlan) -> None:
    """Raise FlatToolError for a plan that cannot be executed (`parseExecuteAssignmentArgs`)."""
    if not plan.targets:
        raise FlatToolError("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in plan.targets):
        raise FlatToolError("Partition replica list cannot be empty")
    twice = duplicates([partition for partition, _ in plan.targets])
    if twice:
        raise FlatToolError(
            "Partition reassignment contains duplicate topic partitions: "
            + ",".join(map(str, twice))
        )
    repeated = [
        f"{partition} contains multiple entries for {','.join(map(str, found))}"
        for partition, replicas in plan.targets
        if (found := duplicates(replicas))
    ]
    if repeated:
        raise FlatToolError(
            "Partition replica lists may not contain duplicate entries: " + ". ".join(repeated)
        )


def read_topics(path: str) -> list[str]:
    """Read a file of --topics-to-move-json-file. Raises JsonFileError or FlatToolError."""
    found = []
    for number, entry in enumerate(_entries(path, _read(path), "topics")):
        match entry:
            case {"topic": str(topic)}:
                found.append(topic)
            case _:
                raise JsonFileError(f'{path}: topics[{number}] must be {{"topic": "NAME"}}')
    twice = duplicates(found)
    if twice:
        raise FlatToolError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]"
        )
    return found


def duplicates(values: Iterable[T]) -> list[T]:
    """The values that are there more than once, in order."""
    counted: dict[T, int] = {}
    for value in values:
        counted[value] = counted.get(value, 0) + 1
    return [value for value, count in counted.items() if count > 1]


def plan_document(
    replicas: Mapping[PartitionName, Sequence[int]],
    directories: Mapping[TopicPartitionReplica, str],
) -> dict[str, Any]:
    """The document that --execute reads; a directory that is not known is `any`."""
    return {
        "version": _VERSION,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": list(replicas[partition]),
                "log_dirs": [
                    directories.get(TopicPartitionReplica(partition, broker), ANY_DIRECTORY)
                    for broker in replicas[partition]
                ],
            }
            for partition in sorted(replicas)
        ],
    }


def document_text(document: Mapping[str, Any]) -> str:
    """Return the document on one line, without blanks, as Kafka's tool prints it."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _read(path: str) -> dict[str, Any]:
    data = read_json_file(path)
    if not isinstance(data, dict):
        raise JsonFileError(f"{path}: the document must be a JSON object")
    version = json_int(data.get("version", _VERSION), f'{path}: "version"')
    if version != _VERSION:
        raise JsonFileError(f"{path}: Not supported version field value {version}")
    return data


def _entries(path: str, data: Mapping[str, Any], name: str) -> Collection[Any]:
    found = data.get(name, [])
    if not isinstance(found, list):
        raise JsonFileError(f'{path}: "{name}" must be a list')
    return found
