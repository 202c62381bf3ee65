"""Key stores in PEM, PKCS12 and JKS, and the names of certificates."""

import base64
import datetime
import hashlib
import struct

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from narrow import not_none
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.der import DerError
from quorate.security.tls.names import rfc2253, subject_of
from quorate.security.tls.reload import ReloadingContext
from quorate.security.tls.stores import StoreError, read_key, read_trust
from security.polled import poll

CA = trustme.CA()
ISSUED = CA.issue_cert("localhost")
PEM_KEY = ISSUED.private_key_pem.bytes()
KEY = serialization.load_pem_private_key(PEM_KEY, None)
CHAIN = [x509.load_pem_x509_certificate(blob.bytes()) for blob in ISSUED.cert_chain_pems]
ROOT = x509.load_pem_x509_certificate(CA.cert_pem.bytes())
DER = serialization.Encoding.DER
DAY = datetime.timedelta(days=1)


def sealed(password):
    """The key as the JDK's JKS seals it."""
    plain = KEY.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    secret, digest = password.encode("utf-16-be"), bytes(range(20))
    salt, stream = digest, b""
    while len(stream) < len(plain):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        stream += digest
    body = bytes(a ^ b for a, b in zip(plain, stream, strict=False))
    body = salt + body + hashlib.sha1(secret + plain, usedforsecurity=False).digest()
    oid = bytes.fromhex("300e060a2b060104012a021101010500")
    return der(0x30, oid + der(0x04, body))


def der(tag, content):
    size = len(content)
    length = bytes([size]) if size < 128 else b"\x82" + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def jks(password, chain=CHAIN, root=ROOT, key_password=None):
    def certificate(one):
        data = one.public_bytes(DER)
        return b"\0\5X.509" + struct.pack(">I", len(data)) + data

    secret = sealed(key_password or password)
    own = struct.pack(">I", 1) + b"\0\2me" + bytes(8) + struct.pack(">I", len(secret)) + secret
    own += struct.pack(">I", len(chain)) + b"".join(map(certificate, chain))
    trusted = struct.pack(">I", 2) + b"\0\2ca" + bytes(8) + certificate(root)
    data = bytes.fromhex("feedfeed") + struct.pack(">II", 2, 2) + own + trusted
    salted = password.encode("utf-16-be") + b"Mighty Aphrodite" + data
    return data + hashlib.sha1(salted, usedforsecurity=False).digest()


def p12(password):
    assert isinstance(KEY, EllipticCurvePrivateKey)
    return pkcs12.serialize_key_and_certificates(
        b"me", KEY, CHAIN[0], [ROOT], serialization.BestAvailableEncryption(password.encode())
    )


@pytest.mark.parametrize("make", [jks, p12])
def test_a_store_is_recognized_by_its_content(tmp_path, make):
    path = tmp_path / "store"
    path.write_bytes(make("secret"))
    values = {"ssl.keystore.location": str(path), "ssl.keystore.password": "secret"}
    entry = not_none(read_key(values))
    assert entry.key.public_key() == KEY.public_key()
    assert entry.chain[0] == CHAIN[0]
    trust = {"ssl.truststore.location": str(path), "ssl.truststore.password": "secret"}
    assert CHAIN[0] in not_none(read_trust(trust))
    with pytest.raises(StoreError, match="password is wrong") as caught:
        read_key({**values, "ssl.keystore.password": "guess!"})
    assert "guess!" not in str(caught.value)


@pytest.mark.parametrize("make", [jks, p12])
def test_the_password_of_a_key_must_be_right(tmp_path, make):
    """Java: UnrecoverableKeyException, also where the password of the store is right."""
    path = tmp_path / "store"
    path.write_bytes(make("secret"))
    values = {"ssl.keystore.location": str(path), "ssl.keystore.password": "secret"}
    read_key({**values, "ssl.key.password": "secret"})
    with pytest.raises(StoreError, match=r"ssl\.key\.password is not the password") as caught:
        read_key({**values, "ssl.key.password": "guess!"})
    assert "guess!" not in str(caught.value)
    assert caught.value.key == "ssl.keystore.location"
    with pytest.raises(StoreError, match="password is wrong"):
        read_key(
            {
                "ssl.keystore.location": str(path),
                "ssl.keystore.password": "guess!",
                "ssl.key.password": "secret",
            }
        )


