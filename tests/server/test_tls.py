"""TLS on listeners, to peers and from tools: real sockets, throw-away certificates."""

import datetime
import socket
import ssl
import threading

import pytest
import trustme

from quorate.base.ids import Address
from quorate.client.connection import ClientSecurity, Connection
from quorate.client.errors import TlsRefusedError
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.explain import explain, is_refusal
from quorate.security.tls.reload import ReloadingContext
from quorate.security.tls.stores import StoreError
from security.polled import poll
from server.tls_listener import Listener

CA = trustme.CA()


def keys(certificate, ca=CA, **more):
    """The `ssl.*` keys of a side, as inline PEM."""
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems).decode()
    return {
        "ssl.keystore.key": certificate.private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": chain,
        "ssl.truststore.certificates": ca.cert_pem.bytes().decode(),
        **{key.replace("_", "."): value for key, value in more.items()},
    }


SERVER = keys(CA.issue_cert("127.0.0.1", "localhost", common_name="controller"))
CLIENT = keys(CA.issue_cert("tool", common_name="tool"))


def refused(listener, values, **more):
    with pytest.raises((ssl.SSLError, ConnectionError)) as caught:
        listener.ask(values, **more)
    return explain(caught.value)


def wait_for(caplog, text):
    deadline = threading.Event()
    for _ in range(500):
        if text in caplog.text:
            return
        deadline.wait(0.01)
    raise AssertionError(caplog.text)


def test_the_principal_is_the_mapped_name_of_the_certificate():
    with Listener({**SERVER, "ssl.client.auth": "required"}) as listener:
        assert listener.ask(CLIENT) == b"User:tool"
        assert listener.ask(CLIENT, b"x" * 1_000_000)[9:] == b"x" * 1_000_000


def test_without_a_certificate_a_client_is_anonymous_or_refused(caplog):
    trust = {"ssl.truststore.certificates": SERVER["ssl.truststore.certificates"]}
    with Listener({**SERVER, "ssl.client.auth": "requested"}) as listener:
        assert listener.ask(trust) == b"User:ANONYMOUS"
    with Listener({**SERVER, "ssl.client.auth": "required"}) as listener:
        assert "asks for a client certificate" in refused(listener, trust)
        wait_for(caplog, "it sent no certificate, but ssl.client.auth=required here")


def test_a_wrong_host_is_refused_unless_the_check_is_off(caplog):
    with Listener(SERVER) as listener:
        assert "example.org" in refused(listener, CLIENT, host="example.org")
        off = {**CLIENT, "ssl.endpoint.identification.algorithm": ""}
        assert listener.ask(off, host="example.org") == b"User:ANONYMOUS"


def test_an_expired_certificate_and_an_unknown_issuer_are_named(caplog):
    past = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    old = CA.issue_cert("localhost", not_after=past)
    with Listener(keys(old)) as listener:
        assert "its certificate has expired" in refused(listener, CLIENT)
    with Listener(SERVER) as listener:
        assert "not in ssl.truststore here" in refused(listener, keys(old, trustme.CA()))
        wait_for(caplog, "check ssl.truststore there")


def test_plaintext_to_a_tls_port_and_silence_are_logged(caplog):
    with Listener(SERVER, timeout_s=0.1) as listener:
        with socket.create_connection(listener.address, 5) as raw:
            raw.sendall(b"\0\0\0\x10\0\x12\0\3")
            assert raw.recv(10) == b""
        wait_for(caplog, "it sent plaintext, but this is a TLS listener")
        with socket.create_connection(listener.address, 5) as raw:
            assert raw.recv(10) == b""
        wait_for(caplog, "the TLS handshake was not complete within 0.1 s")


def test_a_tool_says_why_tls_failed():
    with Listener(SERVER) as listener:
        address = Address("127.0.0.1", listener.address[1])
        values = keys(CA.issue_cert("x"), trustme.CA())
        security = ClientSecurity(client_context(values), explain, is_refusal)
        with pytest.raises(TlsRefusedError, match=r"not in ssl\.truststore here"):
            Connection(address, "tool", 5000, security)


