"""What a broker forwards, and the texts of failed requests, are those of Kafka's jars."""

import functools
from collections.abc import Generator
from pathlib import Path

import pytest

from interop.java import KAFKA_4_4, libs
from interop.process import run_tool
from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.configs import IncrementalAlterConfigs
from quorate.node.apis import API_TABLE
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ControllerRegistrationRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CASES = {
    "not controller": (ErrorCode.NOT_CONTROLLER, "The active controller appears to be node 3."),
    "unknown": (ErrorCode.UNKNOWN_SERVER_ERROR, None),
    "timed out": (ErrorCode.REQUEST_TIMED_OUT, None),
    "shutting down": (ErrorCode.REQUEST_TIMED_OUT, "The controller is shutting down."),
    "policy": (ErrorCode.POLICY_VIOLATION, "refused"),
}
REQUESTS = {
    19: CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")]),
    20: DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="t")]),
    33: AlterConfigsRequest(resources=[AlterConfigsRequest.AlterConfigsResource()]),
    37: CreatePartitionsRequest(topics=[CreatePartitionsRequest.CreatePartitionsTopic(name="t")]),
    43: ElectLeadersRequest(
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])]
    ),
    44: IncrementalAlterConfigs(
        IncrementalAlterConfigsRequest(
            resources=[IncrementalAlterConfigsRequest.AlterConfigsResource()]
        )
    ),
    45: AlterPartitionReassignmentsRequest(
        topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name="t")]
    ),
    49: AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData()]),
    57: UpdateFeaturesRequest(),
    64: UnregisterBrokerRequest(),
    94: UnregisterControllerRequest(),
    70: ControllerRegistrationRequest(),
}
JAVAS_OWN = {(64, "unknown"), (94, "unknown")}
"""The text of a Java exception, which no other node has."""


@functools.cache
def rows() -> list[list[str]]:
    source = Path(__file__).with_name("ApiTable.java")
    run = run_tool(["java", "-cp", f"{libs(KAFKA_4_4)}/*", str(source)], timeout=120)
    assert run.returncode == 0, run
    return [line.split("\t") for line in run.stdout.splitlines()]


def text_of(message) -> str | None:
    """Of the response, or of the first item in it that has one."""
    fields = {field.name: getattr(message, field.name) for field in type(message).schema.fields}
    if "error_message" in fields:
        return fields["error_message"]
    return text_of(next(value for value in fields.values() if isinstance(value, list))[0])


def test_brokers_forward_what_kafkas_do():
    ours = [key for key, row in API_TABLE.items() if row.forwardable]
    assert ours == [int(row[1]) for row in rows() if row[0] == "forwardable"]


def test_the_texts_of_failed_requests_are_kafkas():
    compared = 0
    for _, key, case, text in (row for row in rows() if row[0] == "text"):
        if (int(key), case) in JAVAS_OWN:
            continue
        operation = not_none(API_TABLE[int(key)].operation)
        failed = operation.failed(REQUESTS[int(key)], *CASES[case])
        response = at_once(failed) if isinstance(failed, Generator) else failed
        assert (key, case, str(text_of(response) or "null")) == (key, case, text)
        compared += 1
    assert compared == len(REQUESTS) * len(CASES) - len(JAVAS_OWN)
