"""The sessions of a listener's connections, in the clock of the node (KIP-368)."""

from narrow import as_any
from quorate.security.sasl.plain import PlainServer
from quorate.security.sasl.server import SaslServerConfig
from quorate.server.sasl import FailureDelay, SaslAuthenticator
from quorate.wire.header import encode_request
from quorate.wire.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest

HANDSHAKE = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 1, "client")[4:]
TOKEN = encode_request(SaslAuthenticateRequest(auth_bytes=b"\0alice\0pw"), 2, 2, "client")[4:]


class Connection:
    """One connection, and what became of its frames."""

    def __init__(self, lifetime_ms):
        config = SaslServerConfig(
            {"PLAIN": lambda: PlainServer({"user_alice": "pw"})},
            {"PLAIN": lifetime_ms},
            as_any(None),
        )
        self.now_ms = 5_000
        self.authenticator = SaslAuthenticator(
            config, as_any(None), lambda: (self.now_ms, 0), FailureDelay(0)
        )
        self.failures = []

    def send(self, *frames):
        for frame in frames:
            assert self.authenticator.takes(frame)
            self.authenticator.on_frame(
                frame, lambda data: None, lambda principal: None,
                lambda why, data, delay_s: self.failures.append(why),
            )  # fmt: skip


def test_a_renewal_within_a_second_of_the_last_one_is_a_request():
    """The node answers it with ILLEGAL_SASL_STATE, as Kafka does."""
    connection = Connection(60_000)
    connection.send(HANDSHAKE, TOKEN)
    connection.send(HANDSHAKE, TOKEN)
    connection.now_ms += 999
    assert not connection.authenticator.takes(HANDSHAKE)
    connection.now_ms += 1
    connection.send(HANDSHAKE, TOKEN)
    assert connection.failures == []


def test_a_session_that_expired_is_not_renewed_within_a_second():
    connection = Connection(500)
    connection.send(HANDSHAKE, TOKEN)
    connection.now_ms += 600
    connection.send(HANDSHAKE, TOKEN)
    assert connection.failures == []
    connection.now_ms += 600
    connection.send(HANDSHAKE)
    assert "the session expired" in connection.failures[0]
