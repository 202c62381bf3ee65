"""One seed: two controllers, the same requests, the first difference."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from differential import draw_brokers, draw_configs, draw_security, draw_tokens, draw_topics
from differential.canonical import canonical, canonical_records, differences
from differential.channel import CLIENT, DIRECT, Asker
from differential.draw import Draft, Draw
from differential.pair import Pair
from differential.placement import rule_violations, without_choices
from differential.side import Side
from differential.tokens import OUTSIDER, PROBE_VERSION, is_expired, is_known, probe
from interop.process import wait_for
from quorate.base.errors import ErrorCode
from quorate.formats.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from quorate.node.apis import API_TABLE
from quorate.security.sasl.mechanism import SaslError
from quorate.wire.codec import encode
from quorate.wire.errors import EncodeError
from quorate.wire.messages import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    RenewDelegationTokenResponse,
)
from quorate.wire.registry import APIS, api
from quorate.wire.schema import Message

CLOSED: Final = "<the connection was closed>"
_PATIENCE_S = 5.0
"""How long a read of Java's may lag: its caches follow the log on threads of their own."""
_KAFKAS_FAULTS: Final = (
    "existed in isrMembers, but not in the topics map",
    "is not assigned to this partition.",
)
"""Its indexes of directories and of eligible replicas keep removed topics; the last known leader may
have left the assignment (decision 7)."""
_LINES: Final = 12
"""Of one difference."""
_ACL_KEYS: Final = (30, 31)
_OF_TOKENS: Final = (DelegationTokenRecord, RemoveDelegationTokenRecord)

Records = Sequence[tuple[Message, int]]
Make = Callable[[Draw], Draft | None]

KINDS: Final[Sequence[tuple[int, Make]]] = (
    (10, draw_brokers.unfence),
    (9, draw_brokers.heartbeat),
    (5, draw_brokers.register),
    (1, draw_brokers.unregister),
    (2, draw_brokers.producer_ids),
    (4, draw_brokers.assign_directories),
    (1, draw_brokers.register_controller),
    (1, draw_brokers.describe_cluster),
    (7, draw_topics.create),
    (3, draw_topics.create_placed),
    (2, draw_topics.delete),
    (3, draw_topics.create_partitions),
    (1, draw_topics.create_placed_partitions),
    (14, draw_topics.alter_isr),
    (6, draw_topics.complete_reassignment),
    (6, draw_topics.elect),
    (7, draw_topics.reassign),
    (2, draw_topics.list_reassignments),
    (10, draw_configs.incremental),
    (5, draw_configs.replace),
    (4, draw_configs.describe),
    (4, draw_configs.quotas),
    (3, draw_configs.update_features),
    (3, draw_security.create_acls),
    (2, draw_security.delete_acls),
    (2, draw_security.describe_acls),
    (2, draw_security.scram),
    (2, draw_tokens.create_token),
    (2, draw_tokens.renew_token),
    (2, draw_tokens.expire_token),
)
"""Weight and maker of each kind of request."""


@dataclass
class Outcome:
    """What a seed found. `lines` describe the first difference; none: the controllers agree."""

    seed: int
    requests: int = 0
    lines: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """How often each API was asked, and with which error codes."""
    records: int = 0
    fault: bool = False
    """A known defect of Kafka's ended the seed early."""


def run_seed(
    root: Path,
    seed: int,
    requests: int,
    show: Callable[[str], None] | None = None,
    *,
    go_on: bool = False,
    only: str = "",
) -> Outcome:
    """Ask both controllers the requests of a seed, until they differ.

    go_on: also after responses that differ, until the records do
    only: parts of the names of the modules or functions whose requests are drawn, with commas between
    """
    outcome = Outcome(seed)
    with Pair(root, seed) as pair:
        draw = Draw(pair.rng, pair.java, pair.java.features())
        exchange = Exchange(pair, draw, outcome, show, go_on)
        kinds = [row for row in KINDS if _is_of(row[1], only)]
        weights = [weight for weight, _ in kinds]
        while outcome.requests < requests and not exchange.has_ended:
            make = pair.rng.choices(kinds, weights)[0][1]
            draft = make(draw)
            if draft is not None and (not draft.places or may_place(pair)):
                exchange.run(draft)
        if not exchange.has_ended:
            exchange.compare_ends()
    if outcome.lines:
        outcome.lines.insert(0, f"seed {seed}, request {outcome.requests}: {pair.description}")
    return outcome


def _is_of(make: Make, only: str) -> bool:
    name = f"{make.__module__}.{make.__name__}"
    return any(part in name for part in only.split(","))


