"""What clients without a login can do to a node: bytes of all kinds, silence, and memory. Real sockets."""

import contextlib
import random
import socket
import ssl
import subprocess
import time

import pytest

from e2e.test_sasl import SCRAM, client_file, config, stores, tool
from interop.kafka import HOST, Quorum, wait_for
from quorate.wire.header import encode_request
from quorate.wire.messages import ApiVersionsRequest
from quorate.wire.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("before-login")]

CONNECTIONS = 100
MIB = 1 << 20
HALF_FRAME = (524_288).to_bytes(4, "big") + bytes(524_000)
"""All of a frame as large as one may be before the login, but for its end."""


class Running:
    """A lone voter with SASL_SSL."""

    def __init__(self, quorum, directory, pem):
        self.quorum, self.node = quorum, quorum.nodes[1]
        file = directory / "client.properties"
        client_file(file, "SCRAM-SHA-512")
        text = file.read_text().replace("SASL_PLAINTEXT", "SASL_SSL")
        file.write_text(f"{text}ssl.truststore.location={pem['truststore']}\n")
        self.file = str(file)
        self.tls = ssl.create_default_context(cafile=pem["truststore"])

    def connect(self):
        raw = socket.create_connection((HOST, self.node.port), 5)
        return self.tls.wrap_socket(raw, server_hostname=HOST)

    def serves(self):
        return tool(self.quorum, self.file, "describe", "--status").returncode == 0

    def resident(self):
        with open(f"/proc/{self.node.process.pid}/statm", encoding="ascii") as facts:
            return int(facts.read().split()[1]) * 4096


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    directory = tmp_path_factory.mktemp("before-login")
    pem = stores(directory)
    tls = {
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL",
        "ssl.keystore.location": pem["keystore"],
        "ssl.truststore.location": pem["truststore"],
    }
    with Quorum(directory / "q", {1: "quorate"}, config=config("SCRAM-SHA-512", **tls)) as quorum:
        quorum.format(*SCRAM)
        quorum.start()
        made = Running(quorum, directory, pem)
        wait_for(made.serves, "a leader")
        yield made
        assert "Traceback" not in made.node.log
        assert "Fatal error" not in made.node.log


def is_closed_by(peer, seconds):
    peer.settimeout(seconds)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while peer.recv(65536):
            pass
    return True


def test_memory_and_time_of_a_connection_without_a_login_are_bounded(running):
    before = running.resident()
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.create_connection((HOST, running.node.port)))
        began = time.monotonic()
        half = stack.enter_context(socket.create_connection((HOST, running.node.port)))
        half.sendall(b"\x16\x03\x01\x02\x00\x01")
        peers = [stack.enter_context(running.connect()) for _ in range(CONNECTIONS)]
        idle = running.resident()
        for peer in peers:
            peer.sendall(HALF_FRAME)
        wait_for(lambda: running.resident() > before + CONNECTIONS * MIB // 4, "the bytes")
        assert running.serves()
        most = (running.resident() - before) / CONNECTIONS
        assert most < 1.5 * MIB, f"{most / 1024:.0f} KiB a connection, {idle - before} B idle"
        print(f"\nidle {(idle - before) // CONNECTIONS} B, with a frame {most:.0f} B a connection")
        for peer in (silent, half, *peers):
            assert is_closed_by(peer, 15)
        assert time.monotonic() - began < 15
    assert "the TLS handshake was not complete within 10 s" in running.node.log
    assert "the authentication was not complete within 10 s" in running.node.log
    assert running.serves()


def streams(draw):
    """Bytes before a login: random, and valid requests in a wrong order, changed or cut."""
    requests = [encode_request(ApiVersionsRequest(), version, 1, "fuzz") for version in range(4)]
    requests += [
        encode_request(SaslHandshakeRequest(mechanism=name), version, 1, "fuzz")
        for name in ("PLAIN", "SCRAM-SHA-512", "GSSAPI")
        for version in (0, 1)
    ]
    requests += [
        encode_request(SaslAuthenticateRequest(auth_bytes=token), 2, 1, "fuzz")
        for token in (b"", b"\0a\0b", b"n,,n=alice,r=abc", b"n,,n=x,r=abc,tokenauth=true")
    ]
    while True:
        if draw.random() < 0.3:
            data = draw.randbytes(draw.randint(1, 300))
        else:
            data = b"".join(draw.choices(requests, k=draw.randint(1, 5)))
        if draw.random() < 0.6:
            changed = bytearray(data)
            changed[draw.randrange(len(changed))] ^= draw.randint(1, 255)
            data = bytes(changed)
        yield data


def test_bytes_of_all_kinds_get_clean_closes(running):
    """In the clear, and inside of TLS. Every connection ends when the client has no more to send."""
    draw = random.Random(26)
    made = streams(draw)
    for number in range(150):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            peer = (
                socket.create_connection((HOST, running.node.port), 5)
                if number % 3 == 0
                else running.connect()
            )
            with peer:
                first = b"\x16\x03\x01" if number % 6 == 0 else b""
                peer.sendall(first + next(made))
                peer.shutdown(socket.SHUT_WR)
                assert is_closed_by(peer, 5)
    assert running.serves()


def test_renegotiation_is_refused(running):
    """OpenSSL's client asks for it by a line with R, after a handshake of TLS 1.2."""
    client = subprocess.run(
        ["openssl", "s_client", "-tls1_2", "-connect", f"{HOST}:{running.node.port}"],
        input="R\n",
        capture_output=True,
        text=True,
        timeout=20,
    )
    said = client.stdout + client.stderr
    assert "RENEGOTIATING" in said
    assert "no renegotiation" in said
    assert running.serves()
