"""What records do to ACLs, SCRAM credentials and delegation tokens.

Rules: `AclsDelta`, `ScramDelta`, `DelegationTokenDelta` and the replay methods of the control
managers. A credential or token with a secret never appears in a message.
"""

from __future__ import annotations

from dataclasses import replace

from immutables import Map

from quorate.base.ids import uuid_to_text
from quorate.formats.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from quorate.metadata.acl_index import with_entry, without_entry
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import (
    Acl,
    DelegationToken,
    Image,
    ScramCredential,
    ScramKey,
)

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
        image = without_entry(image, record.id, before)
    return replace(with_entry(image, record.id, acl), acls=image.acls.set(record.id, acl))


def remove_acl(image: Image, record: RemoveAccessControlEntryRecord) -> Image:
    """Remove the entry; raises ReplayError when there is none."""
    acl = image.acls.get(record.id)
    if acl is None:
        raise ReplayError(
            f"RemoveAccessControlEntryRecord: no ACL has the id {uuid_to_text(record.id)}"
        )
    return replace(without_entry(image, record.id, acl), acls=image.acls.delete(record.id))


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
