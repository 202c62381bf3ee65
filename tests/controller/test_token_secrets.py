"""What it costs to look a delegation token up by its secret, and to describe many."""

from unittest.mock import Mock

import pytest

from controller.test_delegation_tokens import (
    ALICE,
    BOB,
    LONG_MAX,
    SECRET,
    cluster,
    create,
    described_by,
    expire,
    renew,
)
from narrow import as_any
from quorate.base.errors import ErrorCode
from quorate.controller import token_secrets
from quorate.controller.building import LOOKED_AT, at_once
from quorate.controller.delegation_tokens import EXPIRE_DELEGATION_TOKENS, RENEW_DELEGATION_TOKEN
from quorate.controller.token_secrets import COMPUTED, TokenSecrets, token_hmac
from quorate.formats.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from quorate.wire.messages import DescribeDelegationTokenRequest, RenewDelegationTokenRequest

NOT_FOUND = (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, 0)


@pytest.fixture
def computed(monkeypatch):
    """Counts the secrets that are computed."""
    counted = Mock(wraps=token_hmac)
    monkeypatch.setattr(token_secrets, "token_hmac", counted)
    return counted


def give(made, *ids):
    made.write(
        [
            DelegationTokenRecord(
                owner=ALICE,
                requester=ALICE,
                max_timestamp=LONG_MAX,
                expiration_timestamp=LONG_MAX,
                token_id=token_id,
            )
            for token_id in ids
        ]
    )


def load(made):
    """All that is decided is committed, as after a snapshot."""
    made.head.set_committed(made.image, made.image, None, None)


def counts_of(steps, computed):
    """How many secrets each step computed."""
    counts, before = [], computed.call_count
    for _ in steps:
        counts.append(computed.call_count - before)
        before = computed.call_count
    return [*counts, computed.call_count - before]


def guess(made):
    request = RenewDelegationTokenRequest(hmac=b"guess", renew_period_ms=5)
    return RENEW_DELEGATION_TOKEN.decide(made.head, request, made.context())


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_guess_costs_one_lookup_however_many_tokens_there_are(computed, is_loaded):
    """180 guesses against 50,000 tokens held the loop of the active controller for seconds."""
    made, count = cluster(), LOOKED_AT + COMPUTED + 1
    give(made, *(f"t{number}" for number in range(count)))
    if is_loaded:
        load(made)
        made.head.token_secrets = TokenSecrets()
    counts = counts_of(guess(made), computed)
    assert max(counts) == COMPUTED and sum(counts) == count, "once, and in steps"
    for _ in range(3):
        assert create(made, BOB).error_code == 0
        for ask in (renew, expire):
            assert ask(made, b"guess") == NOT_FOUND
    assert computed.call_count == count + 3, "one for each new token"
    assert counts_of(guess(made), computed) == [0]
    for token_id in ("t7", f"t{count - 1}"):
        assert renew(made, token_hmac(SECRET, token_id))[0] is ErrorCode.NONE


def test_a_token_is_found_whichever_way_it_came_and_went():
    """By a decision, or by another leader after the head went back."""
    made = cluster()
    load(made)
    lost = create(made).hmac
    assert renew(made, lost)[0] is ErrorCode.NONE
    made.head.revert()
    assert renew(made, lost) == NOT_FOUND
    give(made, "a")
    load(made)
    give(made, "b")
    made.write([RemoveDelegationTokenRecord(token_id="a")])
    assert renew(made, token_hmac(SECRET, "a")) == NOT_FOUND
    assert renew(made, token_hmac(SECRET, "b"))[0] is ErrorCode.NONE
    give(made, "a")
    assert renew(made, token_hmac(SECRET, "a"))[0] is ErrorCode.NONE


def test_the_secrets_of_removed_tokens_are_forgotten(computed):
    made = cluster()
    for _ in range(4):
        ids = [f"t{computed.call_count}-{number}" for number in range(800)]
        give(made, *ids)
        assert renew(made, b"guess") == NOT_FOUND
        made.write([RemoveDelegationTokenRecord(token_id=token_id) for token_id in ids])
    secrets = vars(made.head.token_secrets)
    assert all(len(secrets[name]) <= 1_800 for name in ("_secrets", "_ids", "_waiting"))


def test_tokens_are_described_in_steps_and_computed_once(computed):
    """One request took 1.7 s, on a follower too."""
    made = cluster()
    give(made, *(f"t{number}" for number in range(2_001)))
    load(made)
    request = DescribeDelegationTokenRequest(owners=None)
    assert max(counts_of(described_by(made, request, ALICE), computed)) <= COMPUTED
    assert computed.call_count == 2_001
    assert len(at_once(described_by(made, request, ALICE)).tokens) == 2_001
    assert computed.call_count == 2_001


def test_each_token_is_compared_once_however_many_owners_are_named():
    """A request of 1 MiB names tens of thousands: their product with the tokens took minutes."""
    made = cluster()
    give(made, *(f"t{number}" for number in range(2_000)))
    owner = DescribeDelegationTokenRequest.DescribeDelegationTokenOwner
    owners = [owner(principal_type="User", principal_name=f"u{number}") for number in range(50_000)]
    alice = owner(principal_type="User", principal_name="alice")
    for asked, found in ((owners, 0), ([*owners, alice], 2_000)):
        request = DescribeDelegationTokenRequest(owners=asked)
        assert len(at_once(described_by(made, request, ALICE)).tokens) == found


def test_a_sweep_looks_at_a_bounded_number_of_tokens_in_one_step():
    made = cluster()
    give(made, *(f"t{number}" for number in range(2 * LOOKED_AT + 1)))
    steps = as_any(EXPIRE_DELEGATION_TOKENS.decide(made.head, None, made.context()))
    assert len(list(steps)) == 2
