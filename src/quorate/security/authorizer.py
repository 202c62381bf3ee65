"""Whether a principal may do something, by the access control entries of an image. Pure.

1. A super user may do everything.
2. The entries of the resource are looked at: those of its name, of `*`, and of each prefix of its name.
3. One that denies wins. Else one that allows decides.
4. A resource that has entries, none of which matches, is denied. One without any follows
   `allow.everyone.if.no.acl.found`.

The costs do not grow with the number of entries of other resources, nor with those of other principals.

Source: `StandardAuthorizer`, `StandardAuthorizerData.findAclRule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from weakref import ref

from quorate.base.frozen import frozen
from quorate.base.java_address import is_same_address
from quorate.metadata.acl_index import CROWDED, Entries, entries_of
from quorate.metadata.image import Acl, AclPattern, Image
from quorate.security.acl import AclOperation, AclResource
from quorate.security.cidr import is_in_range

LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3
ALL_OPERATIONS: Final = 2
WILDCARD: Final = "*"
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"

_IMPLIES_DESCRIBE: Final = frozenset(
    {
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    }
)
_IMPLIES_DESCRIBE_CONFIGS: Final = frozenset(
    {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
)


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """The keys of `StandardAuthorizer`."""

    super_users: frozenset[str] = frozenset()
    """`super.users`, as `type:name`."""
    allow_without_acls: bool = False
    """`allow.everyone.if.no.acl.found`"""


@frozen
class Requester:
    """Who asks, and from where."""

    principal: str
    """`type:name`"""
    host: str
    """The client's address as text."""
    api_key: int = -1
    """Of the request, that inside of an Envelope."""


class Decision(NamedTuple):
    """What the authorizer decided, and why."""

    is_allowed: bool
    rule: str
    """`SuperUser`, `MatchingAcl`, `DefaultAllow`, `DefaultDeny` or `NotReady`."""
    acl: Acl | None = None
    """The entry that decided."""


_SUPER_USER: Final = Decision(True, "SuperUser")
_NOT_READY: Final = Decision(False, "NotReady")
_MATCHING: Final = "MatchingAcl"
_DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
_DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


class LoggedDecision(NamedTuple):
    """A decision, with what it was about."""

    requester: Requester
    operation: AclOperation
    resource: AclResource
    name: str
    decision: Decision


class DecisionLog:
    """Collects decisions until the node's driver takes them."""

    def __init__(self, *, with_allowed: bool) -> None:
        """with_allowed: keep what was allowed, too."""
        self.entries: list[LoggedDecision] = []
        self._with_allowed = with_allowed

    def add(
        self,
        requester: Requester,
        operation: AclOperation,
        resource: AclResource,
        name: str,
        decision: Decision,
    ) -> None:
        """Keep the decision."""
        if self._with_allowed or not decision.is_allowed:
            self.entries.append(LoggedDecision(requester, operation, resource, name, decision))

    def take(self) -> list[LoggedDecision]:
        """What was kept since the last call."""
        taken, self.entries = self.entries, []
        return taken


class Verdict(NamedTuple):
    """What the entries of one resource pattern say."""

    denying: Acl | None
    """One that denies."""
    allowing: Acl | None
    """One that allows; it counts where none denies."""


class Verdicts:
    """What the entries of a crowded pattern say, kept while they are the same. Counts the comparisons.

    A request may name 1,000 topics, and each decision looks at the entries of `*`.
    """

    def __init__(self) -> None:
        self.compared = 0
        """Entries, resource patterns and lengths of prefixes that were looked at since the last pause."""
        self._known: dict[tuple[str, int, AclPattern, str], tuple[ref[Entries], Verdict]] = {}
        """By host, operation, pattern, and the principal whose entries these are."""

    @property
    def known(self) -> int:
        """How many verdicts are kept."""
        return len(self._known)

    def pause_is_due(self) -> bool:
        """Whether a step has compared enough. The next step then counts anew."""
        if self.compared < COMPARED_IN_ONE_STEP:
            return False
        self.compared = 0
        return True

    def of(
        self,
        entries: Entries,
        principal: str,
        requester: Requester,
        operation: AclOperation,
        pattern: AclPattern,
    ) -> Verdict:
        """What entries of a pattern say. principal: whose entries these are, if they are many."""
        self.compared += 1
        if len(entries) < CROWDED:
            self.compared += len(entries)
            return _verdict(entries, requester, operation)
        key = requester.host, int(operation), pattern, principal
        known = self._known.get(key)
        if known is not None and known[0]() is entries:
            return known[1]
        self.compared += len(entries)
        verdict = _verdict(entries, requester, operation)
        if len(self._known) >= MAX_VERDICTS:
            self._known.clear()
        self._known[key] = ref(entries), verdict
        return verdict


COMPARED_IN_ONE_STEP: Final = 10_000
"""Some milliseconds of work."""
MAX_VERDICTS: Final = 256
"""Kept at most."""


