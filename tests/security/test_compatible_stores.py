"""Which stores a running node takes in place of those it uses (`SslFactory.ensureCompatible`)."""

import datetime
import ipaddress

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from narrow import not_none
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.names import alternative_names, canonical_subject
from quorate.security.tls.reload import ReloadingContext
from quorate.security.tls.stores import StoreError
from security.polled import poll

KEY = ec.generate_private_key(ec.SECP256R1())
PLACE = "ssl.keystore.location"
PEM = serialization.Encoding.PEM
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
PLAIN_KEY = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()


def certificate(*pairs, names=(), kind=_ASN1Type.UTF8String):
    """Self-signed. pairs: of (object identifier, text) of the subject."""
    subject = x509.Name([x509.NameAttribute(oid, text, kind) for oid, text in pairs])
    builder = (
        x509.CertificateBuilder(subject, subject, KEY.public_key(), x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + DAY)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256())


def named(text, *hosts):
    return certificate((NameOID.COMMON_NAME, text), names=[x509.DNSName(one) for one in hosts])


def pem(*certificates):
    return KEY.private_bytes(PEM, *PLAIN_KEY) + b"".join(
        one.public_bytes(PEM) for one in certificates
    )


def p12(own, *others):
    lock = serialization.BestAvailableEncryption(b"secret")
    beside = [pkcs12.PKCS12Certificate(one, b"other") for one in others]
    return pkcs12.serialize_key_and_certificates(b"own", KEY, own, beside, lock)


class Node:
    """A listener with a key store of `first`, and a trust store."""

    def __init__(self, directory, first, **values):
        self.path = directory / "store"
        self.path.write_bytes(first)
        trust = directory / "trust.pem"
        trust.write_bytes(named("ca").public_bytes(PEM))
        self.values = {PLACE: str(self.path), "ssl.truststore.location": str(trust), **values}
        if not first.startswith(b"-----"):
            self.values["ssl.keystore.password"] = "secret"
        self.source = ReloadingContext(self.values, server_context)

    def fault_after(self, data, **values):
        """Why the node refuses the new store; None: it uses it."""
        used, refused = self.source.context, self.source.refused_changes
        self.path.write_bytes(data)
        accepted = poll(self.source, {**self.values, **values})
        assert accepted is (self.source.fault is None)
        assert (self.source.context is used) is not accepted
        assert self.source.refused_changes == refused + (not accepted)
        return self.source.fault


def test_another_distinguished_name_is_refused_and_named(tmp_path):
    node = Node(tmp_path, pem(named("one")))
    assert node.fault_after(pem(named("two"))) == (
        "ssl.keystore.location: Keystore DistinguishedName does not match: existing={DN=CN=one}, "
        "new={DN=CN=two}: set ssl.allow.dn.changes=true in the node's file, or restart the node "
        "with the new store in it"
    )
    assert node.fault_after(pem(named("one"))) is None
    assert node.fault_after(pem(named("two")), **{"ssl.allow.dn.changes": "true"}) is None
    assert "existing={DN=CN=two}" in not_none(node.fault_after(pem(named("one")))), "that in use"


def test_a_subject_alternative_name_may_come_and_not_go(tmp_path):
    node = Node(tmp_path, pem(named("n", "a.org")))
    assert node.fault_after(pem(named("n", "b.org", "a.org"))) is None
    fault = node.fault_after(pem(named("n", "b.org")))
    assert (
        "Keystore SubjectAltNames do not match: existing={SAN=[[2, b.org], [2, a.org]]}, "
        "new={SAN=[[2, b.org]]}: set ssl.allow.san.changes=true"
    ) in not_none(fault)
    assert node.fault_after(pem(named("n"))) is not None
    assert node.fault_after(pem(named("n", "b.org")), **{"ssl.allow.san.changes": "true"}) is None


def test_each_entry_of_a_store_counts(tmp_path):
    own, other = named("own"), named("other")
    node = Node(tmp_path, p12(own, other))
    assert node.fault_after(p12(named("own"), named("other"))) is None
    assert "existing={DN=CN=other}" in not_none(node.fault_after(p12(own, named("x"))))
    counts = "existing store contains 2 entries, new store contains 1 entries"
    fault = not_none(node.fault_after(p12(own)))
    assert f"Keystore entries do not match, {counts}: set ssl.allow.dn.changes=true" in fault
    fault = node.fault_after(p12(own), **{"ssl.allow.dn.changes": "true"})
    assert f"{counts}: set ssl.allow.san.changes=true" in not_none(fault)
    both = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "TRUE"}
    assert node.fault_after(p12(own), **both) is None


