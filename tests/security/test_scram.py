"""SCRAM credentials: the keys of RFC 5802, Kafka's syntax and messages."""

import tracemalloc
from base64 import b64decode

import pytest

from narrow import not_none
from quorate.metadata.image import ScramCredential
from quorate.security.sasl.mechanism import SaslError
from quorate.security.sasl.scram import ScramClient, ScramServer
from quorate.security.scram import ScramError, parse_scram


def test_a_credential_equals_the_example_of_rfc_7677():
    """User "user", password "pencil", the RFC's salt and 4096 iterations; keys from there."""
    record = parse_scram(
        'SCRAM-SHA-256=[name=user,password=pencil,salt="W22ZaJ0SNY7soEsUEjb6gQ==",iterations=4096]'
    )
    assert (record.name, record.mechanism, record.iterations) == ("user", 1, 4096)
    assert record.salt == b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    assert record.stored_key == b64decode("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=")
    assert record.server_key == b64decode("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")


def test_names_and_passwords_are_taken_as_they_are():
    """No SASLprep: the key is that of Kafka's `ScramFormatter`, and the client makes the same."""
    name, password, salt = "\u2168\u00ad", "I\u00adX \u2168\u00aa", "MDEyMzQ1Njc4OWFiY2RlZg=="
    record = parse_scram(f"SCRAM-SHA-256=[name={name},password={password},salt={salt}]")
    assert record.stored_key == b64decode("GqRJh/t/Zn8+MKqcklL4rGFTMnP0G2Y1Z/c0o8tC1Oo=")
    kept = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
    users = {record.name: kept}
    server = ScramServer(
        "SCRAM-SHA-256", lambda mechanism, user: users.get(user), lambda mechanism, token: None
    )
    client = ScramClient("SCRAM-SHA-256", name, password)
    final = not_none(client.evaluate(server.evaluate(client.first())))
    client.evaluate(server.evaluate(final))
    assert server.principal == name


def test_a_salted_password_replaces_the_password():
    whole = parse_scram('SCRAM-SHA-256=[name=u,password=pencil,salt="W22ZaJ0SNY7soEsUEjb6gQ=="]')
    salted = parse_scram(
        'SCRAM-SHA-256=[name=u,saltedpassword="xKSVEDI6tPlSysH6mUQZOeeOp01r6B3fcJbodRPcYV0=",'
        'salt="W22ZaJ0SNY7soEsUEjb6gQ=="]'
    )
    assert (salted.stored_key, salted.server_key) == (whole.stored_key, whole.server_key)


def test_each_credential_gets_a_random_salt():
    one, two = (parse_scram("SCRAM-SHA-512=[name=u,password=p]") for _ in range(2))
    assert one.salt != two.salt
    assert (one.mechanism, len(one.salt), len(one.stored_key)) == (2, 32, 64)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("nonsense", "Failed to find equals sign in SCRAM argument"),
        ("MD5=[name=u,password=p]", "The add-scram mechanism MD5 is not supported."),
        ("SCRAM-SHA-256=name=u]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=u", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[name]", "No equals sign found in SCRAM component 1"),
        ("SCRAM-SHA-256=[password=p]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=u]", "You must supply one of 'password' or 'saltedpassword'"),
        ("SCRAM-SHA-256=[name=u,saltedpassword=YQ==]", "You must supply 'salt' with"),
        ("SCRAM-SHA-256=[name=u,password=p,salt=!]", "Failed to decode given salt: it is"),
        (
            "SCRAM-SHA-256=[name=u,saltedpassword=!,salt=YQ==]",
            "Failed to decode given saltedPassword: it is not base64",
        ),
        ("SCRAM-SHA-256=[name=u,password=p,iterations=x]", "Failed to parse iterations count: x"),
        ("SCRAM-SHA-256=[name=u,password=p,iterations=4095]", "must be >= 4096"),
        (
            "SCRAM-SHA-512=[name=u,password=p,iterations=16385]",
            "<= 16384 for add-scram using SCRAM_",
        ),
        ("SCRAM-SHA-256=[name=u,password=p,b=1,a=2]", "Unknown SCRAM configurations; there are"),
    ],
)
def test_a_wrong_argument_is_refused(argument, message):
    with pytest.raises(ScramError) as caught:
        parse_scram(argument)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "argument",
    [
        "SCRAM-SHA-256=[name=u,password=half,hidden]",
        "SCRAM-SHA-256=[name=u,password=half,hidden=x]",
        "SCRAM-SHA-256=[name=u,salt=YQ==,saltedpassword=hidden!]",
        "hidden",
    ],
)
def test_no_refusal_repeats_a_part_of_a_password(argument):
    with pytest.raises(ScramError) as caught:
        parse_scram(argument)
    assert "hidden" not in str(caught.value)


_FIRST = b"n,,n=u,r=x"


@pytest.mark.parametrize(
    ("before", "start", "unit"),
    [
        ((), b"n,,n=", b"a"),
        ((), b"n,,n=", b"=2C"),
        ((), b"n,a=", b"a"),
        ((), b"n,,m=", b"x"),
        ((), _FIRST, b"x"),
        ((), _FIRST, b",a=b"),
        ((), _FIRST + b",tokenauth=true", b",a=b"),
        ((_FIRST,), b"c=", b"A"),
        ((_FIRST,), b"c=biws,r=", b"x"),
        ((_FIRST,), b"c=biws,r=x", b",a=b"),
    ],
)
@pytest.mark.parametrize("size", [8_000, 9_000, 524_000])
def test_a_message_of_any_size_takes_little_memory_before_the_login(before, start, unit, size):
    kept = ScramCredential(b"s" * 16, b"k" * 32, b"k" * 32, 4096)
    server = ScramServer("SCRAM-SHA-256", lambda *_: kept, lambda *_: None)
    for message in before:
        server.evaluate(message)
    whole = start + unit * (size // len(unit))
    tracemalloc.start()
    try:
        server.is_slow(whole)
        try:
            server.evaluate(whole)
        except SaslError as error:
            assert len(str(error)) < 9_000
        else:
            assert size < 8192
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
