"""Credentials and permissions on the disk, for the time before anything is known to be committed."""

import pytest

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.records import (
    AccessControlEntryRecord,
    NoOpRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    encode_record,
)
from quorate.security.acl import AclOperation, AclResource
from quorate.server.local_security import read_local
from quorate.storage.api import AppendedBatch
from quorate.storage.memory import MemoryStorage
from storage.builders import leader_change, snapshot_bytes


def entry(number, resource=AclResource.CLUSTER):
    return AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=resource,
        resource_name="kafka-cluster",
        pattern_type=3,
        principal=f"User:{number}",
        host="*",
        operation=AclOperation.CLUSTER_ACTION,
        permission_type=3,
    )


def no_entry(number):
    return RemoveAccessControlEntryRecord(id=Uuid(number.to_bytes(16, "big")))


def user(name):
    return UserScramCredentialRecord(
        name=name, mechanism=2, salt=b"s", stored_key=b"k", server_key=b"k", iterations=4096
    )


def no_user(name):
    return RemoveUserScramCredentialRecord(name=name, mechanism=2)


def found(local):
    """Users and principals."""
    users = {key.user for key in local.scram}
    acls = None if local.acls is None else {acl.principal for acl in local.acls.acls.values()}
    return users, acls


class Disk:
    """A storage in memory that records are appended to."""

    def __init__(self):
        self.storage = MemoryStorage()
        self.storage.open()
        self.snapshot = None

    def append(self, *records):
        if not self.storage.end_offset:
            self.storage.append([leader_change(0, 1)])
        base = self.storage.end_offset
        values = [encode_record(record, 0) for record in records]
        end = base + len(values) - 1
        self.storage.append([AppendedBatch(base, end, 1, encode_batch(base, 1, 0, values))])

    def freeze(self, *records):
        self.snapshot = OffsetAndEpoch(self.storage.end_offset, 1)
        writer = self.storage.create_snapshot(self.snapshot)
        writer.append(snapshot_bytes(self.snapshot, [encode_record(r, 0) for r in records]))
        writer.freeze()

    def read(self, *bootstrap):
        return found(read_local(self.storage, self.snapshot, bootstrap))


def test_the_whole_log_counts_and_only_entries_of_the_cluster():
    disk = Disk()
    assert disk.read() == (set(), None), "an empty disk says nothing about entries"
    disk.append(NoOpRecord(), entry(1), entry(2), entry(3, AclResource.TOPIC), user("a"), user("b"))
    disk.append(no_entry(2), no_entry(3), no_entry(9), no_user("b"), no_user("c"))
    assert disk.read() == ({"a"}, {"User:1"})
    disk.append(no_entry(1))
    assert disk.read() == ({"a"}, set())


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_what_was_removed_before_the_snapshot_does_not_come_back(has_snapshot):
    """The password of `storage format --add-scram` counted again after the user was removed."""
    disk = Disk()
    assert disk.read(user("a"))[0] == {"a"}
    disk.append(user("a"), user("b"), entry(1), entry(2))
    disk.append(no_user("a"), no_entry(1))
    if has_snapshot:
        disk.freeze(user("b"), entry(2))
        disk.append(NoOpRecord())
    assert disk.read(user("a"), entry(1)) == ({"b"}, {"User:2"})