def test_the_rest_of_a_pem_chain_may_change(tmp_path):
    """Java reads PEM as one entry."""
    node = Node(tmp_path, pem(named("own"), named("authority")))
    assert node.fault_after(pem(named("own"), named("another"), named("third"))) is None
    assert node.fault_after(pem(named("own"))) is None


def test_a_running_node_gains_and_loses_no_store(tmp_path):
    key, trust = str(tmp_path / "key"), str(tmp_path / "trust")
    (tmp_path / "key").write_bytes(pem(named("n")))
    (tmp_path / "trust").write_bytes(named("ca").public_bytes(PEM))
    bare = ReloadingContext({}, client_context)
    assert poll(bare, {PLACE: key}) is False
    assert "Cannot add SSL keystore to an existing listener" in not_none(bare.fault)
    assert poll(bare, {"ssl.truststore.location": trust}) is False
    assert "Cannot add SSL truststore to an existing listener" in not_none(bare.fault)
    both = {PLACE: key, "ssl.truststore.location": trust}
    full = ReloadingContext(both, client_context)
    assert poll(full, {"ssl.truststore.location": trust}) is False
    assert "Cannot remove the SSL keystore from an existing listener" in not_none(full.fault)
    assert poll(full, {PLACE: key}) is True, "Kafka lets a trust store go"


@pytest.mark.parametrize("key", ["ssl.allow.dn.changes", "ssl.allow.san.changes"])
def test_a_switch_that_is_no_boolean_is_refused_at_the_start(key, tmp_path):
    with pytest.raises(StoreError, match=f"{key}: 'yes' is not a boolean"):
        Node(tmp_path, pem(named("n")), **{key: "yes"})


DER = serialization.Encoding.DER
CN, ORGANIZATION, SERIAL = NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.SERIAL_NUMBER
ASTERISK = "*.example.com"
UTF8, T61 = _ASN1Type.UTF8String, _ASN1Type.T61String


@pytest.mark.parametrize(
    ("name", "organization", "kind", "is_same"),
    [
        (" *.example.com", " Kafka ", UTF8, True),
        ("*.EXAMPLE.com", "KAFKA", UTF8, True),
        ("*.EXAMPLE.com", "KAFKA", T61, True),
        (" *.example.com", " Kafka ", T61, False),
        ("*.another.example.com", "Kafka", UTF8, False),
    ],
)
def test_names_are_compared_as_java_compares_them(name, organization, kind, is_same, tmp_path):
    """The cases of `SslFactoryTest.testDynamicUpdateCompatibility`."""
    node = Node(tmp_path, pem(certificate((CN, name), (ORGANIZATION, organization), kind=kind)))
    fault = node.fault_after(pem(certificate((CN, ASTERISK), (ORGANIZATION, "Kafka"))))
    assert (fault is None) is is_same


def test_the_order_of_a_name_and_spaces_within_a_word_count():
    def canonical(*pairs):
        return canonical_subject(certificate(*pairs).public_bytes(DER))

    name = canonical((ORGANIZATION, "An Org"), (CN, "x"))
    assert name == canonical((ORGANIZATION, "an  ORG"), (CN, "x"))
    assert name != canonical((CN, "x"), (ORGANIZATION, "An Org"))
    assert name != canonical((ORGANIZATION, "AnOrg"), (CN, "x"))


def test_alternative_names_are_shown_as_in_java():
    names = [
        x509.DNSName("a.org"),
        x509.IPAddress(ipaddress.ip_address("10.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
        x509.DirectoryName(x509.Name([x509.NameAttribute(CN, "x")])),
        x509.RFC822Name("a@b.org"),
        x509.RegisteredID(SERIAL),
    ]
    made = certificate((CN, "n"), names=names).public_bytes(DER)
    assert list(alternative_names(made).values()) == [
        *("[2, a.org]", "[7, 10.0.0.1]", "[7, ::1]", "[4, CN=x]", "[1, a@b.org]", "[8, 550405]"),
    ]
    assert alternative_names(certificate((CN, "n")).public_bytes(DER)) == {}
