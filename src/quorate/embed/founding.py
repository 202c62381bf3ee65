"""Making a member's directory, as a founder or to join later; and what a start reads there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address, ReplicaKey, Uuid, uuid_to_text
from quorate.embed.first_start import UNPROVEN
from quorate.formats.files import META_PROPERTIES
from quorate.formats.meta_properties import decode_meta_properties
from quorate.node import formatter
from quorate.node.config import METRICS_LISTENER, NodeConfig, config_of, strangers
from quorate.node.dynamic_voters import DynamicVoter
from quorate.node.settings import Settings

LISTENER: Final = "CONTROLLER"


def create(
    directory: Path | str,
    node_id: int,
    cluster: str,
    founders: Mapping[int, str] | None = None,
) -> None:
    """Make the directory of a new member, durably; once, before its first start.

    `founders` maps the ids of the first members to their `host:port`; every founder names the
    same ones. Without it the directory is for a member that joins later: start it with
    `contacts`, then have a member call `add_member`.

    A founder that lost its disk must not be founded again: it would have forgotten its votes and
    what it acknowledged. Remove it from the cluster and let it join as a new member. Its start is
    refused where another founder that can be asked knows of it; do not rely on that.

    Raises QuorateError when it is a member's directory already, or the names make no sense.
    """
    if not cluster:
        raise QuorateError("A cluster has a name that is not empty")
    if node_id < 0 or any(founder < 0 for founder in founders or ()):
        raise QuorateError("The ids of members are not negative")
    if (Path(directory) / META_PROPERTIES).exists():
        raise QuorateError(f"{directory} is a member's directory already")
    if founders is not None and node_id not in founders:
        raise QuorateError(f"Member {node_id} is not among the founders {sorted(founders)}")
    if twice := [text for text, count in Counter((founders or {}).values()).items() if count > 1]:
        raise QuorateError(f"Two founders have the address {twice[0]}")
    cluster_id = uuid_to_text(_derived("cluster", cluster))
    voters = tuple(
        DynamicVoter(
            ReplicaKey(founder, _derived("directory", f"{cluster}/{founder}")),
            parse_address(text),
            UNPROVEN,
        )
        for founder, text in sorted((founders or {}).items())
    )
    # Addresses that a configuration must have, and formatting does not look at.
    config = member_config(directory, node_id, "127.0.0.1:0", contacts=("127.0.0.1:1",))
    request = formatter.Request(cluster_id=cluster_id, initial_controllers=voters)
    formatter.write(formatter.plan(config, request))


def member_config(
    directory: Path | str,
    node_id: int,
    listen: str,
    *,
    advertise: str | None = None,
    contacts: tuple[str, ...] = (),
    metrics: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> NodeConfig:
    """A node's configuration in Kafka's keys; `settings` adds to it or overrides it.

    Raises QuorateError where an address or a setting cannot be, or a setting means nothing.
    """
    parse_address(str(listen))  # who embeds this may not check types
    values = {
        "node.id": str(node_id),
        "process.roles": "controller",
        "listeners": f"{LISTENER}://{listen}",
        "controller.listener.names": LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(contacts) or listen,
        "log.dirs": str(directory),
    }
    if advertise is not None:
        values["advertised.listeners"] = f"{LISTENER}://{advertise}"
    if metrics is not None:
        values[METRICS_LISTENER] = metrics
    values.update(settings or {})
    given = Settings(values, {})
    if unknown := strangers(given):
        raise QuorateError(f"settings: there is no {', no '.join(sorted(unknown))}")
    return config_of(given)


def parse_address(text: str) -> Address:
    """`host:port`. Raises QuorateError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise QuorateError(f"'{text}' is not an address: write host:port")
    return Address(host.strip("[]"), int(port))


def node_id_of(directory: Path) -> int:
    """The node id that the directory was made for. Raises QuorateError."""
    path = directory / META_PROPERTIES
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise QuorateError(
            f"{directory} is not a member's directory: make it with quorate.embed.create"
        ) from None
    except OSError as error:
        raise QuorateError(f"{path}: {error.strerror or error}") from None
    node_id = decode_meta_properties(data, str(path)).node_id
    if node_id is None:
        raise QuorateError(f"{path} has no node.id")
    return node_id


def _derived(kind: str, name: str) -> Uuid:
    """An id that every founder computes alike, never one of Kafka's reserved ones."""
    counter = 0
    while True:
        digest = hashlib.sha256(f"quorate/{kind}/{name}/{counter}".encode()).digest()[:16]
        if any(digest[:8]) and not uuid_to_text(Uuid(digest)).startswith("-"):
            return Uuid(digest)
        counter += 1