def decide(
    image: Image,
    config: AuthorizerConfig,
    requester: Requester,
    operation: AclOperation,
    resource: AclResource,
    name: str = CLUSTER_NAME,
    verdicts: Verdicts | None = None,
) -> Decision:
    """Whether the operation on the resource of this name is allowed, and by which rule.

    verdicts: what earlier decisions found
    """
    if requester.principal in config.super_users:
        return _SUPER_USER
    verdicts = Verdicts() if verdicts is None else verdicts
    verdicts.compared += len(image.acl_prefix_lengths.get(int(resource), _NO_LENGTHS))
    has_entries = False
    allowing: Acl | None = None
    for pattern in _patterns(image, resource, name):
        has_entries = True
        for principal in _principals(image, pattern, requester):
            entries = entries_of(image, pattern, principal)
            found = verdicts.of(entries, principal, requester, operation, pattern)
            if found.denying is not None:
                return Decision(False, _MATCHING, found.denying)
            allowing = found.allowing or allowing
    if allowing is not None:
        return Decision(True, _MATCHING, allowing)
    is_allowed = not has_entries and config.allow_without_acls
    return _DEFAULT_ALLOW if is_allowed else _DEFAULT_DENY


class KnownEntries(NamedTuple):
    """The entries that a node knows while it starts, and from then on."""

    image: Image
    """The committed image."""
    has_caught_up: bool
    """The image has held everything committed, once since the start."""
    local: Image | None = None
    """The entries of the cluster on the node's disk, committed or not. None: the disk was empty, or the
    image holds all that the disk had."""


def decide_when_loaded(
    known: KnownEntries,
    config: AuthorizerConfig,
    requester: Requester,
    operation: AclOperation,
    resource: AclResource,
    name: str,
    verdicts: Verdicts | None = None,
) -> Decision:
    """Decide as `decide`. But before the entries are known, only super users may ask.

    CLUSTER_ACTION does not wait until the node has caught up: controllers that an entry names elect
    the leader who knows what is committed. While the disk has more than the image, it decides about it.

    Source: `AuthorizerNotReadyException`, `MetadataLoader.stillNeedToCatchUp`. Kafka does not use
    the disk.
    """
    image, local = known.image, known.local
    elects = operation is AclOperation.CLUSTER_ACTION
    if elects and local is not None:
        return decide(local, config, requester, operation, resource, name, verdicts)
    if image.features.metadata_version is not None and (known.has_caught_up or elects):
        return decide(image, config, requester, operation, resource, name, verdicts)
    return _SUPER_USER if requester.principal in config.super_users else _NOT_READY


def _patterns(image: Image, resource: AclResource, name: str) -> Iterator[AclPattern]:
    """Every pattern with entries that fits the resource."""
    patterns = image.acls_by_pattern
    if not patterns:
        return
    kind = int(resource)
    for pattern in (AclPattern(kind, LITERAL, name), AclPattern(kind, LITERAL, WILDCARD)):
        if pattern in patterns:
            yield pattern
    # A name may have 32,767 characters, and each prefix that is tried is hashed whole.
    lengths = image.acl_prefix_lengths.get(kind, _NO_LENGTHS)
    for length in sorted(lengths, reverse=True):
        if length <= len(name):
            pattern = AclPattern(kind, PREFIXED, name[:length])
            if pattern in patterns:
                yield pattern


_NO_LENGTHS: Final[dict[int, int]] = {}


def _principals(image: Image, pattern: AclPattern, requester: Requester) -> tuple[str, ...]:
    """The principals whose entries are looked up. A crowded pattern has its entries by principal."""
    if pattern not in image.acls_by_principal or requester.principal == WILDCARD_PRINCIPAL:
        return (requester.principal,)
    return requester.principal, WILDCARD_PRINCIPAL


def _verdict(entries: Entries, requester: Requester, operation: AclOperation) -> Verdict:
    allowing: Acl | None = None
    for acl in entries.values():
        if _matches(acl, requester, operation):
            if acl.permission_type == DENY:
                return Verdict(acl, None)
            allowing = acl
    return Verdict(None, allowing)


def _is_from(acl: Acl, host: str) -> bool:
    """Whether an entry is for an address.

    As in Java, an entry that allows names the address in the form of `getHostAddress()`. One that
    denies may have any spelling: it then denies more than Java does, and never less.
    """
    if acl.host in (WILDCARD, host):
        return True
    if "/" in acl.host:
        return is_in_range(host, acl.host)
    return acl.permission_type == DENY and ":" in acl.host and is_same_address(acl.host, host)


def _matches(acl: Acl, requester: Requester, operation: AclOperation) -> bool:
    if acl.principal not in (requester.principal, WILDCARD_PRINCIPAL):
        return False
    if not _is_from(acl, requester.host):
        return False
    if acl.operation in (ALL_OPERATIONS, operation):
        return True
    if acl.permission_type != ALLOW:
        return False
    # Who may read may describe; but who may not read may still describe.
    if operation == AclOperation.DESCRIBE:
        return acl.operation in _IMPLIES_DESCRIBE
    return operation == AclOperation.DESCRIBE_CONFIGS and acl.operation in _IMPLIES_DESCRIBE_CONFIGS
