"""Every byte before the authentication: a property test over the protocols of a listener with SASL_SSL.

Whatever arrives, in whatever pieces, no method of a protocol raises, nothing is served, memory is bounded,
and the connection is open with a deadline or closed.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.base.errors import ErrorCode
from quorate.metadata.image import ScramCredential
from quorate.security.principal import ANONYMOUS
from quorate.security.sasl.mechanism import ServerMechanism
from quorate.security.sasl.oauthbearer import OAuthBearerServer, unsecured_validator
from quorate.security.sasl.plain import PlainServer
from quorate.security.sasl.scram import ScramServer
from quorate.security.sasl.server import SaslServerConfig
from quorate.security.sasl.token_claims import TokenRules
from quorate.server.authentication import MAX_FRAME_BYTES, ListenerSecurity
from quorate.server.connections import InboundConnection
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.sasl import FailureDelay, SaslAuthenticator
from quorate.server.tls_transport import TlsTransport
from quorate.wire.header import encode_request
from quorate.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from quorate.wire.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from time_budget import examples

CHUNK = 262_144
"""What asyncio reads at most at once."""
CREDENTIAL = ScramCredential(b"salt", b"s" * 64, b"k" * 64, 4096)
MECHANISMS: dict[str, Callable[[], ServerMechanism]] = {
    "PLAIN": lambda: PlainServer({"user_admin": "not to be guessed"}),
    "SCRAM-SHA-512": lambda: ScramServer(
        "SCRAM-SHA-512", lambda _, user: CREDENTIAL if user == "admin" else None, lambda *_: None
    ),
    "OAUTHBEARER": lambda: OAuthBearerServer(unsecured_validator(TokenRules(issuer="nobody"))),
}
AUTHORITY = trustme.CA()


def server_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert("localhost").configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


SERVER = server_context()


class FakeTransport(asyncio.Transport):
    """The lowest transport: keeps what is written, and reports its end as asyncio does."""

    def __init__(self, loop, protocol):
        super().__init__()
        self.loop, self.protocol = loop, protocol
        self.written = bytearray()
        self.closed = self.lost = False

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name == "peername" else default

    def write(self, data):
        assert not self.closed
        self.written += data

    def close(self):
        if not self.closed:
            self.closed = True
            self.loop.call_soon(self.lose)

    abort = close

    def lose(self):
        self.lost = True
        self.protocol.connection_lost(None)

    def is_closing(self):
        return self.closed

    def get_write_buffer_size(self):
        return 0

    def pause_reading(self):
        pass

    def resume_reading(self):
        pass


class Listener:
    """A listener whose connections have no socket; `served` are frames that reached the node."""

    def __init__(self, pool, *, tls):
        self.loop = asyncio.get_running_loop()
        self.served = []
        self.errors: list[dict[str, Any]] = []
        self.loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self.acceptor = Acceptor(self.loop, ConnectionLimits(), self.on_frame, lambda: True)
        config = SaslServerConfig(MECHANISMS, dict.fromkeys(MECHANISMS, 0), self.versions)
        self.security = ListenerSecurity(
            authenticator=lambda _: SaslAuthenticator(
                config, pool, lambda: (0, 0), FailureDelay(0)
            ),
            wrap=(lambda upper: TlsTransport(upper, SERVER, lambda _: ANONYMOUS)) if tls else None,
        )
        self.acceptor.failed_authentications["L"] = 0

    def versions(self, request):
        code = ErrorCode.NONE if request.message is not None else ErrorCode.UNSUPPORTED_VERSION
        return ApiVersionsResponse(error_code=code)

    def on_frame(self, slot, frame):
        self.served.append(bytes(frame))

    def connect(self):
        upper = InboundConnection(self.acceptor, "L", self.security)
        protocol = upper if self.security.wrap is None else self.security.wrap(upper)
        transport = FakeTransport(self.loop, protocol)
        protocol.connection_made(transport)
        return upper, transport

    async def give(self, transport, data, size):
        """The bytes arrive in pieces, as long as the connection is open."""
        for start in range(0, len(data), size):
            if transport.closed:
                break
            transport.protocol.data_received(bytes(data[start : start + size]))
            await asyncio.sleep(0)

    async def settle(self, upper):
        """Wait for what runs in the thread, and for the end of the connection."""
        async with asyncio.timeout(10):
            while upper.authentication.is_waiting or upper.authentication.is_refused:
                if upper not in self.acceptor._connections:
                    break
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    def check(self, upper, transport):
        assert self.served == []
        assert self.errors == []
        assert upper.incoming <= MAX_FRAME_BYTES + CHUNK
        assert not upper.authentication.is_complete
        if transport.closed:
            assert upper not in self.acceptor._connections
            assert upper.incoming == 0
        else:
            assert upper.authentication._deadline is not None
        assert self.acceptor.incoming == upper.incoming


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(1) as made:
        yield made


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as made:
        yield made


def request(message, version):
    return encode_request(message, version, 1, "fuzz")


TOKENS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        (
            b"\0admin\0wrong", b"admin\0admin\0", b"\0\0\0\0", b"\0" + b"a" * 5000 + b"\0b",
            b"n,,n=admin,r=nonce", b"n,,n=nobody,r=nonce", b"n,a=x,n=admin,r=n,tokenauth=true",
            b"y,,n=admin,r=n", b"n,,n=a=2Cd,r=" + b"r" * 9000, b"c=biws,r=nonce,p=AAAA",
            b"n,,\x01auth=Bearer x.y.z\x01\x01", b"n,,\x01auth=Bearer e30.e30.\x01\x01", b"\x01",
            b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.\x01\x01",
        )
    ),
)  # fmt: skip
FRAMES = st.one_of(
    st.builds(lambda version: request(ApiVersionsRequest(), version), st.integers(0, 4)),
    st.builds(
        lambda name, version: request(SaslHandshakeRequest(mechanism=name), version),
        st.sampled_from((*MECHANISMS, "GSSAPI", "", "x" * 300)),
        st.integers(0, 1),
    ),
    st.builds(
        lambda token, version: request(SaslAuthenticateRequest(auth_bytes=token), version),
        TOKENS,
        st.integers(0, 2),
    ),
    TOKENS.map(lambda token: len(token).to_bytes(4, "big") + token),
    st.binary(max_size=40).map(lambda rest: b"\0\0\0\x30\0\x12" + rest),
    st.integers(-(2**31), 2**31 - 1).map(lambda n: n.to_bytes(4, "big", signed=True)),
)
STREAMS = st.one_of(
    st.binary(max_size=400),
    st.lists(FRAMES, max_size=7).map(b"".join),
    # The order of a login, so that most examples reach the tokens.
    st.builds(
        lambda name, tokens, version: (
            request(SaslHandshakeRequest(mechanism=name), version)
            + b"".join(
                request(SaslAuthenticateRequest(auth_bytes=token), 1)
                if version
                else len(token).to_bytes(4, "big") + token
                for token in tokens
            )
        ),
        st.sampled_from(tuple(MECHANISMS)),
        st.lists(TOKENS, max_size=4),
        st.integers(0, 1),
    ),
)
CHANGES = st.lists(
    st.tuples(st.floats(0, 1), st.sampled_from(("flip", "cut", "insert", "repeat")), st.binary(max_size=8)),
    max_size=3,
)  # fmt: skip


def changed(data, changes):
    """The bytes with some of them flipped, cut, inserted or repeated."""
    for place, how, extra in changes:
        at = int(place * len(data))
        if how == "flip":
            data = data[:at] + bytes(b ^ 0xA5 for b in data[at : at + 2]) + data[at + 2 :]
        elif how == "cut":
            data = data[:at] + data[at + 1 + len(extra) :]
        elif how == "insert":
            data = data[:at] + extra + data[at:]
        else:
            data = data[:at] + data[max(at - 40, 0) : at] + data[at:]
    return data


@settings(max_examples=examples(600))
@given(stream=STREAMS, changes=CHANGES, size=st.sampled_from((1, 3, 17, CHUNK)))
def test_bytes_before_the_login(pool, runner, stream, changes, size):
    async def converse():
        listener = Listener(pool, tls=False)
        upper, transport = listener.connect()
        await listener.give(transport, changed(stream, changes), size)
        await listener.settle(upper)
        listener.check(upper, transport)
        upper.abort()
        await asyncio.sleep(0)
        assert listener.acceptor.connection_count == 0

    runner.run(converse())


class TlsClient:
    """A client of TLS without a socket."""

    def __init__(self, version):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        AUTHORITY.configure_trust(context)
        AUTHORITY.issue_cert("client").configure_cert(context)
        if version is not None:
            context.maximum_version = version
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.into, self.out, server_hostname="localhost")
        self.is_done = False

    def go_on(self, data):
        """Take the server's bytes; the next flight."""
        self.into.write(data)
        with contextlib.suppress(ssl.SSLError):
            self.tls.do_handshake()
            self.is_done = True
        return self.out.read()


