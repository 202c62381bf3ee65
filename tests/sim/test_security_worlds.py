"""Worlds of controllers with ACLs, credentials, tokens and producer ids: bugs of each of them are found."""

from __future__ import annotations

import pytest

from mutants.edit import begin_with, drop, replace
from mutants.mutant import Mutant, planted
from quorate.controller import acls, delegation_tokens, producer_ids, scram_credentials
from quorate.metadata import security as replayed
from quorate.node import read_handlers
from quorate.security import scram_keys
from quorate.sim.plan.draw_controllers import CONTROLLERS
from quorate.sim.run.run import checked, run_seed

FOUND = (
    # -- ACLs ----------------------------------------------------------------------------------
    (
        "acls",
        8,
        Mutant(
            "acl-twice",
            "an entry that is there already gets another id",
            acls.CREATE_ACLS.decide,
            replace("yield from _is_known(image, acl, known)", "False"),
        ),
    ),
    (
        "acls",
        4,
        Mutant(
            "acl-not-removed",
            "entries are reported as removed, and no record removes them",
            acls.DELETE_ACLS.decide,
            replace("in_order(removed)", "in_order(())"),
        ),
    ),
    (
        "images equal records",
        4,
        Mutant(
            "acl-stays-in-index",
            "an authorizer still finds an entry that is removed",
            replayed.remove_acl,
            replace("without_entry(image, record.id, acl)", "image"),
        ),
    ),
    (
        "reads are committed",
        9,
        Mutant(
            "acl-read-of-head",
            "DescribeAcls shows entries that are not committed",
            read_handlers.describe_acls,
            replace("host.image", "host.head.image"),
        ),
    ),
    # -- credentials ---------------------------------------------------------------------------
    (
        "scram credentials",
        15,
        Mutant(
            "credential-altered-twice",
            "the last of two changes of a user counts",
            scram_credentials.ALTER_USER_SCRAM_CREDENTIALS.decide,
            replace("changes.pop(item.name, None) is not None", "False"),
        ),
    ),
    (
        "scram credentials",
        8,
        Mutant(
            "credential-of-plain-key",
            "the client key is stored in place of its hash",
            scram_keys.credential_record,
            replace("hashlib.new(mechanism.hash, client_key).digest()", "client_key"),
        ),
    ),
    (
        "images equal records",
        13,
        Mutant(
            "credential-stays",
            "the record that removes a credential has no effect",
            replayed.remove_scram,
            begin_with("return scram"),
        ),
    ),
    # -- tokens --------------------------------------------------------------------------------
    (
        "delegation tokens",
        8,
        Mutant(
            "token-removed-early",
            "a token is removed before it expires",
            delegation_tokens.EXPIRE_DELEGATION_TOKENS.decide,
            replace("_is_expired(token, _)", "True"),
        ),
    ),
    (
        "liveness",
        2,
        Mutant(
            "token-not-swept",
            "an expired token is never removed",
            delegation_tokens.EXPIRE_DELEGATION_TOKENS.decide,
            begin_with("return Result((), False)"),
        ),
    ),
    (
        "delegation tokens",
        2,
        Mutant(
            "token-of-everybody",
            "any principal renews a token",
            delegation_tokens.RENEW_DELEGATION_TOKEN.decide,
            replace("_is_owner_or_renewer(...)", "True"),
        ),
    ),
    (
        "delegation tokens",
        2,
        Mutant(
            "token-lives-on",
            "a renewed token is valid beyond its maximum time",
            delegation_tokens.RENEW_DELEGATION_TOKEN.decide,
            replace("min(token.max_timestamp, _later(now_ms, period_ms))", "now_ms + period_ms"),
        ),
    ),
    # -- producer ids --------------------------------------------------------------------------
    (
        "producer ids",
        6,
        Mutant(
            "ids-for-a-former-process",
            "a broker's former process gets producer ids",
            producer_ids.ALLOCATE_PRODUCER_IDS.decide,
            drop("check_epoch(...)"),
        ),
    ),
    (
        "producer ids",
        6,
        Mutant(
            "ids-overlap",
            "the last id of a block is the first of the next one",
            producer_ids.ALLOCATE_PRODUCER_IDS.decide,
            replace("first + BLOCK_SIZE", "first + BLOCK_SIZE - 1"),
        ),
    ),
)
"""(check, seed, mutant): the seed is one that finds it."""


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("check", "seed", "mutant"), FOUND, ids=[mutant.name for _, _, mutant in FOUND]
)
def test_a_world_finds_it(check: str, seed: int, mutant: Mutant) -> None:
    with planted(mutant):
        failure = run_seed(seed, checked(), CONTROLLERS).failure
    assert failure is not None
    assert failure.check == check
