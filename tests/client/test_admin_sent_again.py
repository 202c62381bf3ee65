"""A change whose first response is lost is sent again: what the second response then says."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from client.fake_node import HANG_UP, FakeNode
from client.test_admin import cluster
from client.test_admin_calls import config
from quorate.base.errors import ErrorCode
from quorate.client import Admin, AsyncAdmin, RequestFailedError
from quorate.client.admin.acls import AclFilter
from quorate.client.admin.elections import ElectionType
from quorate.client.admin.reassignments import PartitionName
from quorate.client.admin.security import ScramDeletion, ScramMechanism
from quorate.client.admin.topics import NewPartitions, TopicCreation
from quorate.node.queued_write import NO_CONTROLLER, wrong_controller
from quorate.wire.messages import (
    AlterPartitionReassignmentsResponse,
    AlterUserScramCredentialsResponse,
    CreateDelegationTokenResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteAclsResponse,
    DeleteTopicsResponse,
    ElectLeadersResponse,
    ExpireDelegationTokenResponse,
)
from quorate.wire.schema import Message

P0 = PartitionName("bills", 0)
LOST = "the response to an earlier attempt was lost, and that attempt may have "
Call = Callable[[Any], Any]


def created(code: ErrorCode) -> CreateTopicsResponse:
    result = CreateTopicsResponse.CreatableTopicResult(name="bills", error_code=code)
    return CreateTopicsResponse(topics=[result])


def deleted(code: ErrorCode) -> Message:
    result = DeleteTopicsResponse.DeletableTopicResult(name="bills", error_code=code)
    return DeleteTopicsResponse(responses=[result])


def extended(code: ErrorCode) -> Message:
    result = CreatePartitionsResponse.CreatePartitionsTopicResult(name="bills", error_code=code)
    return CreatePartitionsResponse(results=[result])


def unscrammed(code: ErrorCode) -> Message:
    cls = AlterUserScramCredentialsResponse
    result = cls.AlterUserScramCredentialsResult(user="eve", error_code=code)
    return cls(results=[result])


def cancelled(code: ErrorCode) -> Message:
    cls = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    partition = cls.ReassignablePartitionResponse(partition_index=0, error_code=code)
    return AlterPartitionReassignmentsResponse(
        responses=[cls(name="bills", partitions=[partition])]
    )


def elected(code: ErrorCode) -> Message:
    cls = ElectLeadersResponse.ReplicaElectionResult
    partition = cls.PartitionResult(partition_id=0, error_code=code)
    result = cls(topic="bills", partition_result=[partition])
    return ElectLeadersResponse(replica_election_results=[result])


def create(admin: Any) -> Any:
    return admin.create_topics([TopicCreation("bills", 1, 1)])


def delete(admin: Any) -> Any:
    return admin.delete_topics(["bills"])


ALREADY: dict[str, tuple[Call, Callable[[ErrorCode], Message], ErrorCode, str]] = {
    "CreateTopics": (create, created, ErrorCode.TOPIC_ALREADY_EXISTS, "created the topic"),
    "DeleteTopics": (delete, deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted the topic"),
    "CreatePartitions": (
        lambda admin: admin.create_partitions({"bills": NewPartitions(3)}),
        extended,
        ErrorCode.INVALID_PARTITIONS,
        "added the partitions",
    ),
    "AlterUserScramCredentials": (
        lambda admin: admin.alter_user_scram_credentials(
            [ScramDeletion("eve", ScramMechanism.SCRAM_SHA_256)]
        ),
        unscrammed,
        ErrorCode.RESOURCE_NOT_FOUND,
        "deleted the credential",
    ),
    "AlterPartitionReassignments": (
        lambda admin: admin.alter_partition_reassignments({P0: None}),
        cancelled,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        "cancelled the reassignment",
    ),
    "ElectLeaders": (
        lambda admin: admin.elect_leaders(ElectionType.PREFERRED, [P0]),
        elected,
        ErrorCode.ELECTION_NOT_NEEDED,
        "elected the leader",
    ),
    "ExpireDelegationToken": (
        lambda admin: admin.expire_delegation_token(b"secret"),
        lambda code: ExpireDelegationTokenResponse(error_code=code),
        ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
        "expired the token",
    ),
}
"""API -> the call, its response, the code of a change that was made already, what the note says."""


def answers(name: str, *scripted: object) -> dict[str, Any]:
    return {f"{name}Request": list(scripted)}


def outcome_of(call: Call, api: str, *scripted: object) -> tuple[Any, list[str]]:
    """The result or error of a call at a node with these answers, and the lines of `on_resend`."""
    lines: list[str] = []
    with FakeNode(answers(api, *scripted)) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        with Admin(config(node), on_resend=lines.append) as admin:
            try:
                found = call(admin)
            except RequestFailedError as error:
                found = error
    return found, lines


def only(found: Any) -> Any:
    """The error of the only item, or of the whole call."""
    return next(iter(found.values())) if isinstance(found, dict) else found


@pytest.mark.parametrize("name", ALREADY)
def test_a_change_that_the_lost_attempt_may_have_made_has_a_note(name: str) -> None:
    call, response, code, made = ALREADY[name]
    found, _ = outcome_of(call, name, HANG_UP, response(code))
    error = only(found)
    assert (error.code, error.reason) == (code, code.message)  # as Kafka's
    assert error.note == f"{LOST}{made} itself"
    assert error.text == f"{code.message}; {error.note}"
    assert str(error) == f"{code.message} ({code.name}); {error.note}"


@pytest.mark.parametrize("name", ALREADY)
def test_a_refusal_of_the_first_attempt_has_no_note(name: str) -> None:
    call, response, code, _ = ALREADY[name]
    found, lines = outcome_of(call, name, response(code))
    assert (only(found).note, only(found).text, lines) == ("", code.message, [])


@pytest.mark.parametrize("name", ALREADY)
def test_another_refusal_after_a_lost_attempt_has_no_note(name: str) -> None:
    call, response, _, _ = ALREADY[name]
    found, lines = outcome_of(call, name, HANG_UP, response(ErrorCode.POLICY_VIOLATION))
    assert (only(found).note, lines) == ("", [])


def test_a_lost_attempt_is_not_forgotten_when_the_controller_moves() -> None:
    moved, exists = ErrorCode.NOT_CONTROLLER, ErrorCode.TOPIC_ALREADY_EXISTS
    found, _ = outcome_of(create, "CreateTopics", HANG_UP, created(moved), created(exists))
    assert "created the topic" in found["bills"].note


def test_an_attempt_that_timed_out_at_the_leader_is_a_lost_one() -> None:
    late = AlterPartitionReassignmentsResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    call, response, code, _ = ALREADY["AlterPartitionReassignments"]
    found, _ = outcome_of(call, "AlterPartitionReassignments", late, response(code))
    assert "cancelled the reassignment" in found[P0].note


@pytest.mark.parametrize(
    ("said", "note"),
    [
        (
            NO_CONTROLLER,
            "the active controller changed during an earlier attempt, and that attempt may",
        ),
        (wrong_controller(2), ""),  # it never was the active one
    ],
)
def test_a_controller_that_resigns_may_have_appended_the_change(said: str, note: str) -> None:
    resigned = created(ErrorCode.NOT_CONTROLLER)
    resigned.topics[0].error_message = said
    exists = created(ErrorCode.TOPIC_ALREADY_EXISTS)
    found, _ = outcome_of(create, "CreateTopics", resigned, exists)
    assert found["bills"].note.startswith(note) and bool(found["bills"].note) == bool(note)


def test_a_validation_changes_nothing() -> None:
    exists = created(ErrorCode.TOPIC_ALREADY_EXISTS)
    only_checked: Call = lambda admin: admin.create_topics([TopicCreation("bills")], True)  # noqa: E731
    assert outcome_of(only_checked, "CreateTopics", HANG_UP, exists)[0]["bills"].note == ""


def test_calls_beside_each_other_have_their_own_notes() -> None:
    exists, unknown = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def both(node: FakeNode) -> list[Any]:
        async with AsyncAdmin(config(node)) as admin:
            calls: list[Coroutine[Any, Any, Any]] = [create(admin), delete(admin)]
            return list(await asyncio.gather(*calls))

    scripted = answers("CreateTopics", HANG_UP, created(exists))
    with FakeNode(scripted | answers("DeleteTopics", deleted(unknown))) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        first, second = asyncio.run(both(node))
    assert "created the topic" in first["bills"].note
    assert not second["bills"].note


def removed() -> Message:
    return DeleteAclsResponse(filter_results=[DeleteAclsResponse.DeleteAclsFilterResult()])


@pytest.mark.parametrize(
    ("name", "call", "response", "said"),
    [
        (
            "CreateDelegationToken",
            lambda admin: admin.create_delegation_token(),
            CreateDelegationTokenResponse(token_id="t"),
            "created another token",
        ),
        ("DeleteAcls", lambda admin: admin.delete_acls([AclFilter()]), removed(), "removed ACLs"),
        (
            "ElectLeaders",
            lambda admin: admin.elect_leaders(ElectionType.PREFERRED),
            ElectLeadersResponse(),
            "elected leaders",
        ),
    ],
)
def test_a_result_that_does_not_show_the_lost_attempt_is_noted(
    name: str, call: Call, response: Message, said: str
) -> None:
    _, lines = outcome_of(call, name, HANG_UP, response)
    assert len(lines) == 1 and said in lines[0]
    assert outcome_of(call, name, response)[1] == []
