"""AlterClientQuotas, rule by rule of ClientQuotaControlManager."""

import math

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.controller import quotas as quota_decisions
from quorate.controller.quotas import Alteration
from quorate.metadata.settings import Quotas, set_client_quota

USER = (("user", "alice"),)
KEY = "request_percentage"


def alter(quotas, alterations):
    """What the decision returns at its end."""
    steps = quota_decisions.alter(quotas, alterations)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def change(*ops, entity=USER, quotas=None):
    return alter(Map() if quotas is None else quotas, [Alteration(entity, ops)])


def quotas_of(records, quotas=None):
    quotas = Map() if quotas is None else quotas
    for record in records:
        quotas = set_client_quota(quotas, record)
    return quotas


def test_a_new_quota_is_one_record_and_replays_to_what_was_asked():
    records, outcomes = change(("producer_byte_rate", 1000.0))
    assert [o.error for o in outcomes] == [ErrorCode.NONE]
    assert quotas_of(records)[USER]["producer_byte_rate"] == 1000.0


def test_what_does_not_change_writes_nothing():
    quotas = quotas_of(change(("request_percentage", 12.5))[0])
    assert change(("request_percentage", 12.5), quotas=quotas)[0] == []


def test_null_removes_what_is_there_and_ignores_what_is_not():
    quotas = quotas_of(change(("request_percentage", 12.5))[0])
    records, _ = change(("request_percentage", None), quotas=quotas)
    assert quotas_of(records, quotas) == Map()
    assert change(("request_percentage", None))[0] == []


