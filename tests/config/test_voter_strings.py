"""Parsing and printing `id@host:port:directory-id,...`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.base.ids import Address, Listener, ReplicaKey, Uuid, uuid_to_text
from quorate.config.dynamic_voters import DynamicVoter, VoterError, parse_voter, parse_voters

DIRECTORY = uuid_to_text(Uuid(b"d" * 16))


def test_a_voter_list_is_sorted_by_id_and_empty_entries_are_ignored():
    voters = parse_voters(f" 3@c:3:{DIRECTORY},,1@[::1]:1:{DIRECTORY}, ".rstrip(", "))
    assert [voter.key.id for voter in voters] == [1, 3]
    assert voters[0].address == Address("::1", 1)
    assert str(voters[0]) == f"1@[::1]:1:{DIRECTORY}"


def test_a_voters_listener_is_named_in_upper_case():
    voter = parse_voter(f"1@a:9093:{DIRECTORY}").to_voter("controller")
    assert voter.listeners == (Listener("CONTROLLER", "a", 9093),)
    assert (voter.min_kraft_version, voter.max_kraft_version) == (0, 1)


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("[::1]", "0:0:0:0:0:0:0:1"),
        ("[fe80::a%eth0]", "fe80:0:0:0:0:0:0:a%eth0"),
        ("10.0.0.1", "10.0.0.1"),
        ("name.example", "name.example"),
    ],
)
def test_an_ipv6_address_is_written_in_full_as_java_does(host, written):
    voter = parse_voter(f"1@{host}:9093:{DIRECTORY}").to_voter("C")
    assert voter.listeners[0].host == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No voters given."),
        ("1", "No @ found in dynamic voter string."),
        ("@a:1:x", "Invalid @ at beginning of dynamic voter string."),
        ("x@a:1:x", "Failed to parse node id in dynamic voter string."),
        ("9999999999@a:1:x", "Failed to parse node id"),
        ("-1@a:1:x", "Invalid negative node id -1"),
        ("1@", "No hostname found after node id."),
        ("1@[a:1:x", "no right bracket was found"),
        ("1@a", "No colon following hostname could be found."),
        ("1@[a]1:x", "Port section must start with a colon."),
        ("1@a:1", "No colon following port could be found."),
        ("1@a:x:y", "Failed to parse port"),
        ("1@a:65536:y", "Invalid port 65536"),
        ("1@a:-1:y", "Invalid port -1"),
        ("1@a:1:nonsense", "Failed to parse directory ID"),
        (f"1@a:1:{DIRECTORY},1@b:1:{DIRECTORY}", "Node id 1 was specified more than once."),
    ],
)
def test_a_wrong_voter_string_has_kafkas_message(text, message):
    with pytest.raises(VoterError) as caught:
        parse_voters(text)
    assert message in str(caught.value)


@given(
    st.integers(0, 2**31 - 1),
    st.sampled_from(["localhost", "10.0.0.1", "::1", "fe80::1%eth0", "a-b.example"]),
    st.integers(0, 65535),
    st.binary(min_size=16, max_size=16),
)
def test_voter_strings_round_trip(node_id, host, port, directory_id):
    voter = DynamicVoter(ReplicaKey(node_id, Uuid(directory_id)), Address(host, port))
    assert parse_voter(str(voter)) == voter


@given(st.text())
def test_arbitrary_text_raises_only_voter_errors(text):
    try:
        parse_voters(text)
    except VoterError:
        return
    assert "@" in text
