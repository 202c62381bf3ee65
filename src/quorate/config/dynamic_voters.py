"""Voter sets in the form of the command line: `id@host:port:directory-id,...`.

Source: KIP-853, Kafka's `DynamicVoter` and `DynamicVoters`.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey, uuid_from_text, uuid_to_text
from quorate.raft.values import Voter

_INT32: Final = range(-(2**31), 2**31)
_MAX_PORT: Final = 65535


class VoterError(QuorateError):
    """A voter string that cannot be parsed."""


class DynamicVoter(NamedTuple):
    """One voter: its key, the address of its default controller listener, its kraft.versions."""

    key: ReplicaKey
    address: Address
    kraft_versions: tuple[int, int] = (0, 1)
    """Supported range: lowest and highest level, both inclusive."""

    def __str__(self) -> str:
        return f"{self.key.id}@{self.address}:{uuid_to_text(self.key.directory_id)}"

    def to_voter(self, listener_name: str) -> Voter:
        """The voter as a VotersRecord holds it.

        The listener name is in upper case, an IPv6 address is written in full.
        """
        host, port = self.address
        listener = Listener(listener_name.upper(), _expand_ipv6(host), port)
        return Voter(self.key, (listener,), *self.kraft_versions)


def parse_voters(text: str) -> tuple[DynamicVoter, ...]:
    """Parse a comma-separated list; the voters are sorted by id. Raises VoterError."""
    voters: dict[int, DynamicVoter] = {}
    for part in text.strip().split(","):
        if not part:
            continue
        voter = parse_voter(part)
        if voter.key.id in voters:
            raise VoterError(f"Node id {voter.key.id} was specified more than once.")
        voters[voter.key.id] = voter
    if not voters:
        raise VoterError("No voters given.")
    return tuple(voters[node_id] for node_id in sorted(voters))


def parse_voter(text: str) -> DynamicVoter:
    """Parse one `id@host:port:directory-id`; an IPv6 address has brackets. Raises VoterError."""
    id_text, at, rest = text.strip().partition("@")
    if not at:
        raise _error("No @ found in dynamic voter string.", text)
    if not id_text:
        raise _error("Invalid @ at beginning of dynamic voter string.", text)
    node_id = _integer(id_text, "node id", text)
    if node_id < 0:
        raise _error(f"Invalid negative node id {node_id} in dynamic voter string.", text)
    host, rest = _split_host(rest, text)
    if not rest.startswith(":"):
        raise _error("Port section must start with a colon.", text)
    port_text, colon, directory_text = rest[1:].partition(":")
    if not colon:
        raise _error("No colon following port could be found.", text)
    port = _integer(port_text, "port", text)
    if not 0 <= port <= _MAX_PORT:
        raise _error(f"Invalid port {port} in dynamic voter string.", text)
    try:
        directory_id = uuid_from_text(directory_text)
    except QuorateError as error:
        raise _error(f"Failed to parse directory ID in dynamic voter string. {error}", text) from (
            None
        )
    return DynamicVoter(ReplicaKey(node_id, directory_id), Address(host, port))


def _split_host(rest: str, text: str) -> tuple[str, str]:
    """Split off the host: (host, the rest from the colon on). Raises VoterError."""
    if not rest:
        raise _error("No hostname found after node id.", text)
    if rest.startswith("["):
        host, bracket, rest = rest[1:].partition("]")
        if not bracket:
            raise _error("Hostname began with left bracket, but no right bracket was found.", text)
        return host, rest
    host, colon, rest = rest.partition(":")
    if not colon:
        raise _error("No colon following hostname could be found.", text)
    return host, colon + rest


def _expand_ipv6(host: str) -> str:
    """An IPv6 address as Java's `getHostAddress` writes it, `0:0:0:0:0:0:0:1`.

    Any other host is returned unchanged.
    """
    address, percent, scope = host.partition("%")
    try:
        groups = IPv6Address(address).exploded.split(":")
    except ValueError:
        return host
    return ":".join(f"{int(group, 16):x}" for group in groups) + percent + scope


def _integer(digits: str, what: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", digits, re.ASCII) or int(digits) not in _INT32:
        raise _error(f"Failed to parse {what} in dynamic voter string.", text)
    return int(digits)


def _error(reason: str, text: str) -> VoterError:
    return VoterError(f"{reason} ('{text}' must have the form id@host:port:directory-id)")
