"""The one table of APIs: every row is whole, and what derives from it says the same."""

import importlib.util
import pkgutil
from pathlib import Path

import pytest

from narrow import not_none
from quorate import controller
from quorate.controller.activation import NO_OP
from quorate.controller.result import WriteOperation
from quorate.node.api_row import Audit, Kind
from quorate.node.apis import API_TABLE, ROWS, served
from quorate.node.audit import SHOWN
from quorate.node.client_quotas import is_exempt
from quorate.node.own_writes import OWN_REASONS
from quorate.wire.registry import APIS, CONTROLLER_API_VERSIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_agrees_with_kafkas_protocol(row):
    assert row.name == APIS[row.key].name
    assert (row.key, *CONTROLLER_API_VERSIONS[row.key]) in served()
    assert row.max_bytes >= 64 * 1024


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_has_what_its_kind_needs(row):
    assert (row.operation is not None) == (row.kind is Kind.WRITE)
    is_envelope = row.name == "Envelope"
    assert (row.handler is not None) == (row.kind is not Kind.WRITE and not is_envelope)
    if row.operation is not None:
        assert row.operation.name == row.name


def test_keys_are_unique_and_in_order():
    assert [row.key for row in ROWS] == sorted(API_TABLE)


def test_every_row_is_advertised():
    assert [key for key, _, _ in served()] == sorted(API_TABLE)


def test_a_login_needs_no_permission_and_tokens_are_their_owners_and_renewers():
    free = [
        "SaslHandshake",
        "ApiVersions",
        "SaslAuthenticate",
        "RenewDelegationToken",
        "ExpireDelegationToken",
    ]
    assert [row.name for row in ROWS if row.acl is None] == free


FROM_KAFKA = {
    "forwardable": [
        *(19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 67, 80, 81, 94)
    ],
    "exempt": [1, 52, 53, 54, 55, 56, 59, 80, 81, 82],
    "strict": [(19, 6), (20, 5), (37, 3)],
}
"""`ApiKeys.forwardable`; what `ControllerApis` answers with `sendResponseExemptThrottle`; what asks
`newStrictQuotaFor` from a version on."""


def test_what_is_forwarded_throttled_and_strict_is_kafkas():
    assert [row.key for row in ROWS if row.forwardable] == FROM_KAFKA["forwardable"]
    assert [row.key for row in ROWS if is_exempt(row.key)] == FROM_KAFKA["exempt"]
    strict = [(row.key, row.strict_since) for row in ROWS if row.strict_since is not None]
    assert strict == FROM_KAFKA["strict"]
    assert is_exempt(0)  # not served: the connection is closed


def test_the_audit_trail_has_every_write_and_the_changes_of_voters():
    audited = {row.key for row in ROWS if row.audit is not Audit.NEVER}
    assert audited == {row.key for row in ROWS if row.kind is Kind.WRITE} | {80, 81}
    routine = [row.name for row in ROWS if row.audit is Audit.ROUTINE]
    assert routine == [
        "AlterPartition",
        "BrokerHeartbeat",
        "AllocateProducerIds",
        "AssignReplicasToDirs",
    ]


def fields_of(struct):
    for field in struct.schema.fields:
        yield field.name
        if isinstance(field.element, type):
            yield from fields_of(field.element)


def test_each_field_that_an_audit_entry_shows_is_of_a_request():
    requests = [APIS[row.key].request for row in ROWS]
    assert {name for each in requests for name in fields_of(each)} >= SHOWN


def test_an_operation_is_a_row_or_an_own_write_with_a_reason():
    names = [module.name for module in pkgutil.iter_modules(controller.__path__)]
    modules = [importlib.import_module(f"{controller.__name__}.{name}") for name in names]
    found = {value for each in modules for value in vars(each).values() if is_operation(value)}
    in_table = {row.operation for row in ROWS if row.operation is not None}
    assert in_table <= found
    assert found - in_table == {*OWN_REASONS, NO_OP}


def is_operation(value):
    return isinstance(value, WriteOperation)


def test_the_page_of_apis_is_of_todays_table():
    path = ROOT / "tools/list_apis.py"
    spec = not_none(importlib.util.spec_from_file_location("list_apis", path))
    tool = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(tool)
    assert tool.PAGE.read_text() == tool.page(), "run: python tools/list_apis.py"