def may_place(pair: Pair) -> bool:
    """What the controllers place at random can be deleted, and chance does not decide whether a new
    partition has a broker in service."""
    brokers = pair.java.image.cluster.brokers.values()
    return pair.may_delete and not any(b.in_controlled_shutdown and not b.fenced for b in brokers)


class Exchange:
    """Sends drafts to both sides and compares."""

    def __init__(
        self,
        pair: Pair,
        draw: Draw,
        outcome: Outcome,
        show: Callable[[str], None] | None,
        go_on: bool,
    ) -> None:
        self.has_ended = False
        """The controllers differ, so that further requests say nothing."""
        self._go_on = go_on
        self._seen: set[str] = set()
        self._pair = pair
        self._draw = draw
        self._outcome = outcome
        self._show = show
        self._versions = pair.java.versions()
        self._offered = pair.quorate.versions()

    def run(self, draft: Draft) -> None:
        """One request and those that follow it at once."""
        self._complete(draft)
        self._one(draft)
        for other in draft.then:
            if not self.has_ended:
                self.run(other)

    def _complete(self, draft: Draft) -> None:
        """Choose the version and who asks, where the draft leaves it open."""
        rng = self._pair.rng
        key = _key(draft.build(self._pair.java))
        low, high = self._versions[key]
        low, high = max(low, self._offered[key][0]), min(high, self._offered[key][1])
        if draft.version is None:
            draft.version = high if rng.random() < 0.5 else rng.randint(low, high)
        if not _can_encode(draft.build(self._pair.java), draft.version):
            draft.version = high
        draft.version = min(max(draft.version, low), high)
        if not draft.is_direct:
            forwardable = API_TABLE[key].forwardable
            draft.asker = draw_tokens.asker(self._draw, key, draft.related, may_forward=forwardable)
        if draft.asker is not DIRECT:
            draft.client = rng.choice((CLIENT, "c1"))

    def _one(self, draft: Draft) -> None:
        pair, outcome = self._pair, self._outcome
        outcome.requests += 1
        before = pair.quorate.image
        answers = [self._ask(side, draft) for side in pair.sides]
        records = [side.new_records() for side in pair.sides]
        found = self._compare(draft, answers, records, before)
        deadline = time.monotonic() + _PATIENCE_S
        while found and draft.is_read and time.monotonic() < deadline:
            time.sleep(0.02)
            answers = [self._ask(side, draft) for side in pair.sides]
            found = self._compare(draft, answers, records, before)
        self._count(draft, answers[0], len(records[0]))
        # Kafka's index of eligible replicas has partitions that they have left, and changes them twice: the
        # epochs differ from then on.
        is_doubled = not found and len(records[0]) > len(records[1])
        if is_doubled or (found and self._is_kafkas_fault(answers[0])):
            self.has_ended, outcome.fault = True, True
            return
        if found:
            self.has_ended = not self._go_on or any(line.startswith("only") for line in found)
            self.has_ended |= -1 in _errors(answers[0])
            new = [line for line in found if _shape(line) not in self._seen]
            self._seen.update(map(_shape, found))
            if new:
                outcome.lines += [*self._describe(draft), *new[:_LINES]]
        if not self.has_ended:
            self._settle(draft, records)

    def _ask(self, side: Side, draft: Draft) -> Message | str:
        assert draft.version is not None
        try:
            return side.ask(draft.build(side), draft.version, draft.asker, draft.client)
        except (OSError, SaslError):
            return CLOSED

    def _compare(
        self, draft: Draft, answers: list[Any], records: list[Any], before: Any
    ) -> list[str]:
        sides = self._pair.sides
        java, quorate = (canonical(one, side) for one, side in zip(answers, sides, strict=True))
        found = differences(java, quorate, "response")
        if draft.places:
            for side, rows in zip(sides, records, strict=True):
                found += [f"{side.name}: {line}" for line in rule_violations(rows, before)]
            records = [[(without_choices(r), v) for r, v in rows] for rows in records]
        theirs, ours = (
            set(canonical_records(rows, side)) for rows, side in zip(records, sides, strict=True)
        )
        found += [f"only java wrote {line}" for line in sorted(theirs - ours)]
        found += [f"only quorate wrote {line}" for line in sorted(ours - theirs)]
        return found

    def _is_kafkas_fault(self, answer: Any) -> bool:
        """A known defect ended the leadership of Java's controller, so there is nothing to compare."""
        node = self._pair.java.node
        return ErrorCode.UNKNOWN_SERVER_ERROR in _errors(answer) and any(
            fault in node.log for fault in _KAFKAS_FAULTS
        )

    def _describe(self, draft: Draft) -> list[str]:
        java = self._pair.java
        who = "" if draft.asker is DIRECT else f" by {draft.asker}"
        name = api(_key(draft.build(java))).name
        number = self._outcome.requests
        return [
            f"request {number}: {name} v{draft.version}{who}: {canonical(draft.build(java), java)}"
        ]

    def _count(self, draft: Draft, answer: Any, records: int) -> None:
        name = api(_key(draft.build(self._pair.java))).name
        self._outcome.records += records
        errors = sorted({*_errors(answer)})
        for error in errors or [0]:
            self._outcome.kinds[f"{name} {ErrorCode(error).name}"] += 1
        if self._show:
            self._show(f"{self._outcome.requests} {name} {errors} {records} records")

    def _settle(self, draft: Draft, records: Sequence[Records]) -> None:
        """Wait for what follows a write on other threads of a controller."""
        key = _key(draft.build(self._pair.java))
        changes_acls = key in _ACL_KEYS and self._pair.is_authorized
        for side, rows in zip(self._pair.sides, records, strict=True):
            if not side.is_registered:
                wait_for(partial(_is_registered, side), f"the registration of {side.node}")
            if changes_acls:
                wait_for(partial(_knows_acls, side), f"the ACLs of {side.node}")
            for token_id in {
                record.token_id for record, _ in rows if isinstance(record, _OF_TOKENS)
            }:
                self._settle_token(side, token_id)

    def _settle_token(self, side: Side, token_id: str) -> None:
        """What the controller looks tokens up in follows its log."""
        try:
            wait_for(partial(_knows_token, side, token_id), "the token", _PATIENCE_S, 0.01)
        except AssertionError:
            name, request = side.tokens.names[token_id], self._outcome.requests
            line = f"request {request}: {side.name} answers otherwise than its log says of {name}"
            self._outcome.lines.append(line)
            self.has_ended = True

    def compare_ends(self) -> None:
        """Both logs, replayed, hold as much."""
        java, quorate = (side.image for side in self._pair.sides)
        for name in ("configs", "client_quotas", "scram", "next_producer_id", "features"):
            one, other = getattr(java, name), getattr(quorate, name)
            if one != other:
                self._outcome.lines.append(f"images differ in {name}: {one} and {other}")
        tokens = [
            {side.tokens.names[token_id] for token_id in side.image.delegation_tokens}
            for side in self._pair.sides
        ]
        if tokens[0] != tokens[1]:
            self._outcome.lines.append(f"images differ in tokens: {tokens}")