@kafka_scenario(
    "ClientQuotaControlManagerTest",
    "invalidEntityTypes",
    "invalidQuotaKeys",
    "isValidIpEntityWithUnresolvableHostname",
    "configKeysForEmptyEntity",
    "configKeysForEntityTypeWithIpAndUser",
    "configKeysForEntityTypeWithIpAndClientId",
    "configKeysForUnresolvableIpEntity",
    "validateQuotaKeyValueForUnknownQuota",
    "validateQuotaKeyValueForZeroQuota",
    "validateQuotaKeyValueForNegativeQuota",
    "validateQuotaKeyValueForConsumerByteRateTooLarge",
    "validateQuotaKeyValueForFractionalConsumerByteRate",
)
@pytest.mark.parametrize(
    ("entity", "ops", "message"),
    [
        ((), (), "Invalid empty client quota entity"),
        ((("planet", "x"),), (), "Unhandled client quota entity type: planet"),
        ((*USER, ("planet", "x")), (), "Unhandled client quota entity type: planet"),
        ((("ip", "1.2.3.4"), ("", "x")), (), "Unhandled client quota entity type: "),
        # The first one in the order of Java's hash map is named.
        ((("b", "x"), ("a", "x")), (), "Unhandled client quota entity type: a"),
        ((("planet", "x"), ("user", "")), (), "Empty user not supported"),
        ((("user", ""),), (), "Empty user not supported"),
        *(
            (
                (("ip", "1.2.3.4"), (other, "a")),
                (),
                "Invalid quota entity combination, IP entity shouldnot be combined with "
                "User or ClientId",
            )
            for other in ("user", "client-id")
        ),
        ((("ip", "a b"),), (), "a b is not a valid IP or resolvable host."),
        *(
            ((("ip", host),), (), f"{host} is not a valid IP or resolvable host.")
            for host in ("no.such.host.invalid", "localhost", "999.1.1.1", "fe80::1%nosuch")
        ),
        (USER, (("nonsense", 1.0),), "Invalid configuration key nonsense"),
        (
            USER,
            (("request_percentage", 99.9), ("nonsense", 0.0)),
            "Invalid configuration key nonsense",
        ),
        (
            USER,
            (("consumer_byte_rate", -2.0),),
            "Quota consumer_byte_rate must be greater than 0",
        ),
        (
            USER,
            (("consumer_byte_rate", 2.0**65),),
            "Proposed value for consumer_byte_rate is too large for a LONG.",
        ),
        (
            USER,
            (("connection_creation_rate", 1.0),),
            "Invalid configuration key connection_creation_rate",
        ),
        (
            USER,
            (("producer_byte_rate", 0.0),),
            "Quota producer_byte_rate must be greater than 0",
        ),
        *(
            (USER, ((quota, value),), f"Quota {quota} must be a finite number")
            for quota in ("producer_byte_rate", "request_percentage")
            for value in (math.nan, math.inf, -math.inf)
        ),
        (
            USER,
            (("connection_creation_rate", math.nan),),
            "Invalid configuration key connection_creation_rate",
        ),
        (
            USER,
            (("producer_byte_rate", 1.5),),
            "producer_byte_rate cannot be a fractional value.",
        ),
        (
            (("ip", None),),
            (("connection_creation_rate", 2.0**31),),
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (
            USER,
            (("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)),
            "Ignoring duplicate entity ClientQuotaEntity(entries={user=alice})",
        ),
    ],
)
def test_a_wrong_change_is_refused_with_kafkas_words(entity, ops, message):
    records, [outcome] = change(*ops, entity=entity)
    assert records == []
    assert (outcome.error, outcome.message) == (ErrorCode.INVALID_REQUEST, message)


OF_CLIENTS = {
    "producer_byte_rate",
    "consumer_byte_rate",
    "controller_mutation_rate",
    "request_percentage",
}
OF_ADDRESSES = {"connection_creation_rate"}


@kafka_scenario(
    "ClientQuotaControlManagerTest",
    "configKeysForEntityTypeWithUser",
    "configKeysForEntityTypeWithClientId",
    "configKeysForEntityTypeWithUserAndClientId",
    "configKeysForEntityTypeWithIp",
)
@pytest.mark.parametrize(
    ("kinds", "allowed"),
    [
        (["user"], OF_CLIENTS),
        (["client-id"], OF_CLIENTS),
        (["user", "client-id"], OF_CLIENTS),
        (["ip"], OF_ADDRESSES),
    ],
)
def test_each_kind_of_entity_has_its_quotas(kinds, allowed):
    entity = tuple((kind, "127.0.0.1" if kind == "ip" else "foo") for kind in kinds)
    found = set()
    for key in OF_CLIENTS | OF_ADDRESSES:
        _, [outcome] = change((key, 1.0), entity=entity)
        if outcome.error == ErrorCode.NONE:
            found.add(key)
        else:
            assert outcome.message == f"Invalid configuration key {key}"
    assert found == allowed


@kafka_scenario(
    "ClientQuotaControlManagerTest",
    "validateQuotaKeyValueForValidConsumerByteRate",
    "validateQuotaKeyValueForValidConsumerByteRate2",
    "validateQuotaKeyValueForValidRequestPercentage",
)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("consumer_byte_rate", 1234.0),
        ("consumer_byte_rate", 1235.0000001),
        ("request_percentage", 56.62367),
    ],
)
def test_a_value_is_written_as_it_is(key, value):
    [record], [outcome] = change((key, value))
    assert (outcome.error, record.key, record.value) == (ErrorCode.NONE, key, value)


@kafka_scenario("ClientQuotaControlManagerTest", "alterAndRemove")
def test_the_quotas_of_an_entity_through_their_life():
    quotas: Quotas = Map()
    for ops, left in (
        ({"producer_byte_rate": 10000.0}, {"producer_byte_rate": 10000.0}),
        (
            {"producer_byte_rate": 10001.0, "consumer_byte_rate": 20000.0},
            {"producer_byte_rate": 10001.0, "consumer_byte_rate": 20000.0},
        ),
        ({"producer_byte_rate": None}, {"consumer_byte_rate": 20000.0}),
        ({"request_percentage": None}, {"consumer_byte_rate": 20000.0}),
        ({"consumer_byte_rate": None}, None),
        ({"consumer_byte_rate": None}, None),
        (
            {
                "request_percentage": 99.0,
                "controller_mutation_rate": None,
                "producer_byte_rate": 10002.0,
            },
            {"request_percentage": 99.0, "producer_byte_rate": 10002.0},
        ),
    ):
        records, [outcome] = change(*ops.items(), quotas=quotas)
        quotas = quotas_of(records, quotas)
        assert outcome.error == ErrorCode.NONE
        assert (dict(quotas[USER]) if USER in quotas else None) == left


@kafka_scenario("ClientQuotaControlManagerTest", "entityTypes", "isValidIpEntityWithNull")
def test_every_kind_of_entity_has_one_record_for_each_quota():
    """With names and defaults, each for itself."""
    users, clients = ("user-1", None), ("client-1", None)
    entities = [
        *((("user", user), ("client-id", client)) for user in users for client in clients),
        *((("user", user),) for user in users),
        *((("client-id", client),) for client in clients),
        (("ip", None),),
    ]
    changes = [
        Alteration(
            entity, (("connection_creation_rate" if entity[0][0] == "ip" else KEY, number + 0.0),)
        )
        for number, entity in enumerate(entities, 1)
    ]
    records, outcomes = alter(Map(), changes)
    assert {outcome.error for outcome in outcomes} == {ErrorCode.NONE}
    written = [
        ({(each.entity_type, each.entity_name) for each in record.entity}, record.value)
        for record in records
    ]
    assert written == [(set(entity), number) for number, entity in enumerate(entities, 1)]
    assert len(quotas_of(records)) == len(entities)


@kafka_scenario("ClientQuotaControlManagerTest", "isValidIpEntityWithLocalhost")
@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "::1", "::ffff:10.0.0.1"])
def test_an_address_is_an_ip(address):
    records, [outcome] = change(("connection_creation_rate", 1.0), entity=(("ip", address),))
    assert (outcome.error, len(records)) == (ErrorCode.NONE, 1)


def test_the_quota_of_a_host_that_kafka_wrote_can_be_changed_and_removed():
    host = (("ip", "broker.example"),)
    quotas = Map({host: Map({"connection_creation_rate": 1.0})})
    for value in (2.0, None):
        records, [outcome] = change(("connection_creation_rate", value), entity=host, quotas=quotas)
        assert (outcome.error, len(records)) == (ErrorCode.NONE, 1)


@pytest.mark.parametrize(("many", "written"), [(10_000, 10_000), (10_001, 0)])
def test_too_many_records_at_once_are_refused_whole(many, written):
    users = [
        Alteration((("user", f"user {i}"),), (("request_percentage", 1.0),)) for i in range(many)
    ]
    records, outcomes = alter(Map(), users)
    said: tuple[ErrorCode, str | None] = (ErrorCode.NONE, None)
    if not written:
        text = "Request parameters do not satisfy the configured policy."
        said = (ErrorCode.POLICY_VIOLATION, text)
    assert len(records) == written
    assert {(o.error, o.message) for o in outcomes} == {said}
    assert len(outcomes) == many


def test_a_wrong_entity_harms_no_other():
    records, outcomes = alter(
        Map(),
        [
            Alteration(USER, (("nonsense", 1.0),)),
            Alteration((("client-id", None),), (("consumer_byte_rate", 5.0),)),
        ],
    )
    assert [o.error for o in outcomes] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert [r.key for r in records] == ["consumer_byte_rate"]
