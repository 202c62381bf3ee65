"""A controller registers when it is a voter, or an option says so."""

from dataclasses import replace

from node.world import CLUSTER, Node, World, directory, listener
from quorate.base.ids import ReplicaKey
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.raft.values import ControlState, Voter
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.storage.memory import MemoryStorage
from quorate.wire.messages import AddRaftVoterRequest


def registered(node):
    return set(node.image.cluster.controllers)


def with_observer(**config):
    """Static voters 1 and 2, and node 3."""
    world = World((1, 2), **config)
    other = world.nodes[1].config
    own = replace(other, node_id=3, directory_id=directory(3), listeners=(listener(3),))
    world.nodes[3] = Node(3, MemoryStorage(), own, world.nodes[1].policy)
    world.nodes[3].config = replace(own, bootstrap_servers=(listener(1).address,))
    world.start(3)
    world.run_until(lambda: registered(world.nodes[3]) >= {1, 2})
    return world


def test_an_observer_does_not_register():
    world = with_observer()
    world.run(10_000)
    assert registered(world.active) == {1, 2}


def test_an_observer_registers_where_an_option_says_so():
    world = with_observer(register_observer=True)
    world.run_until(lambda: 3 in registered(world.active))


def test_an_observer_registers_when_it_is_a_voter():
    world = World(())
    config = World((1,), static=False).nodes[1].config
    for node_id in (1, 2):
        storage = MemoryStorage()
        storage.open()
        if node_id == 1:
            voters = (Voter(ReplicaKey(1, directory(1)), (listener(1),), 0, 1),)
            writer = storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
            for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), 0):
                writer.append(data)
            writer.freeze()
        storage.close()
        own = replace(
            config,
            node_id=node_id,
            directory_id=directory(node_id),
            listeners=(listener(node_id),),
            bootstrap_servers=(listener(1).address,),
        )
        world.nodes[node_id] = Node(node_id, storage, own, SnapshotPolicy())
        world.start(node_id)
    world.run_until(lambda: registered(world.nodes[2]) == {1})
    world.run(5_000)
    assert registered(world.nodes[2]) == {1}
    name, host, port = listener(2)
    answer = world.ask(
        1,
        AddRaftVoterRequest(
            cluster_id=CLUSTER,
            timeout_ms=10_000,
            voter_id=2,
            voter_directory_id=directory(2),
            listeners=[AddRaftVoterRequest.Listener(name=name, host=host, port=port)],
        ),
    )
    assert answer.error_code == 0, answer
    world.run_until(lambda: registered(world.nodes[1]) == {1, 2})
