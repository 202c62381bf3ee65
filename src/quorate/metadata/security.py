"""What records do to ACLs, SCRAM credentials and delegation tokens.

Rules: `AclsDelta`, `ScramDelta`, `DelegationTokenDelta` and the replay methods of the control
managers. A credential or token with a secret never appears in a message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from immutables import Map

from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import (
    Acl,
    DelegationToken,
    Image,
    ScramCredential,
    ScramKey,
)

PrefixLengths = Map[int, Map[int, int]]
_PREFIXED: Final = 4
"""The pattern type of prefixes."""
Scram = Map[ScramKey, ScramCredential]
Tokens = Map[str, DelegationToken]


def acl_of(record: AccessControlEntryRecord) -> Acl:
    """The entry of a record."""
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def set_acl(image: Image, record: AccessControlEntryRecord) -> Image:
    """Add the entry, or replace the one of the same id."""
    acl = acl_of(record)
    before = image.acls.get(record.id)
    if before is not None:
        image = _without(image, record.id, before)
    known = image.acls_by_pattern.get(acl.pattern)
    entries = Map({record.id: acl}) if known is None else known.set(record.id, acl)
    return replace(
        image,
        acls=image.acls.set(record.id, acl),
        acls_by_pattern=image.acls_by_pattern.set(acl.pattern, entries),
        acl_prefix_lengths=_counted(image, acl, 1) if known is None else image.acl_prefix_lengths,
    )


def remove_acl(image: Image, record: RemoveAccessControlEntryRecord) -> Image:
    """Remove the entry; raises ReplayError when there is none."""
    acl = image.acls.get(record.id)
    if acl is None:
        raise ReplayError(
            f"RemoveAccessControlEntryRecord: no ACL has the id {uuid_to_text(record.id)}"
        )
    return replace(_without(image, record.id, acl), acls=image.acls.delete(record.id))


def _without(image: Image, acl_id: Uuid, acl: Acl) -> Image:
    """The image whose indexes lack the entry."""
    patterns = image.acls_by_pattern
    if entries := patterns[acl.pattern].delete(acl_id):
        return replace(image, acls_by_pattern=patterns.set(acl.pattern, entries))
    return replace(
        image,
        acls_by_pattern=patterns.delete(acl.pattern),
        acl_prefix_lengths=_counted(image, acl, -1),
    )


def _counted(image: Image, acl: Acl, by: int) -> PrefixLengths:
    """The lengths of prefixes after a pattern appeared (by = 1) or disappeared (by = -1)."""
    lengths = image.acl_prefix_lengths
    kind, pattern_type, name = acl.pattern
    if pattern_type != _PREFIXED:
        return lengths
    of_kind: Map[int, int] = lengths.get(kind, Map())
    count = of_kind.get(len(name), 0) + by
    of_kind = of_kind.set(len(name), count) if count else of_kind.delete(len(name))
    return lengths.set(kind, of_kind) if of_kind else lengths.delete(kind)


def set_scram(scram: Scram, record: UserScramCredentialRecord) -> Scram:
    """Set a user's credential of one mechanism."""
    credential = ScramCredential(
        bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
    )
    return scram.set(ScramKey(record.mechanism, record.name), credential)


def remove_scram(scram: Scram, record: RemoveUserScramCredentialRecord) -> Scram:
    """Remove a user's credential of one mechanism; raises ReplayError when there is none."""
    key = ScramKey(record.mechanism, record.name)
    if key not in scram:
        raise ReplayError(
            f"RemoveUserScramCredentialRecord: user '{key.user}' has no credential of mechanism "
            f"{key.mechanism}"
        )
    return scram.delete(key)


def set_token(tokens: Tokens, record: DelegationTokenRecord) -> Tokens:
    """Set a token; raises ReplayError when a principal is not `type:name`."""
    for principal in (record.owner, record.requester, *record.renewers):
        if ":" not in principal:
            raise ReplayError(
                f"DelegationTokenRecord: token {record.token_id}: '{principal}' is no principal, "
                "it must be type:name"
            )
    token = DelegationToken(
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )
    return tokens.set(record.token_id, token)


def remove_token(tokens: Tokens, record: RemoveDelegationTokenRecord) -> Tokens:
    """Remove a token, if it is there."""
    return tokens.delete(record.token_id) if record.token_id in tokens else tokens
