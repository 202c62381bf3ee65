"""A refused certificate, version or cipher is explained by the tool, by a peer and by the listener."""

import asyncio
import contextlib
import functools
import logging
import re
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from quorate.base.ids import Address
from quorate.cli.main import run
from quorate.client.connection import ClientSecurity, Connection
from quorate.client.errors import ConnectError, TlsRefusedError
from quorate.client.leader import Controllers
from quorate.client.log_fetcher import LogFetcher
from quorate.raft.inputs import SendFailure
from quorate.security.principal import ANONYMOUS
from quorate.security.tls.authority import Authority
from quorate.security.tls.contexts import client_context
from quorate.security.tls.explain import explain, is_refusal
from quorate.server.authentication import PeerSecurity
from quorate.server.logs import RateLimitedLog
from quorate.server.peer_connection import PeerRequest
from quorate.server.peers import Peer
from quorate.server.tls_transport import TlsTransport
from quorate.wire.messages import ApiVersionsRequest
from server.tls_listener import Listener

NOW = datetime.now(UTC)
PAST = NOW - timedelta(days=20)
FUTURE = NOW + timedelta(days=20)
BEGINS = FUTURE - timedelta(hours=1)
"""When a certificate that is issued for FUTURE becomes valid (`Authority.issue`)."""
AUTHORITY = Authority.create(NOW - timedelta(days=30), 100)
OTHER = Authority.create(NOW, 10)
REQUIRED = {"ssl.client.auth": "required"}


