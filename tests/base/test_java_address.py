"""IP addresses in the form of Java's `InetAddress.getHostAddress()`."""

import pytest

from quorate.base.java_address import peer_host, spellings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (("10.0.0.7", 1), "10.0.0.7"),
        (("::1", 1, 0, 0), "0:0:0:0:0:0:0:1"),
        (("::", 1, 0, 0), "0:0:0:0:0:0:0:0"),
        (("::ffff:10.0.0.7", 1, 0, 0), "10.0.0.7"),
        (("::ffff:a00:7", 1, 0, 0), "10.0.0.7"),
        (("::10.0.0.7", 1, 0, 0), "0:0:0:0:0:0:a00:7"),
        (("fe80::ab:1%eth0", 1, 0, 2), "fe80:0:0:0:0:0:ab:1%2"),
        (("2001:db8::f00d", 1, 0, 0), "2001:db8:0:0:0:0:0:f00d"),
        (("?", 0), "?"),
    ],
)
def test_the_address_of_a_client_is_written_as_java_writes_it(name, text):
    assert peer_host(name) == text


@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("10.0.0.7", ("10.0.0.7",)),
        ("fe80:0:0:0:0:0:0:1%2", ("fe80:0:0:0:0:0:0:1", "fe80::1")),
        ("?", ("?",)),
    ],
)
def test_an_address_has_a_long_and_a_short_spelling(host, found):
    assert spellings(host) == found
