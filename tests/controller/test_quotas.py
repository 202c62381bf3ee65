"""AlterClientQuotas, rule by rule of ClientQuotaControlManager."""

import math

import pytest
from immutables import Map

from quorate.base.errors import ErrorCode
from quorate.controller import quotas as quota_decisions
from quorate.controller.quotas import Alteration
from quorate.metadata.settings import set_client_quota

USER = (("user", "alice"),)


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


@pytest.mark.parametrize(
    ("entity", "ops", "message"),
    [
        ((), (), "Invalid empty client quota entity"),
        ((("planet", "x"),), (), "Unhandled client quota entity type: planet"),
        ((("user", ""),), (), "Empty user not supported"),
        (
            (("ip", "1.2.3.4"), ("user", "a")),
            (),
            "Invalid quota entity combination, IP entity shouldnot be combined with "
            "User or ClientId",
        ),
        ((("ip", "a b"),), (), "a b is not a valid IP or resolvable host."),
        *(
            ((("ip", host),), (), f"{host} is not a valid IP or resolvable host.")
            for host in ("no.such.host.invalid", "localhost", "999.1.1.1", "fe80::1%nosuch")
        ),
        (USER, (("nonsense", 1.0),), "Invalid configuration key nonsense"),
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


@pytest.mark.parametrize("address", ["10.0.0.1", "::1", "::ffff:10.0.0.1"])
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
