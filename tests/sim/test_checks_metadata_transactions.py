"""The check of metadata transactions: each rule broken once, on an image made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.sim.checks.metadata_transactions import MetadataTransactionCheck
from quorate.sim.world.observer import ViolationError
from quorate.sim.world.transactions import TRANSACTION_USERS

pytestmark = pytest.mark.interpreted  # it hands stand-ins to the check


def image(*values: float | None) -> Any:
    pairs = zip(TRANSACTION_USERS, values, strict=True)
    quotas = {(("user", user),): {"rate": value} for user, value in pairs if value is not None}
    return SimpleNamespace(client_quotas=quotas)


def check_with(*ended: float) -> MetadataTransactionCheck:
    check = MetadataTransactionCheck()
    check.began(SimpleNamespace(transactions=SimpleNamespace(ended=set(ended))))  # type: ignore[arg-type]
    return check


@pytest.mark.parametrize("values", [(None, None, None), (1.0, 1.0, 1.0)])
def test_a_whole_transaction_that_has_ended_is_right(values: Any) -> None:
    check_with(1.0).check_image(1, image(*values))


@pytest.mark.parametrize(
    "values", [(1.0, None, None), (2.0, 1.0, 1.0), (2.0, 2.0, 1.0), (3.0, 3.0, 3.0)]
)
def test_a_part_or_one_that_has_not_ended_is_wrong(values: Any) -> None:
    with pytest.raises(ViolationError, match="transaction"):
        check_with(1.0, 2.0).check_image(1, image(*values))


def test_an_open_transaction_at_the_end_is_wrong() -> None:
    check_with().check_closed(1, None)
    with pytest.raises(ViolationError, match="still open"):
        check_with().check_closed(1, "transaction 7")