def test_a_tool_says_that_the_node_asks_for_a_certificate():
    """With TLS 1.3 the refusal comes after the tool's handshake."""
    trust = {"ssl.truststore.certificates": SERVER["ssl.truststore.certificates"]}
    with Listener({**SERVER, "ssl.client.auth": "required"}) as listener:
        security = ClientSecurity(client_context(trust), explain, is_refusal)
        with pytest.raises(TlsRefusedError, match=r"ssl\.client\.auth=required there"):
            Connection(Address("127.0.0.1", listener.address[1]), "tool", 5000, security)


def test_tls_to_a_plaintext_port_is_named():
    def answer(sock):
        with sock, sock.accept()[0] as peer:
            peer.recv(1000)
            peer.sendall(b"\0\0\0\4abcd")

    sock = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=answer, args=[sock])
    thread.start()
    security = ClientSecurity(client_context(CLIENT), explain, is_refusal)
    with pytest.raises(TlsRefusedError, match="it does not speak TLS"):
        Connection(Address("127.0.0.1", sock.getsockname()[1]), "tool", 5000, security)
    thread.join(5)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("ssl.enabled.protocols", "TLSv1.1", "'TLSv1.1' is not supported"),
        ("ssl.protocol", "SSLv3", "is not one of"),
        ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256", "cannot be chosen here"),
        ("ssl.cipher.suites", "NULL", "is not the name of a suite"),
        ("ssl.provider", "BCFIPS", "remove the key"),
        ("ssl.client.auth", "maybe", "is not one of"),
        ("ssl.keystore.key", "", "is set without a key"),
        ("ssl.truststore.certificates", "x", "holds no certificate"),
        ("ssl.truststore.location", "/x", "set ssl.truststore.location or this key, not both"),
    ],
)
def test_values_that_cannot_be_served_are_refused(key, value, message):
    values = {**SERVER, "ssl.client.auth": "required", key: value}
    with pytest.raises(StoreError, match=message):
        server_context(values)


@pytest.mark.parametrize(
    "wrong",
    [
        *("TLS_RSA_WITH_ALL", "TLS_RSA_WITH_aNULL", "TLS_RSA_WITH_DEFAULT", "TLS_RSA_WITH_AES"),
        *("TLS_ECDHE_ECDSA_WITH_AES_257_GCM_SHA384", "TLS_RSA_WITH_NULL_SHA256"),
        *("TLS_DH_anon_WITH_AES_128_GCM_SHA256", "TLS_ECDH_anon_WITH_AES_128_CBC_SHA"),
    ],
)
def test_a_suite_that_is_none_is_refused_by_name_also_beside_others(wrong):
    """OpenSSL's aliases are no suites, and it passes over a name that it does not know."""
    for names in (wrong, f"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,{wrong}"):
        with pytest.raises(StoreError, match=f"ssl.cipher.suites: OpenSSL has no {wrong}"):
            server_context({**SERVER, "ssl.cipher.suites": names})


def test_java_suites_of_tls_1_2_are_enforced():
    suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"
    context = server_context({**SERVER, "ssl.cipher.suites": suite})
    assert context.maximum_version == ssl.TLSVersion.TLSv1_2
    names = {one["name"] for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"}
    assert names == {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-SHA256"}


def test_a_changed_file_is_read_again_and_a_broken_one_keeps_the_old(tmp_path, caplog):
    path = tmp_path / "server.pem"
    path.write_text(SERVER["ssl.keystore.key"] + SERVER["ssl.keystore.certificate.chain"])
    values = {"ssl.keystore.location": str(path), "ssl.allow.dn.changes": "true"}
    source = ReloadingContext({**values, "ssl.allow.san.changes": "true"}, server_context)
    first = source.context
    assert poll(source) is None
    path.write_text("broken")
    assert poll(source) is False
    assert source.context is first
    assert source.fault is not None and "neither JKS, PEM nor PKCS12" in source.fault
    other = keys(CA.issue_cert("localhost"))
    path.write_text(other["ssl.keystore.key"] + other["ssl.keystore.certificate.chain"])
    assert poll(source) is True
    assert source.context is not first
    assert source.fault is None
    left = source.days_to_expiry(0)
    assert left is not None and left > 0
