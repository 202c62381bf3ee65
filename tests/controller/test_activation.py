"""What a new active controller writes first (`ActivationRecordsGenerator`)."""

import random

import pytest
from immutables import Map

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.errors import QuorateError
from quorate.base.notes import Warn
from quorate.controller.activation import ACTIVATION, Bootstrap
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.liveness import Liveness
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    encode_record,
)
from quorate.node.metadata_machine import MetadataMachine
from quorate.raft.values import ControlState
from quorate.replica.state_machine import CommittedBatch


def level(value, name="metadata.version"):
    return FeatureLevelRecord(name=name, feature_level=value)


def activate(*committed, bootstrap=()):
    machine = MetadataMachine()
    if committed:
        values = [encode_record(record, 0) for record in committed]
        machine.apply(CommittedBatch(0, len(values) - 1, 1, 1, values))
    config = ControllerConfig(1, "cluster", file=Map({"min.insync.replicas": "2"}))
    context = Context(config, ControlState(0, ()), 0, random.Random(1), Liveness(9_000))
    first = tuple(encode_record(record, 0) for record in bootstrap)
    return ACTIVATION.decide(machine.head, Bootstrap(first), context)


def kinds(result):
    return [type(record).__name__.removesuffix("Record") for record in result.records]


@kafka_scenario("QuorumControllerTest", "activationRecordsNonEmptyLog")
def test_a_log_with_a_metadata_version_needs_nothing():
    assert list(activate(level(20)).records) == []


@kafka_scenario("ActivationRecordsGeneratorTest", "activationMessageForEmptyLogAtMv3_6")
@kafka_guarantee("FeatureControlManagerTest", "metadataVersion")
def test_an_empty_log_begins_with_the_bootstrap_records_in_a_transaction():
    result = activate(bootstrap=[level(20), level(1, "group.version")])
    assert kinds(result) == ["BeginTransaction", "FeatureLevel", "FeatureLevel", "EndTransaction"]
    assert result.records[0].name == "Bootstrap records"
    assert not result.atomic
    assert "writing 2 bootstrap record(s)" in result.notes[0]


@kafka_scenario("QuorumControllerTest", "activationRecords33", "activationRecords34")
@kafka_scenario(
    "ActivationRecordsGeneratorTest",
    "activationMessageForEmptyLog",
    "activationMessageForEmptyLogAtMv3_4",
)
@pytest.mark.parametrize("metadata_version", [7, 8, 12])
def test_without_transactions_the_bootstrap_records_are_atomic(metadata_version):
    result = activate(bootstrap=[level(metadata_version)])
    assert (kinds(result), result.atomic) == (["FeatureLevel"], True)


@kafka_scenario("QuorumControllerTest", "elrEnabledByDefault")
def test_with_eligible_leader_replicas_the_cluster_gets_min_insync_replicas():
    elr = level(1, "eligible.leader.replicas.version")
    result = activate(bootstrap=[level(25), elr])
    [config] = [record for record in result.records if isinstance(record, ConfigRecord)]
    assert (config.resource_name, config.name, config.value) == ("", "min.insync.replicas", "2")


@kafka_scenario("QuorumControllerTest", "activationRecordsPartialTransaction")
def test_an_open_transaction_is_aborted():
    result = activate(level(20), BeginTransactionRecord(name="t"))
    assert list(result.records) == [AbortTransactionRecord(reason="Controller failover")]
    assert result.notes == ("Aborting the transaction open at offset 1",)
    assert isinstance(result.notes[0], Warn)


@kafka_scenario(
    "ActivationRecordsGeneratorTest", "activationMessageForEmptyLogAtMv4_0WithTransactionAndElr"
)
def test_an_open_bootstrap_transaction_is_written_again_with_what_elr_needs():
    begun = BeginTransactionRecord(name="Bootstrap records")
    result = activate(begun, bootstrap=[level(23), level(1, "eligible.leader.replicas.version")])
    assert not result.atomic
    assert sorted(kinds(result)) == [
        *("AbortTransaction", "BeginTransaction", "Config", "EndTransaction"),
        *("FeatureLevel", "FeatureLevel"),
    ]


@kafka_scenario("QuorumControllerTest", "activationRecordsPartialBootstrap")
@kafka_scenario(
    "ActivationRecordsGeneratorTest", "activationMessageForEmptyLogAtMv3_6WithTransaction"
)
def test_an_open_bootstrap_transaction_is_aborted_and_written_again():
    result = activate(BeginTransactionRecord(name="Bootstrap records"), level(20))
    assert kinds(result) == [
        "AbortTransaction",
        "BeginTransaction",
        "FeatureLevel",
        "EndTransaction",
    ]


def test_an_ended_transaction_counts():
    result = activate(BeginTransactionRecord(name="t"), level(20), EndTransactionRecord())
    assert list(result.records) == []


@kafka_scenario("QuorumControllerTest", "activationRecordsPartialTransactionNoSupport")
def test_an_open_transaction_before_there_were_any_is_a_damaged_log():
    with pytest.raises(QuorateError, match="knows no transactions"):
        activate(level(12), BeginTransactionRecord(name="t"))
