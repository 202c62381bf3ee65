"""Making a member's directory, as a founder or to join later; and what a start reads there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid, uuid_to_text
from quorate.embed.arguments import (
    address_for_others,
    addresses,
    directory_path,
    member_id,
    pairs,
    parse_address,
    text,
)
from quorate.embed.first_start import UNPROVEN
from quorate.formats.files import META_PROPERTIES
from quorate.formats.meta_properties import MetaProperties, decode_meta_properties
from quorate.node import formatter
from quorate.node.config import METRICS_LISTENER, NodeConfig, config_of, strangers
from quorate.node.dynamic_voters import DynamicVoter
from quorate.node.settings import Settings

LISTENER: Final = "CONTROLLER"
_DIRECTORY_KEYS: Final = ("log.dir", "log.dirs", "metadata.log.dir")


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

    Raises QuorateError when it is a member's directory already, or the names make no sense; a
    TypeError for an argument of a wrong type.
    """
    path, node_id = directory_path(directory), member_id(node_id)
    if not text("the name of a cluster", cluster):
        raise QuorateError("A cluster has a name that is not empty")
    at = {
        member_id(founder): address_for_others(address)
        for founder, address in pairs("founders", {} if founders is None else founders)
    }
    if founders is not None and node_id not in at:
        raise QuorateError(f"Member {node_id} is not among the founders {sorted(at)}")
    if twice := [address for address, count in Counter(at.values()).items() if count > 1]:
        raise QuorateError(f"Two founders have the address {twice[0]}")
    if (meta := _meta_properties(path)) is not None:
        whose = "member" if meta.member else "controller"
        raise QuorateError(f"{directory} is a {whose}'s directory already")
    voters = tuple(
        DynamicVoter(
            ReplicaKey(founder, _derived("directory", f"{cluster}/{founder}")), address, UNPROVEN
        )
        for founder, address in sorted(at.items())
    )
    # Addresses that a configuration must have, and formatting does not look at.
    config = member_config(path, node_id, "127.0.0.1:0", contacts=("127.0.0.1:1",))
    request = formatter.Request(
        cluster_id=uuid_to_text(_derived("cluster", cluster)),
        initial_controllers=voters,
        member=True,
    )
    formatter.write(formatter.plan(config, request))


def member_config(
    directory: Path,
    node_id: int,
    listen: str,
    *,
    advertise: str | None = None,
    contacts: tuple[str, ...] = (),
    metrics: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> NodeConfig:
    """A node's configuration in Kafka's keys; `settings` adds to it or overrides it.

    Raises QuorateError where an address or a setting cannot be, or a setting means nothing;
    TypeError.
    """
    parse_address(listen)
    values = {
        "node.id": str(node_id),
        "process.roles": "controller",
        "listeners": f"{LISTENER}://{listen}",
        "controller.listener.names": LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(addresses("contacts", contacts)) or listen,
    }
    if advertise is not None:
        parse_address(advertise)
        values["advertised.listeners"] = f"{LISTENER}://{advertise}"
    if metrics is not None:
        values[METRICS_LISTENER] = text("metrics", metrics)
    for key, value in pairs("settings", {} if settings is None else settings):
        values[text("a key of settings", key)] = text(f"settings: the value of {key}", value)
    given = Settings(values, {})
    if unknown := strangers(given):
        raise QuorateError(f"settings: there is no {', no '.join(sorted(unknown))}")
    if set(values) & set(_DIRECTORY_KEYS):
        raise QuorateError("settings: the directory is an argument of its own")
    # In Kafka's keys a comma parts it and blanks at its ends are lost.
    home = str(directory)
    return replace(config_of(given), log_dirs=(home,), metadata_log_dir=home)


def node_id_of(directory: Path) -> int:
    """The node id that the directory was made for. Raises QuorateError."""
    meta = _meta_properties(directory)
    if meta is None:
        raise QuorateError(
            f"{directory} is not a member's directory: make it with quorate.embed.create"
        )
    if meta.node_id is None:
        raise QuorateError(f"{directory / META_PROPERTIES} has no node.id")
    return meta.node_id


def _meta_properties(directory: Path) -> MetaProperties | None:
    """None where there is no such file. Raises QuorateError."""
    path = directory / META_PROPERTIES
    try:
        return decode_meta_properties(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise QuorateError(f"{path}: {error.strerror or error}") from None


def _derived(kind: str, name: str) -> Uuid:
    """An id that every founder computes alike, never one of Kafka's reserved ones."""
    counter = 0
    while True:
        source = f"quorate/{kind}/{name}/{counter}".encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(source).digest()[:16]
        if any(digest[:8]) and not uuid_to_text(Uuid(digest)).startswith("-"):
            return Uuid(digest)
        counter += 1
