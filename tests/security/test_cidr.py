"""Ranges of addresses in access control entries: what Kafka 4.4 accepts, with its texts (KIP-1276)."""

import pytest

from quorate.security.cidr import is_in_range, parse_range


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.0/8", "10.0.0.7/8", "10.0.0.0/08", "10.0.0.0/0", "10.0.0.0/32", "010.0.0.0/8"),
        *("fd00::/8", "fd00::1/64", "::/0", "fe80::1%eth0/64", "[fd00::]/8", "fd00::/+8"),
        "fd00::/08",
    ],
)
def test_a_range_that_kafka_accepts(text):
    parse_range(text)


# Measured with CidrUtils of Kafka 4.4.0.
REFUSED = {
    "10.0.0.0/99": "Value [99] not in range [0,32]",
    "10.0.0.0/33": "Value [33] not in range [0,32]",
    "10.0.0.256/8": "Value [256] not in range [0,255]",
    **{
        text: f"Could not parse [{text}]"
        for text in (
            *("10.0.0.0/255.0.0.0", "10.0.0.0/0.0.0.255", "10.0.0.0/", "/8", "10.0.0/8", "a/8"),
            *("10.0.0.0/-1", "10.0.0.0/x", "10.0.0.0/8/9", "10.0.0.0/ 8", " 10.0.0.0/8"),
            "10.0.0.0/+8",
        )
    },
    "fd00::/129": "Could not parse [fd00::/129] - prefix length must be between 0 and 128",
    "fd00::/-1": "Could not parse [fd00::/-1] - prefix length must be between 0 and 128",
    "fd00::/x": "Could not parse [fd00::/x] - invalid prefix length",
    "fd00::/": "Could not parse [fd00::/] - invalid prefix length",
    "::ffff:10.0.0.0/104": "Could not parse [::ffff:10.0.0.0] - not an IPv6 address",
    "fd00::g/8": "Could not parse [fd00::g]",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_range_that_kafka_refuses(text):
    with pytest.raises(ValueError) as refusal:
        parse_range(text)
    assert str(refusal.value) == REFUSED[text]
    assert not is_in_range("10.0.0.1", text)


@pytest.mark.parametrize(
    ("host", "text", "expected"),
    [
        ("10.1.2.3", "10.0.0.7/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "0.0.0.0/0", True),
        ("10.0.0.0", "10.0.0.0/8", True),
        ("10.0.0.255", "10.0.0.0/24", True),
        ("10.0.0.5", "10.0.0.5/32", True),
        ("fd00::1", "[fd00::]/8", True),
        ("10.0.0.1", "::/0", False),
        ("::1", "0.0.0.0/0", False),
        ("?", "0.0.0.0/0", False),
    ],
)
def test_addresses_in_a_range(host, text, expected):
    assert is_in_range(host, text) == expected
