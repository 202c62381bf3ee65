"""What operators get wrong when they change voters: each a request that Kafka refuses, or one that
it takes at its word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from quorate.base.ids import ZERO_UUID, Listener, ReplicaKey, Uuid
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.sim.process import CLUSTER_ID, LISTENER, Process

if TYPE_CHECKING:
    from quorate.sim.world import World

ANSWER_MS: Final = 3000
_NOBODY: Final = 9
"""A port at which nobody listens."""
_FAR: Final = 90

VoterRequest = AddVoterRequest | RemoveVoterRequest


def make(world: World, mistake: str, node_id: int) -> tuple[VoterRequest, int] | None:
    """A request about a node that is mistaken in this way, and whom to ask; None: nobody leads."""
    process, leader = world.processes[node_id], world.leader()
    if leader is None:
        return None
    if mistake == "not-the-leader":
        return _remove(process), node_id
    return _MADE[mistake](world, process), leader.id


def _add(process: Process) -> AddVoterRequest:
    return AddVoterRequest(CLUSTER_ID, process.key, process.listeners, ANSWER_MS)


def _remove(process: Process) -> RemoveVoterRequest:
    return RemoveVoterRequest(CLUSTER_ID, process.key)


def _stale(process: Process) -> ReplicaKey:
    """The node with the directory id of its last disk, or of none that ever was."""
    found = process.former_id
    return ReplicaKey(process.id, Uuid(bytes(15) + b"\7") if found is None else found)


def _nameless(process: Process) -> ReplicaKey:
    return ReplicaKey(process.id, ZERO_UUID)


def _elsewhere(world: World, process: Process) -> AddVoterRequest:
    """The endpoint is that of another node."""
    other = world.processes[process.id % len(world.processes) + 1]
    return replace(_add(process), listeners=other.listeners)


def _at(process: Process, name: str, port: int) -> AddVoterRequest:
    return replace(_add(process), listeners=(Listener(name, f"node{process.id}", port),))


def _stranger(process: Process) -> RemoveVoterRequest:
    """A node that there is not."""
    key = process.key
    return RemoveVoterRequest(CLUSTER_ID, ReplicaKey(key.id + _FAR, key.directory_id))


def _unnamed(process: Process) -> AddVoterRequest:
    """Its endpoint is not the one that controllers use."""
    return _at(process, "PLAINTEXT", process.listeners[0].port)


_MADE: Final[Mapping[str, Callable[[World, Process], VoterRequest]]] = MappingProxyType(
    {
        "add-stale": lambda world, process: replace(_add(process), voter=_stale(process)),
        "add-again": lambda world, process: _add(process),
        "add-elsewhere": _elsewhere,
        "add-nowhere": lambda world, process: _at(process, LISTENER, _NOBODY),
        "add-unnamed": lambda world, process: _unnamed(process),
        "add-nameless": lambda world, process: replace(_add(process), voter=_nameless(process)),
        "remove-stale": lambda world, process: RemoveVoterRequest(CLUSTER_ID, _stale(process)),
        "remove-stranger": lambda world, process: _stranger(process),
        "remove-nameless": lambda world, process: replace(
            _remove(process), voter=_nameless(process)
        ),
        "another-cluster": lambda world, process: replace(_remove(process), cluster_id="another"),
        "too-early": lambda world, process: _remove(process),
        "add-in-part": lambda world, process: replace(_add(process), listeners=process.place),
    }
)