def side(name, hosts=(), start=NOW, issuer=AUTHORITY, trusts=AUTHORITY, **more):
    """The `ssl.*` keys of a side, whose certificate is valid for ten days from `start`."""
    key, begin, chain = issuer.issue(name, hosts, start, 10).decode().partition("-----BEGIN CERT")
    return {
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": begin + chain,
        "ssl.truststore.certificates": trusts.certificate.decode(),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


server = functools.partial(side, "node", ["localhost"], ssl_client_auth="required")
client = functools.partial(side, "tool")
NO_KEY = {"ssl.truststore.certificates": AUTHORITY.certificate.decode()}
TLS_1_2 = {"ssl_enabled_protocols": "TLSv1.2"}
AES = "TLS_ECDHE_ECDSA_WITH_AES_%s_SHA%s"

CASES = {
    "the node's certificate has expired": (
        server(start=PAST),
        client(),
        rf"refused here: its certificate has expired at {PAST + timedelta(days=10):%Y-%m-%d} .*"
        r"renew it there \[subject CN=node,O=Quorate trial, issuer CN=authority,O=Quorate trial\]",
        r"refused there: it says that the certificate of this side has expired.*\[subject CN=node,",
    ),
    "the node's certificate is not valid yet": (
        server(start=FUTURE),
        client(),
        rf"refused here: its certificate is not valid yet before {BEGINS:%Y-%m-%d} .*compare the clocks",
        r"refused there: it does not accept the certificate of this side, .*the host name and "
        rf"dates .*valid from {BEGINS:%Y-%m-%d}",
    ),
    "the node's certificate is for another host": (
        side("node", ["kafka.example", "10.1.2.3"], **REQUIRED),
        client(),
        r"refused here: its certificate is not made for the host localhost, it names kafka.example, "
        r"10.1.2.3: connect with one of its names",
        r"refused there: .*the host name and dates",
    ),
    "the tool does not know the authority": (
        server(),
        client(trusts=OTHER),
        r"refused here: the (root|issuer) of its certificate is not in ssl.truststore here .*"
        r"issuer CN=authority",
        r"refused there: it does not know the issuer of this side's certificate: check ssl.truststore",
    ),
    "the client's certificate has expired": (
        server(),
        client(start=PAST),
        r"refused there: it says that the certificate of this side has expired: renew it here "
        rf"\[subject CN=tool,.*until {PAST + timedelta(days=10):%Y-%m-%d}",
        r"refused here: its certificate has expired: renew it there",
    ),
    "the client's certificate is not valid yet": (
        server(),
        client(start=FUTURE),
        rf"refused there: .*the host name and dates \[.*valid from {BEGINS:%Y-%m-%d}",
        r"refused here: its certificate is not valid yet: compare the clocks",
    ),
    "the authority of the client is no longer in the truststore": (
        server(trusts=OTHER),
        client(),
        r"refused there: it does not know the issuer of this side's certificate: check ssl.truststore "
        r"there \[subject CN=tool,O=Quorate trial, issuer CN=authority,O=Quorate trial, valid from",
        r"refused here: the (root|issuer) of its certificate is not in ssl.truststore here",
    ),
    "the client has no certificate": (
        server(),
        NO_KEY,
        r"refused there: it asks for a client certificate \(ssl.client.auth=required there\): set "
        r"ssl.keystore.\* here",
        r"refused here: it sent no certificate, but ssl.client.auth=required here",
    ),
    "the client has no certificate, TLS 1.2": (
        server(**TLS_1_2),
        NO_KEY,
        r"refused there: it may ask for a client certificate \(ssl.client.auth=required there\)",
        r"refused here: it sent no certificate, but ssl.client.auth=required here",
    ),
    "a node's certificate without the role": (
        side("node", **REQUIRED),
        client(),
        r"refused here: its certificate is not made for this role \(extendedKeyUsage\)",
        r"refused there: .*check extendedKeyUsage",
    ),
    "no common version": (
        server(**TLS_1_2),
        client(ssl_enabled_protocols="TLSv1.3"),
        r"refused there: no common version of TLS: compare ssl.enabled.protocols",
        r"refused here: no common version of TLS: compare ssl.enabled.protocols",
    ),
    "no common cipher": (
        server(**TLS_1_2, ssl_cipher_suites=AES % ("256_GCM", 384)),
        client(**TLS_1_2, ssl_cipher_suites=AES % ("128_GCM", 256)),
        r"refused there: no common cipher suite",
        r"refused here: no common cipher suite: compare ssl.cipher.suites",
    ),
    "a plaintext listener": (
        None,
        client(),
        r"TLS, refused there: it does not speak TLS: is its listener PLAINTEXT\?",
        r"the peer speaks TLS, but this port is PLAINTEXT",
    ),
    "a plaintext client": (
        server(),
        None,
        r"the node expects TLS.*: set security.protocol=SSL|speaks TLS, but this side PLAINTEXT",
        r"it sent plaintext, but this is a TLS listener",
    ),
}


def logged(caplog, pattern):
    """The first message that the pattern is found in."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        for record in caplog.records:
            if re.search(pattern, record.getMessage()):
                assert record.exc_info is None
                return record.getMessage()
        threading.Event().wait(0.01)
    raise AssertionError(f"{pattern}\n{caplog.text}")


def tool_error(port, values):
    security = None
    if values is not None:
        security = ClientSecurity(client_context(values), explain, is_refusal)
    with pytest.raises(Exception, match="localhost") as caught:
        Connection(Address("localhost", port), "tool", 5000, security)
    return caught.value


async def fail_as_peer(port, values):
    """Send a request as another controller; it fails. Without TLS it is sent until the cause is clear."""
    loop = asyncio.get_running_loop()
    log = RateLimitedLog(loop, 100)
    peer = Peer(loop, Address("localhost", port), "peer", lambda: None, log, set())
    if values is not None:
        context = client_context(values)
        peer.security = PeerSecurity(
            wrap=lambda upper, host: TlsTransport(
                upper, context, lambda _: ANONYMOUS, server_hostname=host
            )
        )
    failed: asyncio.Queue[SendFailure] = asyncio.Queue()
    build = ApiVersionsRequest
    for _ in range(5 if values is None else 1):
        peer.send(
            PeerRequest(
                55, lambda version: build(), lambda message: None, failed.put_nowait, 20_000
            )
        )
        await asyncio.wait_for(failed.get(), 10)
    peer.close()


@pytest.mark.parametrize("case", CASES)
def test_both_sides_say_who_refused_and_why(case, caplog):
    ours, theirs, tool_says, listener_says = CASES[case]
    with Listener(ours) as listener:
        port = listener.address[1]
        error = tool_error(port, theirs)
        assert re.search(tool_says, str(error))
        assert "\n" not in str(error)
        assert isinstance(error, TlsRefusedError)
        line = logged(caplog, listener_says)
        assert re.match(
            r"(Refused|Closed) the connection from 127\.0\.0\.1:\d+ on CONTROLLER: ", line
        )
        caplog.clear()
        asyncio.run(fail_as_peer(port, theirs))
        line = logged(caplog, tool_says)
        what = "Cannot connect" if theirs is not None else "Closed the connection"
        assert line.startswith(f"{what} to localhost:{port}: ")
        logged(caplog, listener_says)


def test_a_tool_ends_at_once_and_without_a_traceback(tmp_path, capsys, monkeypatch):
    # The listener of this process logs too, to whatever an earlier test has closed.
    monkeypatch.setattr(logging, "raiseExceptions", False)
    pem = tmp_path / "tool.pem"
    pem.write_bytes(AUTHORITY.issue("tool", [], PAST, 10))
    trust = tmp_path / "ca.pem"
    trust.write_bytes(AUTHORITY.certificate)
    file = tmp_path / "tool.properties"
    file.write_text(
        f"security.protocol=SSL\nssl.keystore.location={pem}\nssl.truststore.location={trust}\n"
    )
    with Listener(server()) as listener:
        address = f"localhost:{listener.address[1]}"
        words = ["--bootstrap-controller", address, "--command-config", str(file)]
        began = time.monotonic()
        assert run(["metadata-quorum", *words, "describe", "--status"]) == 1
        assert time.monotonic() - began < 5, "another attempt would be refused, too"
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert f"Cannot connect to {address}: TLS, refused there: it says that" in printed.err


def test_a_reader_of_the_log_ends_when_every_controller_is_refused():
    with Listener(server()) as listener:
        address = Address("localhost", listener.address[1])
        security = ClientSecurity(client_context(client(start=PAST)), explain, is_refusal)
        with (
            LogFetcher(Controllers((address,), timeout_ms=60_000, security=security)) as fetcher,
            pytest.raises(TlsRefusedError, match="has expired: renew it here"),
        ):
            fetcher.identify()


def test_a_silent_node_and_half_a_handshake(caplog):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address(*silent.getsockname())
        security = ClientSecurity(client_context(client()), explain, is_refusal)
        with pytest.raises(ConnectError, match="did not complete the TLS handshake within 50 ms"):
            Connection(address, "tool", 50, security)
        half = silent.accept()[0].recv(1000)[:60]
    with Listener(server(), timeout_s=0.1) as listener:
        with socket.create_connection(listener.address, 5) as raw:
            raw.sendall(half)
            with contextlib.suppress(ConnectionError):
                assert raw.recv(10) == b""
        logged(caplog, "the TLS handshake was not complete within 0.1 s")
    caplog.clear()
    with Listener(server()) as listener:
        with socket.create_connection(listener.address, 5) as raw:
            raw.sendall(half)
        logged(caplog, "the connection was closed during the TLS handshake")


def unreadable(part, other):
    """The key and the certificate of a node, with other bytes at the first place of `part`."""
    key, begin, body = AUTHORITY.issue("node", ["localhost"], NOW, 10).partition(b"-----BEGIN CERT")
    data = ssl.PEM_cert_to_DER_cert((begin + body).decode())
    assert part in data
    return key + ssl.DER_cert_to_PEM_cert(data.replace(part, other, 1)).encode()


@pytest.mark.parametrize(
    ("part", "other"),
    [
        pytest.param("a003020102", "a003020122", id="the version"),
        pytest.param("06035504030c", "060355040308", id="the kind of the issuer's name"),
    ],
)
@pytest.mark.parametrize("host", ["localhost", "elsewhere"])
def test_a_certificate_that_cannot_be_read_is_refused_in_one_line(tmp_path, part, other, host):
    """OpenSSL takes bytes that the library for certificates does not."""
    path = tmp_path / "node.pem"
    path.write_bytes(unreadable(bytes.fromhex(part), bytes.fromhex(other)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    there, here, back = ssl.MemoryBIO(), ssl.MemoryBIO(), ssl.MemoryBIO()
    node = context.wrap_bio(here, there, server_side=True)
    tool = client_context(client()).wrap_bio(there, back, server_hostname=host)
    with contextlib.suppress(ssl.SSLWantReadError):
        tool.do_handshake()
    here.write(back.read())
    with contextlib.suppress(ssl.SSLWantReadError):
        node.do_handshake()
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        tool.do_handshake()
    text = explain(refused.value, tool)
    assert re.fullmatch(r"TLS, refused here: [^\n]+ \[the certificate cannot be read\]", text)


def test_names_of_the_other_side_cannot_forge_lines():
    forged = Authority.create(NOW, 10).issue("x\n[2026] ERROR stop", ["localhost"], NOW, 10)
    key, begin, chain = forged.decode().partition("-----BEGIN CERT")
    values = server() | {"ssl.keystore.key": key, "ssl.keystore.certificate.chain": begin + chain}
    with Listener(values) as listener:
        error = tool_error(listener.address[1], client())
    assert "\n" not in str(error)
    assert r"CN=x\n[2026] ERROR stop" in str(error)
