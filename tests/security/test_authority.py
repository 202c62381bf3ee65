"""The authority for trials: its certificates pass the checks of both sides."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest

from narrow import not_none
from quorate.security.tls.authority import Authority
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.names import subject_of

NOW = datetime.now(UTC)


def shake_hands(authority, node, tool, host):
    """The subject of the tool's certificate, as the node sees it; raises ssl.SSLError."""
    trust = {"ssl.truststore.certificates": authority.certificate.decode()}
    keys = [
        {**trust, "ssl.keystore.key": pem, "ssl.keystore.certificate.chain": pem}
        for pem in (node.decode(), tool.decode())
    ]
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context({**keys[0], "ssl.client.auth": "required"})
    sides = [
        client_context(keys[1]).wrap_bio(down, up, server_hostname=host),
        server.wrap_bio(up, down, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return subject_of(not_none(sides[1].getpeercert(binary_form=True)))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_both_sides_accept_its_certificates(host):
    made = Authority.create(NOW, 1)
    node = made.issue("controller-1", ("localhost", "127.0.0.1"), NOW, 1)
    again = Authority(made.private_key, made.certificate)
    tool = again.issue("alice", (), NOW, 1)
    assert shake_hands(again, node, tool, host) == "CN=alice,O=Quorate trial"


def test_a_wrong_host_an_expired_certificate_and_another_authority_are_refused():
    made, other = Authority.create(NOW, 1), Authority.create(NOW, 1)
    node = made.issue("controller-1", ("localhost",), NOW, 1)
    tool = made.issue("alice", (), NOW, 1)
    old = made.issue("controller-1", ("localhost",), NOW - timedelta(days=3), 1)
    strange = other.issue("controller-1", ("localhost",), NOW, 1)
    for keys, host in ((node, "example.org"), (old, "localhost"), (strange, "localhost")):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(made, keys, tool, host)
    with pytest.raises(ssl.SSLCertVerificationError):  # a client's certificate is none of a node
        shake_hands(made, tool, tool, "alice")
