"""Files of stores that change under a running node, in every way that files change."""

import datetime
import errno
import gc
import os
import ssl
import threading
import weakref
from contextlib import suppress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from narrow import not_none
from quorate.base.file_stamp import file_stamp
from quorate.security.tls import store_file, stores
from quorate.security.tls.contexts import server_context
from quorate.security.tls.reload import ReloadingContext
from quorate.security.tls.store_file import read_store_file
from quorate.security.tls.stores import StoreError, read_trust
from security.polled import poll

KEY = ec.generate_private_key(ec.SECP256R1())
PLACE = "ssl.keystore.location"
PEM = serialization.Encoding.PEM
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)


def key_pem():
    return KEY.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def pem(start=NOW - DAY, end=NOW + DAY):
    """A key and its certificate, self-signed; each has another serial number."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node")])
    made = (
        x509.CertificateBuilder(name, name, KEY.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .sign(KEY, hashes.SHA256())
    )
    return key_pem() + made.public_bytes(PEM)


class Node:
    """A listener whose key store is the file `path`. Time stands still at `now`."""

    def __init__(self, path, now=NOW):
        self.now = now
        self.source = ReloadingContext(
            {PLACE: str(path)}, server_context, lambda: self.now.timestamp()
        )

    def serial(self):
        return not_none(self.source.context.own).serial_number


def in_place(path):
    path.write_bytes(pem())


def renamed(path):
    new = path.with_suffix(".new")
    new.write_bytes(pem())
    new.rename(path)


def gone_and_back(path):
    new = path.with_suffix(".new")
    path.rename(new)
    renamed(path)


@pytest.mark.parametrize("change", [in_place, renamed, gone_and_back])
def test_a_changed_file_is_used_at_the_next_look(change, tmp_path):
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    before = node.serial()
    change(path)
    assert poll(node.source) is True
    assert node.serial() != before
    assert poll(node.source) is None


def test_a_swapped_directory_is_used_at_the_next_look(tmp_path):
    """Kubernetes mounts a secret as `NAME -> ..data/NAME`, and swaps the link `..data`."""
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "node.pem").write_bytes(pem())
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "node.pem").symlink_to("..data/node.pem")
    node = Node(tmp_path / "node.pem")
    before = node.serial()
    (tmp_path / "..new").symlink_to("two")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert poll(node.source) is True
    assert node.serial() != before


def test_a_file_that_disappears_is_reported_and_used_when_it_is_back(tmp_path):
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    before = node.serial()
    path.rename(tmp_path / "away")
    assert [poll(node.source) for _ in range(3)] == [False, None, None]
    assert "No such file or directory" in not_none(node.source.fault)
    (tmp_path / "away").rename(path)
    assert poll(node.source) is True
    assert node.serial() == before


def test_half_a_file_and_a_key_without_its_certificate_are_used_when_they_are_whole(tmp_path):
    path = tmp_path / "node.pem"
    path.write_bytes(whole := pem())
    node = Node(path)
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for broken in (whole[:300], other + whole.removeprefix(key_pem()), b""):
        path.write_bytes(broken)
        assert poll(node.source) is False
    path.write_bytes(pem())
    assert poll(node.source) is True
    assert node.source.fault is None


def test_a_file_that_cannot_be_read_now_is_tried_again_without_a_change(tmp_path, monkeypatch):
    """A program may set owner and mode after it has written the file."""
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    path.write_bytes(pem())

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(stores, "read_store_file", refuse)
        assert [poll(node.source) for _ in range(3)] == [False, None, None]
        assert node.source.refused_changes == 1
    assert poll(node.source) is True


def test_the_stamp_of_a_file_has_its_mode(tmp_path):
    """The clock of a file system ticks a few hundred times a second."""
    path = tmp_path / "node.pem"
    path.touch()
    first = file_stamp(path)
    ended = threading.Event()
    timer = threading.Timer(5, ended.set)
    timer.start()
    while file_stamp(path) == first and not ended.is_set():
        path.chmod(0o600)
    timer.cancel()
    assert file_stamp(path) != first


def test_no_free_descriptor_is_a_fault_that_passes(tmp_path, monkeypatch):
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    path.write_bytes(pem())

    def refuse(name):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "memfd_create", refuse, raising=False)
        assert poll(node.source) is False
        assert "Too many open files" in not_none(node.source.fault)
    assert poll(node.source) is True


def test_a_new_certificate_that_is_not_valid_now_does_not_replace_a_valid_one(tmp_path):
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    path.write_bytes(pem(NOW - 3 * DAY, NOW - 2 * DAY))
    assert poll(node.source) is False
    assert f"has expired at {NOW - 2 * DAY:%Y-%m-%d %H:%M:%SZ}" in not_none(node.source.fault)
    path.write_bytes(pem(NOW + DAY / 2, NOW + 2 * DAY))
    assert [poll(node.source) for _ in range(3)] == [False, None, None]
    assert f"not valid before {NOW + DAY / 2:%Y-%m-%d %H:%M:%SZ}" in not_none(node.source.fault)
    node.now += DAY / 2
    assert poll(node.source) is True, "without a change of the file"


def test_an_expired_certificate_may_be_replaced_by_another(tmp_path):
    path = tmp_path / "node.pem"
    path.write_bytes(pem(NOW - 3 * DAY, NOW - DAY))
    node = Node(path)
    path.write_bytes(pem(NOW - 3 * DAY, NOW - DAY / 2))
    assert poll(node.source) is True


def test_a_file_is_read_once_for_each_change(tmp_path, monkeypatch):
    """What is checked is what is used, however the file changes meanwhile."""
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    path.write_bytes(pem())
    paths = []

    def count(path):
        paths.append(path)
        return read_store_file(path)

    monkeypatch.setattr(stores, "read_store_file", count)
    assert poll(node.source) is True
    assert paths == [str(path)]


def pipe(directory):
    os.mkfifo(directory / "pipe")
    return directory / "pipe"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (pipe, "not a regular file"),
        (lambda _: "/dev/zero", "not a regular file"),
        (lambda directory: directory, "Is a directory"),
    ],
    ids=["pipe", "device", "directory"],
)
def test_what_may_never_answer_or_never_end_is_not_read(place, text, tmp_path):
    """Who may set dynamic configs must not stop every controller with one."""
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(StoreError, match=text):
            read_trust({"ssl.truststore.location": str(place(tmp_path))})
        (tmp_path / "pipe").unlink(missing_ok=True)
    assert len(os.listdir("/dev/fd")) == before


def test_a_huge_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(store_file, "MOST_BYTES", 10)
    (tmp_path / "trust.pem").write_bytes(bytes(11))
    with pytest.raises(StoreError, match="more than 10 bytes"):
        read_trust({"ssl.truststore.location": str(tmp_path / "trust.pem")})


def connected(server):
    """A server's and a client's side of a TLS connection, after the handshake."""
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    there, here = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        server.wrap_bio(there, here, server_side=True),
        trust.wrap_bio(here, there),
    )
    for side in (sides[1], sides[0], sides[1], sides[0]):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return sides


def test_many_changes_keep_one_context_and_the_old_connections(tmp_path):
    """Half of the files are broken, and clients connect meanwhile."""
    path = tmp_path / "node.pem"
    path.write_bytes(pem())
    node = Node(path)
    contexts = weakref.WeakSet([node.source.context])
    old = connected(node.source.context)
    before = len(os.listdir("/dev/fd"))
    whole = pem()
    for number in range(200):
        path.write_bytes(whole[:number] if number % 2 else pem())
        assert poll(node.source) is (number % 2 == 0)
        contexts.add(node.source.context)
        connected(node.source.context)
    gc.collect()
    assert len(contexts) == 2, "that in use, and that of the old connection"
    assert len(os.listdir("/dev/fd")) == before
    assert node.source.refused_changes == 100
    old[1].write(b"still here")
    assert old[0].read(10) == b"still here"
