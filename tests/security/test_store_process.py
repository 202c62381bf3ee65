"""Stores that a process of its own reads: the same contexts and refusals, and a loop that never waits."""

import datetime
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from narrow import not_none
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.reload import ReloadingContext, read_here
from quorate.security.tls.store_process import StoreProcess
from quorate.security.tls.stores import StoreError
from security.polled import poll

PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
DAY = datetime.timedelta(days=1)
PASSWORD = "Hj4-secret-of-stores"
LOCK = serialization.BestAvailableEncryption(PASSWORD.encode())
PLACE, TRUST = "ssl.keystore.location", "ssl.truststore.location"


def certificate(key, start=NOW - DAY):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(start).not_valid_after(NOW + DAY)
    return builder.sign(
        key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    )


def pem(key, *certificates):
    form = serialization.PrivateFormat.PKCS8
    text = key.private_bytes(PEM, form, serialization.NoEncryption())
    return text + b"".join(one.public_bytes(PEM) for one in certificates)


def p12(key, own, *others):
    beside = [pkcs12.PKCS12Certificate(one, b"other") for one in others]
    return pkcs12.serialize_key_and_certificates(b"own", key, own, beside, LOCK)


KEYS = {
    "RSA": rsa.generate_private_key(65537, 2048),
    "EC": ec.generate_private_key(ec.SECP384R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
}


def facts(context):
    """What two equal contexts have in common."""
    entry, trusted = context.entry, context.trusted
    shown = None
    if entry is not None:
        numbers = entry.key.private_bytes(
            DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        shown = (
            numbers,
            *([one.public_bytes(DER) for one in of] for of in (entry.chain, entry.entries)),
        )
    return (
        *(
            shown,
            context.verify_mode,
            context.check_hostname,
            context.get_ca_certs(binary_form=True),
        ),
        None if trusted is None else [one.public_bytes(DER) for one in trusted],
    )


@pytest.mark.parametrize("kind", KEYS)
def test_a_process_reads_what_this_one_reads(kind, tmp_path):
    key = KEYS[kind]
    own, others = certificate(key), [certificate(KEYS["EC"]) for _ in range(3)]
    (tmp_path / "store").write_bytes(p12(key, own, *others) if kind == "RSA" else pem(key, own))
    (tmp_path / "trust").write_bytes(b"".join(one.public_bytes(PEM) for one in others))
    trust = {TRUST: str(tmp_path / "trust"), "ssl.client.auth": "required"}
    values = {PLACE: str(tmp_path / "store"), **trust}
    if kind == "RSA":
        values["ssl.keystore.password"] = PASSWORD
    cases = [(server_context, values), (client_context, values)]
    if kind == "EC":
        cases = [
            (client_context, trust),
            (client_context, {}),
            (server_context, {PLACE: values[PLACE]}),
        ]
    before = os.listdir("/dev/fd")
    for make, given in cases:
        assert facts(StoreProcess().make(make, given)) == facts(read_here(make, given))
    assert os.listdir("/dev/fd") == before


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (PLACE, "/nowhere/\ud800"),
        (TRUST, "/nowhere/trust"),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"),
        ("ssl.client.auth", "perhaps"),
        ("ssl.truststore.certificates", "beside /nowhere"),
    ],
)
def test_a_process_refuses_as_this_one_does(key, text, tmp_path):
    (tmp_path / "store").write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    values = {PLACE: str(tmp_path / "store"), "ssl.client.auth": "required", key: text}
    if key == "ssl.keystore.key":
        values |= {PLACE: "", "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----"}
    if key == "ssl.truststore.certificates":
        values |= {PLACE: "/nowhere", TRUST: "/nowhere"}
    with pytest.raises(StoreError) as here:
        read_here(server_context, values)
    with pytest.raises(StoreError) as apart:
        StoreProcess().make(server_context, values)
    assert str(apart.value) == str(here.value)
    assert (apart.value.key, apart.value.may_pass) == (here.value.key, here.value.may_pass)
    assert text not in str(apart.value) or key in (PLACE, TRUST, "ssl.client.auth")


def longest_pause(work):
    """How long this thread waits at most while another one works, in s.

    Each short sleep gives the interpreter lock away, and asks for it again as an event loop does.
    """
    thread = threading.Thread(target=work)
    longest, last = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        time.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


def test_the_loop_does_not_wait_for_the_check_of_a_large_key(tmp_path):
    """The interpreter lock is held for that check, 0.1 s and more, so a thread is not enough."""
    key = rsa.generate_private_key(65537, 3072)
    (tmp_path / "store").write_bytes(p12(key, certificate(key)))
    values = {PLACE: str(tmp_path / "store"), "ssl.keystore.password": PASSWORD}
    here = longest_pause(lambda: read_here(server_context, values))
    apart = min(
        longest_pause(lambda: StoreProcess().make(server_context, values)) for _ in range(3)
    )
    assert apart < here / 3


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    found = []

    class Counted(subprocess.Popen[bytes]):
        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    return found


def test_a_store_that_takes_too_long_is_refused_and_its_process_ends(tmp_path, started):
    (tmp_path / "store").write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    process = StoreProcess(time_limit_s=0.001)
    with pytest.raises(
        StoreError, match=r"ssl\.keystore\.location: .* not read after 0\.001 s"
    ) as found:
        process.make(server_context, {PLACE: str(tmp_path / "store")})
    assert not found.value.may_pass, "each look would start one more"
    assert [one.returncode for one in started] == [-signal.SIGKILL]


def test_a_node_that_closes_does_not_wait_for_a_process(tmp_path, started):
    (tmp_path / "store").write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    process = StoreProcess()
    process.close()
    with pytest.raises(StoreError, match="the node is closing"):
        process.make(server_context, {PLACE: str(tmp_path / "store")})
    assert not started


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), 9)"])
def test_what_ends_the_process_does_not_end_the_node(end, tmp_path, monkeypatch):
    """It is not tried in the node: it may take all memory."""
    (tmp_path / "store").write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    program = tmp_path / "python"
    program.write_text(f"#!{sys.executable}\nimport os, sys\nprint('started', flush=True)\n{end}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(StoreError, match="the process that reads the stores has failed") as found:
        StoreProcess().make(server_context, {PLACE: str(tmp_path / "store")})
    assert not found.value.may_pass


@pytest.mark.parametrize("program", ["", "/bin/false"])
def test_where_no_interpreter_starts_the_stores_are_read_here(program, tmp_path, monkeypatch):
    """An application with members may have another `sys.executable`."""
    (tmp_path / "store").write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    monkeypatch.setattr(sys, "executable", program)
    context = StoreProcess().make(server_context, {PLACE: str(tmp_path / "store")})
    assert context.entry is not None


def test_a_file_that_cannot_be_read_and_one_that_is_valid_later_start_no_process_at_each_look(
    tmp_path, started
):
    path = tmp_path / "store"
    path.write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"])))
    now = NOW
    source = ReloadingContext({PLACE: str(path)}, server_context, lambda: now.timestamp())
    reader = StoreProcess().make
    path.unlink()
    assert [poll(source, reader=reader) for _ in range(3)] == [False, None, None]
    assert not started
    path.write_bytes(pem(KEYS["EC"], certificate(KEYS["EC"], NOW + DAY / 2)))
    assert [poll(source, reader=reader) for _ in range(3)] == [False, None, None]
    assert "not valid before" in not_none(source.fault)
    now += DAY / 2
    assert poll(source, reader=reader) is True
    assert len(started) == 1
