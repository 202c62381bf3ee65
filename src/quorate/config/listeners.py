"""Parse listeners, voters and bootstrap servers of a properties file.

The rules are those of Kafka's `SocketServerConfigs`, `AbstractKafkaConfig`, `QuorumConfig` and
`KafkaConfig.effectiveAdvertisedControllerListeners`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final

from quorate.base.ids import Address, Listener, Listeners, ReplicaKey
from quorate.config.host_port import MAX_PORT, parse_host_port
from quorate.config.settings import Settings

if TYPE_CHECKING:
    from quorate.raft.values import Voter

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
NO_NAME: Final = "The provided listener name is null or empty string"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
CONTROLLER_NAMES: Final = "controller.listener.names"
VOTERS: Final = "controller.quorum.voters"
BOOTSTRAP: Final = "controller.quorum.bootstrap.servers"

_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.ASCII)


def is_wildcard(host: str) -> bool:
    """True for every spelling of 0.0.0.0 and of `::`, which stand for all interfaces of a machine.

    Resolvers also read `0` and `000.0.0.0` as that address (`inet_aton`).
    """
    if re.fullmatch(r"0+(\.0+){0,3}", host):
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_unspecified


def security_protocols(settings: Settings, controllers: Sequence[str]) -> dict[str, str]:
    """Map each listener name (upper case) to its security protocol, with Kafka's defaults.

    `controllers`: `controller.listener.names`. Raises ConfigError.
    """
    text = settings.text(PROTOCOL_MAP)
    if text is None:
        return _default_protocols(settings, controllers)

    def parse(entry: str) -> tuple[str, str]:
        name, colon, protocol = entry.rpartition(":")
        if not colon:
            settings.refuse(
                PROTOCOL_MAP,
                f"Error parsing configuration property '{PROTOCOL_MAP}': "
                f"'{entry}' is not of the form NAME:PROTOCOL",
            )
        if not name.strip():
            settings.refuse(PROTOCOL_MAP, NO_NAME)
        protocol = protocol.strip()
        if protocol.upper() not in PROTOCOLS:
            settings.refuse(
                PROTOCOL_MAP, f"Invalid security protocol `{protocol}` defined in {PROTOCOL_MAP}"
            )
        return name.strip().upper(), protocol.upper()

    return dict(settings.each(parse, filter(None, re.split(r"\s*,\s*", text))))


def _default_protocols(settings: Settings, controllers: Sequence[str]) -> dict[str, str]:
    protocols = {name: name for name in PROTOCOLS}
    # KIP-851: without a map, controller listeners default to PLAINTEXT, unless a listener is named
    # after another protocol (`KafkaConfig.effectiveListenerSecurityProtocolMap`).
    bound = [entry.partition(":")[0].upper() for entry in settings.items(LISTENERS) or ()]
    if not set(PROTOCOLS[1:]) & {*controllers, *bound}:
        protocols |= dict.fromkeys(controllers, "PLAINTEXT")
    return protocols


def listeners(
    settings: Settings, key: str, protocols: Container[str] | None, *, distinct_ports: bool
) -> Listeners | None:
    """Parse the endpoints of `listeners` or `advertised.listeners`.

    A host is "" where the entry has none. Returns None when the key is absent. `protocols` holds the
    allowed listener names; None allows any. Raises ConfigError.
    """
    entries = settings.distinct(key)
    if entries is None:
        return None
    shown = f"[{', '.join(entries)}]"

    def parse(entry: str) -> Listener:
        try:
            return _listener(entry, protocols)
        except ValueError as error:
            settings.refuse(key, f"Error creating broker listeners from '{shown}': {error}")

    endpoints = tuple(settings.each(parse, entries))
    try:
        _check_distinct(endpoints, shown, distinct_ports)
    except ValueError as error:
        settings.refuse(key, f"Error creating broker listeners from '{shown}': {error}")
    return endpoints


def _listener(entry: str, protocols: Container[str] | None) -> Listener:
    match = _LISTENER.fullmatch(entry)
    if match is None:
        raise ValueError(f"Unable to parse {entry} to a broker endpoint")
    name, host, port = match[1].upper(), match[2], int(match[3])
    if protocols is not None and name not in protocols:
        raise ValueError(f"No security protocol defined for listener {name}")
    if not 0 <= port <= MAX_PORT:
        raise ValueError(f"Port {port} of {entry} is not between 0 and {MAX_PORT}")
    return Listener(name, host, port)


def _check_distinct(endpoints: Listeners, shown: str, distinct_ports: bool) -> None:
    if len({endpoint.name for endpoint in endpoints}) != len(endpoints):
        raise ValueError(f"Each listener must have a different name, listeners: {shown}")
    if not distinct_ports:
        return
    hosts: dict[int, list[str]] = {}
    for endpoint in endpoints:
        if endpoint.port:
            hosts.setdefault(endpoint.port, []).append(endpoint.host)
    for port, sharing in hosts.items():
        if len(sharing) > 1:
            _check_shared_port(port, sharing, shown)


def _check_shared_port(port: int, hosts: Sequence[str], shown: str) -> None:
    """Raise ValueError unless the port is shared by one IPv4 and one IPv6 address only (KIP-797)."""
    versions = sorted(filter(None, map(_ip_version, hosts)))
    if len(hosts) - len(versions) > 1:
        raise ValueError(f"Each listener must have a different port, listeners: {shown}")
    if len(versions) == 2 and (versions != [4, 6] or len(hosts) > 2):
        raise ValueError(
            "If you have two listeners on the same port then one needs to be IPv4 and the other "
            f"IPv6, listeners: {shown}, port: {port}"
        )
    if len(versions) != 2:
        raise ValueError(
            "Each listener must have a different port unless exactly one listener has an IPv4 "
            f"address and the other IPv6 address, listeners: {shown}, port: {port}"
        )


def _ip_version(host: str) -> int | None:
    try:
        return ip_address(host).version
    except ValueError:
        return None


def voters(settings: Settings) -> dict[int, Address]:
    """Parse `controller.quorum.voters` into node id -> address; empty when the key is absent.

    Raises ConfigError.
    """
    found: dict[int, Address] = {}

    def add(entry: str) -> None:
        form = "Each entry should be in the form `{id}@{host}:{port}`."
        parts = entry.rstrip("@").split("@")
        if len(parts) != 2:
            settings.refuse(VOTERS, f"Invalid configuration value for {VOTERS}. {form}")
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", parts[0], re.ASCII):
            settings.refuse(VOTERS, f"Failed to parse voter ID as an integer from {parts[0]}")
        address = parse_host_port(parts[1])
        if address is None:
            what = "port" if re.fullmatch(r".*:[0-9]+", parts[1]) else "name"
            settings.refuse(
                VOTERS,
                f"Failed to parse host {what} from entry {entry} for the configuration {VOTERS}."
                f" {form}",
            )
        voter_id = int(parts[0])
        if found.get(voter_id, address) != address:
            settings.refuse(VOTERS, f"{VOTERS} names voter {voter_id} twice, with two addresses")
        found[voter_id] = address

    settings.each(add, settings.items(VOTERS) or ())
    return found


def static_voters(voters: Mapping[int, Address], listener: str) -> tuple[Voter, ...]:
    """The voters of a static quorum, each with one listener of this name."""
    if not voters:
        return ()
    # Imported here: a dynamic quorum has none, and tools start faster without the core.
    from quorate.raft.values import Voter

    return tuple(
        Voter(ReplicaKey(voter_id), (Listener(listener, *address),))
        for voter_id, address in sorted(voters.items())
    )


def bootstrap_servers(settings: Settings) -> tuple[Address, ...]:
    """Parse `controller.quorum.bootstrap.servers`; empty when the key is absent.

    Raises ConfigError.
    """

    def parse(entry: str) -> Address:
        address = parse_host_port(entry)
        if address is None:
            what = "port" if re.fullmatch(r".*:[0-9]+", entry) else "name"
            settings.refuse(
                BOOTSTRAP,
                f"Failed to parse host {what} from {entry} for the configuration {BOOTSTRAP}. "
                'Each entry should be in the form "{host}:{port}"',
            )
        return address

    return tuple(settings.each(parse, settings.items(BOOTSTRAP) or ()))


def advertised_controllers(
    names: Sequence[str],
    bound: Listeners,
    advertised: Iterable[Listener],
    own_voter_address: Address | None,
) -> Listeners:
    """The endpoints that this controller advertises, in the order of `controller.listener.names`.

    A host of "" stands for this machine's name, a port of 0 for the bound port. The first listener
    takes its address from `controller.quorum.voters` when it binds every interface
    (`KafkaConfig.effectiveAdvertisedControllerListeners`).
    """
    chosen = []
    given = {listener.name: listener for listener in advertised if listener.name in names}
    opened = {listener.name: listener for listener in bound if listener.name in names}
    for index, name in enumerate(name.upper() for name in names):
        if name in given:
            chosen.append(given[name])
        elif name in opened:
            listener = opened[name]
            if not listener.host or is_wildcard(listener.host):
                if index == 0 and own_voter_address is not None:
                    listener = Listener(name, *own_voter_address)
                else:
                    listener = Listener(name, "", listener.port)
            chosen.append(listener)
    return tuple(chosen)
