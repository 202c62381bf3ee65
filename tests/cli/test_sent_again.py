"""What a tool says of a change that was sent again, because its first response was lost."""

import json
from typing import Any

import pytest

from client.fake_node import HANG_UP, FakeNode
from client.test_admin import BROKER, cluster
from client.test_admin_calls import page
from client.test_admin_sent_again import cancelled, created, deleted, elected, extended, unscrammed
from quorate.base.errors import ErrorCode
from quorate.wire.messages import (
    CreateDelegationTokenResponse,
    DeleteAclsResponse,
    ExpireDelegationTokenResponse,
    ListPartitionReassignmentsResponse,
)
from quorate.wire.schema import Message

LOST = "the response to an earlier attempt was lost, and that attempt may have"
MOVING = ListPartitionReassignmentsResponse.OngoingTopicReassignment


@pytest.fixture
def tool(quorate, tmp_path):
    """Run a tool at a node that loses the first response to the changes of one API."""

    def tool(api: str, response: Message, *words: str, reads: dict[str, Any] | None = None) -> Any:
        with FakeNode({f"{api}Request": [HANG_UP, response], **(reads or {})}, BROKER) as node:
            node.answers["DescribeClusterRequest"] = [cluster(node)]
            file = tmp_path / "file"
            file.write_text(
                '{"version":1,"partitions":[{"topic":"bills","partition":0,"replicas":[1]}]}'
            )
            files = {"FILE": file, "EMPTY": "/dev/null"}
            return quorate(
                *(files.get(each, each) for each in words), "--bootstrap-controller", node.address
            )

    return tool


CONFIG = ("--command-config", "EMPTY")
BILLS = ("--topic", "bills", "--partition", "0")
TOPICS = {"DescribeTopicPartitionsRequest": [page("bills", 0)]}


@pytest.mark.parametrize(
    "case",
    [
        (
            ("topics", "--create", "--topic", "bills"),
            *("CreateTopics", created, ErrorCode.TOPIC_ALREADY_EXISTS, "created the topic", {}),
        ),
        (
            ("topics", "--delete", "--topic", "bills"),
            *("DeleteTopics", deleted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted the topic"),
            TOPICS,
        ),
        (
            ("topics", "--alter", "--topic", "bills", "--partitions", "3"),
            *("CreatePartitions", extended, ErrorCode.INVALID_PARTITIONS, "added the partitions"),
            TOPICS,
        ),
        (
            (
                *("configs", "--alter", "--entity-type", "users", "--entity-name", "eve"),
                *("--delete-config", "SCRAM-SHA-256"),
            ),
            *("AlterUserScramCredentials", unscrammed, ErrorCode.RESOURCE_NOT_FOUND),
            *("deleted the credential", {}),
        ),
        (
            (
                *("delegation-tokens", "--expire", "--hmac", "c2VjcmV0"),
                *("--expiry-time-period", "-1", *CONFIG),
            ),
            "ExpireDelegationToken",
            lambda code: ExpireDelegationTokenResponse(error_code=code),
            *(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "expired the token", {}),
        ),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_the_text_says_that_the_lost_attempt_may_have_made_the_change(
    tool: Any, case: Any, as_json: bool
) -> None:
    words, api, response, code, made, reads = case
    outcome = tool(api, response(code), *words, *["--json"] * as_json, reads=reads)
    said = " ".join((outcome.out + outcome.err).split())
    assert outcome.code == 1
    assert code.message in said and f"; {LOST} {made} itself" in said
    if as_json and reads:
        [row] = json.loads(outcome.out)
        assert row["error"] == f"{code.message}; {LOST} {made} itself"


def test_a_topic_that_may_exist_since_the_lost_attempt_is_no_failure_with_if_not_exists(
    tool: Any,
) -> None:
    exists = created(ErrorCode.TOPIC_ALREADY_EXISTS)
    words = "topics", "--create", "--topic", "bills", "--if-not-exists", "--json"
    code, out, err = tool("CreateTopics", exists, *words)
    assert (code, json.loads(out)) == (0, {"topic": "bills", "created": False})
    assert err == f"Note: {LOST} created the topic itself\n"


def test_a_cancellation_that_the_lost_attempt_may_have_made_is_explained(tool: Any) -> None:
    moving = MOVING.OngoingPartitionReassignment(partition_index=0, adding_replicas=[2])
    topics = [MOVING(name="bills", partitions=[moving])]
    reads = {
        "ListPartitionReassignmentsRequest": [ListPartitionReassignmentsResponse(topics=topics)]
    }
    words = (
        "reassign-partitions",
        "--cancel",
        "--preserve-throttles",
        "--reassignment-json-file",
        "FILE",
        "--json",
    )
    gone = cancelled(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    outcome = tool("AlterPartitionReassignments", gone, *words, reads=reads)
    assert outcome.code == 1
    assert "attempt may have cancelled the reassignment itself" in outcome.err
    [row] = json.loads(outcome.out)["answered"]
    assert row["error"].endswith("may have cancelled the reassignment itself")


@pytest.mark.parametrize(
    ("words", "api", "response", "said"),
    [
        (
            ("delegation-tokens", "--create", "--max-life-time-period", "-1", *CONFIG),
            *("CreateDelegationToken", CreateDelegationTokenResponse(token_id="t")),
            "created another token",
        ),
        (
            ("acls", "--remove", "--topic", "bills", "--force"),
            "DeleteAcls",
            DeleteAclsResponse(filter_results=[DeleteAclsResponse.DeleteAclsFilterResult()]),
            "removed ACLs that this result does not list",
        ),
        (
            (*("leader-election", "--election-type", "preferred"), *BILLS),
            *("ElectLeaders", elected(ErrorCode.ELECTION_NOT_NEEDED)),
            "elected leaders that this result does not list as elected",
        ),
    ],
)
def test_a_result_that_does_not_show_the_lost_attempt_is_noted_on_stderr(
    tool: Any, words: Any, api: str, response: Message, said: str
) -> None:
    outcome = tool(api, response, *words, "--json")
    assert outcome.code == 0
    assert f"Note: {LOST} {said}" in outcome.err