def chained(*trusted):
    """A store of a key with its chain, and of entries of certificates: as keytool writes it."""
    assert isinstance(KEY, EllipticCurvePrivateKey)
    named = [pkcs12.PKCS12Certificate(ROOT, rfc2253(ROOT.subject.public_bytes()).encode())]
    named += [pkcs12.PKCS12Certificate(one, b"ca") for one in trusted]
    return pkcs12.serialize_key_and_certificates(
        b"me", KEY, CHAIN[0], named, serialization.BestAvailableEncryption(b"secret")
    )


OTHER_CA = x509.load_pem_x509_certificate(trustme.CA().cert_pem.bytes())


@pytest.mark.parametrize(
    ("data", "trusted"),
    [
        (p12("secret"), [CHAIN[0]]),
        (chained(), [CHAIN[0]]),
        (chained(ROOT), [CHAIN[0], ROOT]),
        (chained(OTHER_CA), [CHAIN[0], OTHER_CA]),
        (jks("secret", [*CHAIN, ROOT], OTHER_CA), [CHAIN[0], OTHER_CA]),
        (jks("secret", CHAIN, ROOT, key_password="another"), [CHAIN[0], ROOT]),
    ],
    ids=["a chain", "a chain, named", "its issuer, too", "another", "JKS", "JKS, two passwords"],
)
def test_a_trust_store_does_not_trust_the_issuers_of_its_keys(tmp_path, data, trusted):
    """As Java's TrustManagerFactory: else everyone whom the issuer of a key certified is let in."""
    path = tmp_path / "store"
    path.write_bytes(data)
    values = {"ssl.truststore.location": str(path), "ssl.truststore.password": "secret"}
    assert list(not_none(read_trust(values))) == trusted


def test_an_encrypted_pem_key_needs_its_password():
    pem = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()
    chain = CHAIN[0].public_bytes(serialization.Encoding.PEM).decode()
    values = {
        "ssl.keystore.key": pem.replace("\n", " "),
        "ssl.keystore.certificate.chain": chain.replace("\n", " "),
    }
    with pytest.raises(StoreError, match=r"set ssl\.key\.password"):
        read_key(values)
    assert not_none(read_key({**values, "ssl.key.password": "secret"})).chain[0] == CHAIN[0]


@pytest.mark.parametrize("store", ["ssl.keystore", "ssl.truststore"])
def test_a_password_without_a_store_is_refused(store):
    """As in Kafka: else a misspelt location would make a node trust every public authority."""
    for values in ({}, {f"{store}.location": ""}):
        with pytest.raises(StoreError, match=rf"{store}\.password: is set without a store"):
            client_context({**values, f"{store}.password": "secret"})


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"ssl.keystore.password": "x"}, "ssl.keystore.password"),
        ({"ssl.keystore.type": "FOO"}, "ssl.keystore.type"),
        ({"ssl.truststore.type": "FOO"}, "ssl.truststore.type"),
        ({"ssl.truststore.location": "x", "ssl.truststore.certificates": "y"}, "ssl.truststore"),
        ({"ssl.keystore.location": "", "ssl.keystore.certificate.chain": "x"}, "ssl.keystore.cert"),
    ],
)
def test_stores_that_kafka_refuses_are_refused(tmp_path, more, key):
    """Also where nobody reads the trust store: ssl.client.auth=none."""
    path = tmp_path / "key.pem"
    path.write_text(PEM_KEY.decode() + pem("CERTIFICATE", OWN))
    values = {"ssl.keystore.location": str(path)}
    server_context(values)
    with pytest.raises(StoreError) as caught:
        server_context({**values, **more})
    assert caught.value.key.startswith(key)