def _knows_token(side: Side, token_id: str) -> bool:
    """Its answers agree with its log, and an expired token is swept where it is to be."""
    side.new_records()
    token = side.image.delegation_tokens.get(token_id)
    if side.sweeps and token is not None and is_expired(token):
        return False
    (asked,) = (one for one in side.tokens.all if one.token_id == token_id)
    answer = side.ask(probe(asked), PROBE_VERSION, Asker(principal=OUTSIDER))
    assert isinstance(answer, RenewDelegationTokenResponse)
    return is_known(answer, token)


def _key(message: Message) -> int:
    key = type(message).schema.key
    assert key is not None and key in APIS
    return key


def _can_encode(message: Message, version: int) -> bool:
    try:
        encode(message, version)
    except (EncodeError, ValueError):
        return False
    return True


def _shape(line: str) -> str:
    """The line without what is drawn: the same for differences of one kind."""
    return re.sub(r"\d+|'[^']{0,12}'", "#", line)


def _is_registered(side: Side) -> bool:
    side.new_records()
    return side.is_registered


def _knows_acls(side: Side) -> bool:
    """Its authorizer has every ACL of its log."""
    return _acls(side) == len(side.image.acls)


def _acls(side: Side) -> int:
    answer = side.ask(
        DescribeAclsRequest(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        ),
        3,
    )
    assert isinstance(answer, DescribeAclsResponse)
    return sum(len(row.acls) for row in answer.resources)


def _errors(value: Any) -> list[int]:
    """Every error code in a response."""
    if isinstance(value, Message) or hasattr(type(value), "schema"):
        found = []
        for one in type(value).schema.fields:
            inner = getattr(value, one.name)
            if one.name.endswith("error_code"):
                found.append(int(inner))
            elif isinstance(inner, list):
                found += [code for item in inner for code in _errors(item)]
        return found
    return []
