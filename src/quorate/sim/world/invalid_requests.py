"""Invalid voter change requests of operators. Kafka refuses most of them, and accepts some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from quorate.base.ids import ZERO_UUID, Listener, ReplicaKey, Uuid
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.observable import CLUSTER_ID, LISTENER
from quorate.sim.world.process import Process

ANSWER_MS: Final = 3000
_UNUSED_PORT: Final = 9
"""A port without a listener."""
_FAR: Final = 90

VoterRequest = AddVoterRequest | RemoveVoterRequest


def make(
    world: SimulatedCluster, invalid_request: str, node_id: int
) -> tuple[VoterRequest, int] | None:
    """A request about a node with this mistake, and its receiver; None: there is no leader."""
    process, leader = world.processes[node_id], world.leader()
    if leader is None:
        return None
    if invalid_request == "not-the-leader":
        return _remove(process), node_id
    return _MADE[invalid_request](world, process), leader.id


def _add(process: Process) -> AddVoterRequest:
    return AddVoterRequest(CLUSTER_ID, process.key, process.listeners, ANSWER_MS)


def _remove(process: Process) -> RemoveVoterRequest:
    return RemoveVoterRequest(CLUSTER_ID, process.key)


def _stale(process: Process) -> ReplicaKey:
    """The node with the directory id of its last disk, or with an unknown one."""
    found = process.former_id
    return ReplicaKey(process.id, Uuid(bytes(15) + b"\7") if found is None else found)


def _nameless(process: Process) -> ReplicaKey:
    return ReplicaKey(process.id, ZERO_UUID)


def _elsewhere(world: SimulatedCluster, process: Process) -> AddVoterRequest:
    """AddVoter with the endpoint of another node."""
    other = world.processes[process.id % len(world.processes) + 1]
    return replace(_add(process), listeners=other.listeners)


def _at(process: Process, name: str, port: int) -> AddVoterRequest:
    return replace(_add(process), listeners=(Listener(name, f"node{process.id}", port),))


def _unknown(process: Process) -> RemoveVoterRequest:
    """RemoveVoter of a node that does not exist."""
    key = process.key
    return RemoveVoterRequest(CLUSTER_ID, ReplicaKey(key.id + _FAR, key.directory_id))


def _unnamed(process: Process) -> AddVoterRequest:
    """AddVoter without the listener that controllers use."""
    return _at(process, "PLAINTEXT", process.listeners[0].port)


_MADE: Final[Mapping[str, Callable[[SimulatedCluster, Process], VoterRequest]]] = MappingProxyType(
    {
        "add-stale": lambda world, process: replace(_add(process), voter=_stale(process)),
        "add-again": lambda world, process: _add(process),
        "add-elsewhere": _elsewhere,
        "add-nowhere": lambda world, process: _at(process, LISTENER, _UNUSED_PORT),
        "add-unnamed": lambda world, process: _unnamed(process),
        "add-nameless": lambda world, process: replace(_add(process), voter=_nameless(process)),
        "remove-stale": lambda world, process: RemoveVoterRequest(CLUSTER_ID, _stale(process)),
        "remove-unknown": lambda world, process: _unknown(process),
        "remove-nameless": lambda world, process: replace(
            _remove(process), voter=_nameless(process)
        ),
        "another-cluster": lambda world, process: replace(_remove(process), cluster_id="another"),
        "too-early": lambda world, process: _remove(process),
        "add-in-part": lambda world, process: replace(_add(process), listeners=process.place),
    }
)