def test_the_suite_that_only_signals_is_no_suite(tmp_path):
    path = tmp_path / "key.pem"
    path.write_text(PEM_KEY.decode() + pem("CERTIFICATE", OWN))
    suites = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    values = {"ssl.keystore.location": str(path), "ssl.enabled.protocols": "TLSv1.2"}
    server_context({**values, "ssl.cipher.suites": suites})


PKCS8 = KEY.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
OWN = CHAIN[0].public_bytes(DER)
CURVE = bytes.fromhex("06082a8648ce3d030107")
VERSION = bytes.fromhex("a003020102")


def pem(label, data):
    body = base64.encodebytes(data).decode()
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"


def other(data, part):
    """Data with another last byte in the part."""
    assert part in data
    return data.replace(part, part[:-1] + b"\x77")


def short():
    """A key of a length that OpenSSL takes for no connection."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "short")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + DAY)
    signed = made.sign(key, hashes.SHA256()).public_bytes(DER)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(DER, form, serialization.NoEncryption()), signed


UNUSABLE = {
    "a key of an unknown kind": lambda: (other(PKCS8, CURVE), OWN),
    "a certificate of an unknown kind": lambda: (PKCS8, other(OWN, CURVE)),
    "a certificate of an unknown version": lambda: (PKCS8, other(OWN, VERSION)),
    "a short key": short,
}


def test_a_damaged_trust_store_is_a_refusal_that_names_key_and_file(tmp_path):
    """Every third byte of a certificate in turn."""
    path = tmp_path / "trust.pem"
    refusals = set()
    for at in range(0, len(OWN), 3):
        damaged = bytearray(OWN)
        damaged[at] ^= 0x20
        path.write_text(pem("CERTIFICATE", bytes(damaged)))
        try:
            client_context({"ssl.truststore.location": str(path)})
        except StoreError as refusal:
            key, _, reason = str(refusal).partition(": ")
            assert key == f"ssl.truststore.location ({path})"
            refusals.add(reason)
    assert any("OpenSSL refuses" in one for one in refusals), refusals


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_openssl_cannot_use_is_a_refusal_of_the_key(name, tmp_path):
    """Also where a running node reads it: anything else would end its look at the files."""
    key, certificate = UNUSABLE[name]()
    text = pem("PRIVATE KEY", key), pem("CERTIFICATE", certificate)
    inline = {"ssl.keystore.key": text[0], "ssl.keystore.certificate.chain": text[1]}
    with pytest.raises(StoreError, match=r"ssl\.keystore\.key: .*(cannot be used|refuses)"):
        server_context(inline)
    path = tmp_path / "key.pem"
    path.write_text(PEM_KEY.decode() + pem("CERTIFICATE", OWN))
    source = ReloadingContext({"ssl.keystore.location": str(path)}, server_context)
    path.write_text("".join(text))
    assert poll(source) is False
    assert "ssl.keystore.location" in not_none(source.fault)


@pytest.mark.parametrize("form", ["TraditionalOpenSSL", "OpenSSH"])
def test_a_key_in_another_form_is_named(form):
    """Kafka reads PKCS#8 only."""
    lock: serialization.KeySerializationEncryption
    lock = serialization.BestAvailableEncryption(b"secret")
    if form == "OpenSSH":
        lock = serialization.NoEncryption()
    form = getattr(serialization.PrivateFormat, form)
    text = KEY.private_bytes(serialization.Encoding.PEM, form, lock).decode()
    chain = CHAIN[0].public_bytes(serialization.Encoding.PEM).decode()
    values = {"ssl.keystore.key": text, "ssl.keystore.certificate.chain": chain}
    with pytest.raises(StoreError, match="convert it to PKCS#8"):
        read_key({**values, "ssl.key.password": "secret"})


