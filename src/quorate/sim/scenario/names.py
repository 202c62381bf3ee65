"""Names in a scenario: node n has the disks n, n', n'' and listens on host<n>:<9000 + n>."""

from __future__ import annotations

from typing import Final

from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.raft.values import Voter

CLUSTER_ID: Final = "cluster"
FIRST_PORT: Final = 9000


def directory(node_id: int, disk: int = 0) -> Uuid:
    """The directory id of a node's n-th disk."""
    return Uuid(bytes([disk]) + node_id.to_bytes(15, "big"))


def key(node_id: int, disk: int = 0) -> ReplicaKey:
    """Node and directory id of a node on its n-th disk."""
    return ReplicaKey(node_id, directory(node_id, disk))


def listeners(node_id: int, *, moved: bool = False, more: bool = False) -> tuple[Listener, ...]:
    """The listeners of a node; `moved`: with another host name; `more`: with a second listener."""
    host, port = f"{'new' if moved else 'host'}{node_id}", FIRST_PORT + node_id
    second = (Listener("SECOND", host, port + 1000),) if more else ()
    return (Listener("CONTROLLER", host, port), *second)


def voter(node_id: int, *, known: bool = True) -> Voter:
    """An entry of a dynamic voter set; `known=False`: of a static one."""
    if known:
        return Voter(key(node_id), listeners(node_id), 0, 1)
    return Voter(ReplicaKey(node_id), listeners(node_id), 0, 0)
