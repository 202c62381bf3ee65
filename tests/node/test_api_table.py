"""The one table of APIs: every row is whole, and what derives from it says the same."""

import importlib.util
from pathlib import Path

import pytest

from quorate.node.apis import API_TABLE, ROWS, Kind, served
from quorate.wire.registry import APIS, CONTROLLER_API_VERSIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_agrees_with_kafkas_protocol(row):
    assert row.name == APIS[row.key].name
    assert row.key in CONTROLLER_API_VERSIONS
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


def test_the_page_of_apis_is_of_todays_table():
    spec = importlib.util.spec_from_file_location("list_apis", ROOT / "tools/list_apis.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text() == tool.page(), "run: python tools/list_apis.py"