def test_a_key_of_another_certificate_is_refused():
    values = {
        "ssl.keystore.key": PEM_KEY.decode(),
        "ssl.keystore.certificate.chain": CA.cert_pem.bytes().decode(),
    }
    with pytest.raises(StoreError, match=r"does not belong to the first certificate$"):
        read_key(values)


def test_certificates_in_the_wrong_order_are_named_with_their_cure():
    """A text of its own: the key is there, and no other file is needed."""
    values = {
        "ssl.keystore.key": PEM_KEY.decode(),
        "ssl.keystore.certificate.chain": pem("CERTIFICATE", ROOT.public_bytes(DER))
        + pem("CERTIFICATE", OWN),
    }
    with pytest.raises(
        StoreError, match=r"but to number 2: .* wrong order.*openssl pkcs12 -export"
    ):
        read_key(values)


def test_a_certificate_in_the_form_of_openssl_is_named_with_its_cure():
    """In a trust store, too, where nothing else is missing."""
    text = pem("TRUSTED CERTIFICATE", OWN + b"0\0")
    for read in (read_trust, read_key):
        values = {
            "ssl.truststore.certificates": text,
            "ssl.keystore.key": PEM_KEY.decode(),
            "ssl.keystore.certificate.chain": text,
        }
        with pytest.raises(StoreError, match=r"BEGIN TRUSTED CERTIFICATE.*openssl x509 -in"):
            read(values)


def test_the_old_label_of_certificates_is_known():
    text = pem("X509 CERTIFICATE", OWN)
    assert not_none(read_trust({"ssl.truststore.certificates": text}))[0].public_bytes(DER) == OWN


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (
            [
                (NameOID.COUNTRY_NAME, "DE"),
                (NameOID.ORGANIZATION_NAME, "A, B"),
                (NameOID.COMMON_NAME, "x"),
            ],
            r"CN=x,O=A\, B,C=DE",
        ),
        ([(NameOID.COMMON_NAME, ' #a=b"+;<>\\ ')], r"CN=\ \#a\=b\"\+\;\<\>\\\ "),
        ([(NameOID.COMMON_NAME, "Zoë")], "CN=Zoë"),
        (
            [(NameOID.EMAIL_ADDRESS, "a@b")],
            "1.2.840.113549.1.9.1=#1603614062",
        ),
        ([(NameOID.USER_ID, "u"), (NameOID.DOMAIN_COMPONENT, "d")], "DC=d,UID=u"),
    ],
)
def test_names_are_written_as_java_writes_them(attributes, text):
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    assert rfc2253(name.public_bytes()) == text


def encoded(tag, *parts):
    content = b"".join(parts)
    return bytes((tag, len(content))) + content


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        # The pairs of a relative name keep their order, which may not be that of DER.
        ([(0x13, b"b"), (0x13, b"a")], "CN=b+CN=a"),
        # Java takes the bytes of every string for UTF-8.
        ([(0x1E, b"\0a\0b")], r"CN=\00a\00b"),
        ([(0x14, "é".encode())], "CN=é"),
        ([(0x0C, b"a\xff\xed\xa0\x80\xed\xbfb")], "CN=a\ufffd\ufffd\ufffdb"),
        # `cryptography` refuses a name with such a value.
        ([(0x04, b"ab")], "CN=#04026162"),
    ],
)
def test_the_subject_of_a_certificate_in_unusual_encodings(pairs, text):
    oid = encoded(6, bytes((0x55, 4, 3)))
    relative = encoded(0x31, *(encoded(0x30, oid, encoded(*pair)) for pair in pairs))
    empty = encoded(0x30)
    facts = encoded(0x30, encoded(2, b"\1"), empty, empty, empty, encoded(0x30, relative), empty)
    assert subject_of(encoded(0x30, facts, empty, encoded(3, b"\0"))) == text


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x00", b"\x30\x02\x30\x00"])
def test_what_is_no_certificate_has_no_subject(data):
    with pytest.raises(DerError):
        subject_of(data)
