"""Credentials and permissions on this node's disk, which count until the committed ones are known.

Controllers that stopped together know no high watermark, so nothing is committed for them. Without
credentials none could log in at another, and without permissions none would answer it: they could not
elect. So the newest snapshot and the whole log count for both. They do until the image holds as much as
the disk had at the start, or all that is committed (`ControllerNode.is_behind_disk`).

A record there may turn out not to be committed, and a committed one may be missing. It is safe:

1. A leader of this cluster wrote each record, for someone who was allowed to, never a client.
2. A majority of the voters holds each committed record. So a controller whose entry was removed is
   refused by a majority: it wins no election through those that do not have the removal yet.
3. Only permissions for CLUSTER_ACTION come from here. Before there is a leader with a high watermark,
   they serve to elect one, and to fetch from it. An entry that denies counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, values
from quorate.formats.records import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
)
from quorate.metadata.image import Image, ScramCredential, ScramKey
from quorate.metadata.security import remove_acl, set_acl
from quorate.security.acl import AclResource
from quorate.storage.api import Storage
from quorate.storage.batches import log_parts, snapshot_batches

_RECORDS: Final = frozenset((b"\x01\x0b", b"\x01\x16", b"\x01\x12", b"\x01\x13"))
"""How the values of the records begin: keys 11 and 22 of SCRAM, 18 and 19 of access control entries."""


class LocalSecurity(NamedTuple):
    """What was found."""

    scram: dict[ScramKey, ScramCredential]
    acls: Image | None
    """Holds the entries of the cluster; None: the disk is empty, which says nothing about entries."""


NOTHING: Final = LocalSecurity({}, None)


def read_local(
    storage: Storage, snapshot: OffsetAndEpoch | None, bootstrap: Iterable[object]
) -> LocalSecurity:
    """What an open storage has, whether committed or not. Raises QuorateError.

    The bootstrap records count until there is a snapshot: what they hold may be removed since.
    """
    found = _Found()
    start = storage.start_offset
    if snapshot is None:
        for record in bootstrap:
            found.apply(record)
    else:
        for batch in snapshot_batches(storage, snapshot):
            found.add(batch)
        start = max(start, snapshot.offset)
    for _, batches in log_parts(storage, start, storage.end_offset):
        for batch in batches:
            found.add(batch)
    is_empty = snapshot is None and storage.end_offset == storage.start_offset
    return LocalSecurity(found.scram, None if is_empty else found.acls)


class _Found:
    def __init__(self) -> None:
        self.scram: dict[ScramKey, ScramCredential] = {}
        self.acls = Image()

    def add(self, batch: BatchView) -> None:
        if batch.is_control:
            return
        for value in values(batch):
            # Frame version 1, then the key of the record: nothing else is decoded.
            if value[:2] in _RECORDS:
                self.apply(decode_record(value)[0])

    def apply(self, record: object) -> None:
        if isinstance(record, UserScramCredentialRecord):
            self.scram[ScramKey(record.mechanism, record.name)] = ScramCredential(
                bytes(record.salt),
                bytes(record.stored_key),
                bytes(record.server_key),
                record.iterations,
            )
        elif isinstance(record, RemoveUserScramCredentialRecord):
            self.scram.pop(ScramKey(record.mechanism, record.name), None)
        elif isinstance(record, AccessControlEntryRecord):
            if record.resource_type == AclResource.CLUSTER:
                self.acls = set_acl(self.acls, record)
        elif isinstance(record, RemoveAccessControlEntryRecord) and record.id in self.acls.acls:
            self.acls = remove_acl(self.acls, record)