@settings(max_examples=examples(300))
@given(
    version=st.sampled_from((ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
    turn=st.integers(0, 3),
    changes=CHANGES,
    size=st.sampled_from((7, 100, CHUNK)),
    stream=STREAMS,
)
def test_records_of_tls_before_the_login(pool, runner, version, turn, changes, size, stream):
    """The flight `turn` of a handshake is changed; after a whole handshake come bytes as above."""

    async def converse():
        listener = Listener(pool, tls=True)
        upper, transport = listener.connect()
        client = TlsClient(version)
        for number in range(4):
            flight = client.go_on(transport.written)
            transport.written.clear()
            if client.is_done and number == 3:
                with contextlib.suppress(ssl.SSLError):
                    client.tls.write(stream or b"x")
                flight += client.out.read()
            await listener.give(transport, changed(flight, changes if number == turn else ()), size)
            await asyncio.sleep(0)
        await listener.settle(upper)
        listener.check(upper, transport)
        upper.abort()
        await asyncio.sleep(0)
        assert listener.acceptor.connection_count == 0

    runner.run(converse())


def converse(runner, pool, *, tls, talk):
    """Run `talk(listener, upper, transport)` on a new connection."""

    async def run():
        listener = Listener(pool, tls=tls)
        upper, transport = listener.connect()
        await talk(listener, upper, transport)
        await listener.settle(upper)
        listener.check(upper, transport)

    runner.run(run())


@pytest.mark.parametrize("early", [True, False])
def test_a_long_frame_is_refused_also_when_it_comes_before_the_turn_of_the_connection(
    pool, runner, caplog, early
):
    """A transport may read once after its pause: that length would count for all that follows."""

    async def talk(listener, upper, transport):
        if not early:
            await asyncio.sleep(0.01)
        assert upper.authentication._has_begun is not early
        transport.protocol.data_received((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
        assert transport.closed

    converse(runner, pool, tls=False, talk=talk)
    assert f"allowed are 0 to {MAX_FRAME_BYTES}" in caplog.text


def test_questions_for_versions_do_not_go_on_for_ever(pool, runner):
    """A version that is not supported leaves the state as it is: each costs time on the loop."""

    async def talk(listener, upper, transport):
        unknown = bytearray(request(ApiVersionsRequest(), 0))
        unknown[6:8] = (99).to_bytes(2, "big")
        await listener.give(transport, unknown * 2000, CHUNK)
        await listener.settle(upper)
        assert transport.closed
        assert transport.written.count(b"\0\0\0\1") <= 10

    converse(runner, pool, tls=False, talk=talk)


def test_a_refusal_is_one_short_line(pool, runner, caplog):
    async def talk(listener, upper, transport):
        login = request(SaslHandshakeRequest(mechanism="SCRAM-SHA-512"), 1)
        token = b"n,,n=" + b"u" * 8_000 + b",r=nonce"
        await listener.give(
            transport, login + request(SaslAuthenticateRequest(auth_bytes=token), 1), CHUNK
        )
        await listener.settle(upper)

    converse(runner, pool, tls=False, talk=talk)
    [line] = [record.getMessage() for record in caplog.records]
    assert "no SCRAM-SHA-512 credential of user 'uuu" in line
    assert len(line) < 1000


def test_a_handshake_that_never_ends_is_closed(pool, runner, caplog):
    """Records that TLS 1.3 ignores, after the client's first."""

    async def talk(listener, upper, transport):
        flight = TlsClient(ssl.TLSVersion.TLSv1_3).go_on(b"")
        ignored = b"\x14\x03\x03\x00\x01\x01"
        await listener.give(transport, flight + ignored * 100_000, CHUNK)
        assert transport.closed

    converse(runner, pool, tls=True, talk=talk)
    assert "Refused the connection" in caplog.text


def test_a_late_handshake_is_named(pool, runner, caplog):
    async def talk(listener, upper, transport):
        flight = TlsClient(ssl.TLSVersion.TLSv1_3).go_on(b"")
        await listener.give(transport, flight[:100], CHUNK)
        upper.authentication._late()

    converse(runner, pool, tls=True, talk=talk)
    assert "the TLS handshake was not complete within 10 s" in caplog.text


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2])
def test_session_tickets_leave_with_the_first_answer(pool, runner, version):
    """With TLS 1.2 the end of the handshake is the server's, and leaves at once."""

    async def talk(listener, upper, transport):
        client = TlsClient(version)
        flight = client.go_on(b"")
        while True:
            await listener.give(transport, flight, CHUNK)
            await asyncio.sleep(0)
            if not transport.written or client.is_done:
                break
            flight = client.go_on(bytes(transport.written))
            transport.written.clear()
            if client.is_done and not flight:
                break
        assert client.is_done
        assert upper.authentication._is_secured
        assert not transport.written
        client.tls.write(request(ApiVersionsRequest(), 0))
        await listener.give(transport, client.out.read(), CHUNK)
        client.into.write(transport.written)
        assert client.tls.read(4)

    converse(runner, pool, tls=True, talk=talk)
