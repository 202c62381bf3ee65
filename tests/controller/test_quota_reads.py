"""DescribeClientQuotas: which entities a filter finds (`ClientQuotasImage.describe`)."""

import pytest
from immutables import Map

from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.quota_reads import describe_quotas
from quorate.metadata.image import Image
from quorate.wire.messages import DescribeClientQuotasRequest

EXACT, DEFAULT, ANY = 0, 1, 2
ALICE = (("user", "alice"),)
ANYBODY = (("user", None),)
BOTH = (("client-id", "app"), ("user", "alice"))
HOST = (("ip", "10.0.0.1"),)
IMAGE = Image(
    client_quotas=Map(
        {
            ALICE: Map({"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0}),
            ANYBODY: Map({"request_percentage": 3.0}),
            BOTH: Map({"producer_byte_rate": 4.0}),
            HOST: Map({"connection_creation_rate": 5.0}),
        }
    )
)


def ask(*components, strict=False):
    component = DescribeClientQuotasRequest.ComponentData
    request = DescribeClientQuotasRequest(
        components=[
            component(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ],
        strict=strict,
    )
    return at_once(describe_quotas(IMAGE, request))


def found(*components, strict=False):
    entries = ask(*components, strict=strict).entries
    return {tuple((e.entity_type, e.entity_name) for e in entry.entity) for entry in entries}


def test_filters():
    assert found() == {ALICE, ANYBODY, BOTH, HOST}
    assert found(("user", EXACT, "alice")) == {ALICE, BOTH}
    assert found(("user", EXACT, "alice"), strict=True) == {ALICE}
    assert found(("user", DEFAULT, None)) == {ANYBODY}
    assert found(("user", ANY, None), strict=True) == {ALICE, ANYBODY}
    assert found(("user", EXACT, "alice"), ("client-id", ANY, None)) == {BOTH}
    assert found(("ip", EXACT, "10.0.0.2")) == set()
    assert found(strict=True) == set()


def test_the_quotas_of_an_entity_are_listed_by_name():
    [entry] = ask(("user", EXACT, "alice"), strict=True).entries
    quotas = [(each.key, each.value) for each in entry.values]
    assert quotas == [("consumer_byte_rate", 2.0), ("producer_byte_rate", 1.0)]


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST, "Invalid empty entity type."),
        (
            [("user", ANY, None), ("user", EXACT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
        ),
        ([("cat", ANY, None)], ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type cat"),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST, "set match string to null"),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST, "MATCH_TYPE_DEFAULT, but also"),
        ([("user", ANY, "a")], ErrorCode.INVALID_REQUEST, "MATCH_TYPE_SPECIFIED, but also"),
        ([("user", 9, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 9"),
        (
            [("ip", ANY, None), ("user", ANY, None)],
            ErrorCode.INVALID_REQUEST,
            "IP filter component should not be used with user or clientId",
        ),
    ],
)
def test_a_filter_that_contradicts_itself_is_refused(components, error, message):
    response = ask(*components)
    assert (response.error_code, response.entries) == (error, None)
    assert message in response.error_message
