"""Create a member's directory, for a founder or a later joiner, and configure its start."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey, Uuid, uuid_to_text
from quorate.config.dynamic_voters import DynamicVoter
from quorate.config.monitoring_settings import METRICS_LISTENER
from quorate.config.node_config import NodeConfig
from quorate.config.node_file import config_of, unknown_keys
from quorate.config.settings import Settings
from quorate.embed.arguments import (
    address_for_others,
    addresses,
    directory_path,
    member_id,
    pairs,
    parse_address,
    text,
)
from quorate.embed.first_start import UNCONFIRMED
from quorate.formats.files import META_PROPERTIES
from quorate.formats.meta_properties import MetaProperties, decode_meta_properties
from quorate.log_dirs import FormatRequest, formatter, new_directory_id

LISTENER: Final = "CONTROLLER"
_DIRECTORY_KEYS: Final = ("log.dir", "log.dirs", "metadata.log.dir")


def create(
    directory: Path | str,
    node_id: int,
    cluster: str,
    founders: Mapping[int, str] | None = None,
) -> None:
    """Create the directory of a new member, durably; once, before its first start.

    `founders` maps the ids of the initial members to their `host:port`; it must be the same for every
    founder. Without it, the directory is for a member that joins later: start the member with
    `contacts`, then call `add_member` on the leader.

    Do not create the directory of a founder again after its disk is lost: the member would have lost
    its votes and the entries that it acknowledged. Remove the member from the cluster and let it join
    as a new one. `start` refuses a member that ran before or was removed, or whose address another
    member has, if a contact or founder says so. Do not rely on this check.

    Raises QuorateError when the directory is formatted already or an argument is invalid, TypeError
    for an argument of a wrong type.
    """
    # 1. Validate the arguments.
    path, node_id = directory_path(directory), member_id(node_id)
    if not text("the name of a cluster", cluster):
        raise QuorateError("The name of a cluster must not be empty")
    addresses_by_id = {
        member_id(founder): address_for_others(address)
        for founder, address in pairs("founders", {} if founders is None else founders)
    }
    if founders is not None and node_id not in addresses_by_id:
        raise QuorateError(f"Member {node_id} is not among the founders {sorted(addresses_by_id)}")
    counts = Counter(addresses_by_id.values())
    if duplicates := [address for address, count in counts.items() if count > 1]:
        raise QuorateError(f"Two founders have the address {duplicates[0]}")
    if (meta := _meta_properties(path)) is not None:
        owner = "member" if meta.member else "controller"
        raise QuorateError(f"{directory} is already the directory of a {owner}")
    # 2. Several founders derive the same voter set from the names. A lone one agrees with nobody: its
    #    id is random, as Kafka's. Created again, it is another replica to the quorum that it lost, and
    #    its first epoch is not taken for that quorum's.
    is_alone = len(addresses_by_id) == 1
    voters = tuple(
        DynamicVoter(
            ReplicaKey(
                founder,
                new_directory_id() if is_alone else _derived("directory", f"{cluster}/{founder}"),
            ),
            address,
            UNCONFIRMED,
        )
        for founder, address in sorted(addresses_by_id.items())
    )
    # 3. Format. A configuration needs addresses, which formatting does not use.
    config = member_config(path, node_id, "127.0.0.1:0", contacts=("127.0.0.1:1",))
    request = FormatRequest(
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
    """Build a node's configuration; `settings` adds Kafka's keys or overrides them.

    Raises QuorateError for an invalid address or setting and for an unknown key, and TypeError.
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
    if unknown := unknown_keys(given):
        raise QuorateError(f"settings: unknown keys: {', '.join(sorted(unknown))}")
    if set(values) & set(_DIRECTORY_KEYS):
        raise QuorateError("settings: pass the directory as an argument")
    # Not through Kafka's keys: there a comma separates directories, and outer spaces are lost.
    home = str(directory)
    return replace(config_of(given), log_dirs=(home,), metadata_log_dir=home)


def node_id_of(directory: Path) -> int:
    """The node id in the directory's meta.properties. Raises QuorateError."""
    meta = _meta_properties(directory)
    if meta is None:
        raise QuorateError(
            f"{directory} is not a member's directory: create it with quorate.embed.create"
        )
    if meta.node_id is None:
        raise QuorateError(f"{directory / META_PROPERTIES} has no node.id")
    return meta.node_id


def _meta_properties(directory: Path) -> MetaProperties | None:
    """Read meta.properties; returns None without the file. Raises QuorateError."""
    path = directory / META_PROPERTIES
    try:
        return decode_meta_properties(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise QuorateError(f"{path}: {error.strerror or error}") from None


def _derived(kind: str, name: str) -> Uuid:
    """Derive an id from a name: the same on every founder, and not one that Kafka reserves."""
    counter = 0
    while True:
        source = f"quorate/{kind}/{name}/{counter}".encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(source).digest()[:16]
        if any(digest[:8]) and not uuid_to_text(Uuid(digest)).startswith("-"):
            return Uuid(digest)
        counter += 1
