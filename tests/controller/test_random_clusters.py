"""Random requests to a cluster leave it legal, whatever their order; `cluster.check` says what is.

A run that fails is repeated by its seed.
"""

import random
from contextlib import suppress

import pytest

from controller.cluster import TOPIC, Cluster, directory
from controller.test_leaders import alter, elect, reassign
from controller.test_topics import add, delete
from quorate.base.ids import ZERO_UUID
from quorate.controller.brokers import UNREGISTER_BROKER
from quorate.controller.elections import ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.result import ApiError
from quorate.metadata.image import NO_LEADER
from quorate.wire.messages import UnregisterBrokerRequest
from time_budget import DAY, share

BROKERS = range(1, 7)
TOPICS = ("a", "b", "c")


class Requests:
    """Draws one request after the other."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.cluster = Cluster(
            elr=self.rng.random() < 0.5, seed=seed, file={"min.insync.replicas": "2"}
        )
        self.kinds = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("draw_")]

    def step(self):
        draw = self.rng.choice(self.kinds)
        with suppress(ApiError):  # a refusal writes nothing
            draw()
        return draw.__name__

    def some(self, at_most=4):
        return self.rng.sample(list(BROKERS), self.rng.randint(1, at_most))

    @property
    def registered(self):
        """Without those that were allowed to end: they register anew, or send nothing any more."""
        brokers = self.cluster.image.cluster.brokers.values()
        return sorted(b.id for b in brokers if not (b.fenced and b.in_controlled_shutdown))

    def draw_registration(self):
        broker_id = self.rng.choice(BROKERS)
        known = self.cluster.image.cluster.brokers.get(broker_id)
        epoch = -1 if known is None or self.rng.random() < 0.5 else known.epoch
        self.cluster.register(broker_id, previous_epoch=epoch, rack=self.rng.choice(("r", "s")))

    def draw_heartbeats(self):
        for broker_id in self.registered:
            if self.rng.random() < 0.9:
                self.cluster.heartbeat(broker_id)

    def draw_shutdown(self):
        if self.registered:
            fence = self.rng.random() < 0.3
            broker_id = self.rng.choice(self.registered)
            self.cluster.heartbeat(broker_id, want_shut_down=not fence, want_fence=fence)

    def draw_silence(self):
        self.cluster.lose(*self.some(2))

    def draw_failed_directory(self):
        if self.registered:
            broker_id = self.rng.choice(self.registered)
            self.cluster.heartbeat(broker_id, offline_log_dirs=[directory(broker_id)])

    def draw_topic(self):
        if self.rng.random() < 0.5:
            self.cluster.create(self.rng.choice(TOPICS), self.rng.randint(1, 4), 3)
        else:
            self.cluster.create(self.rng.choice(TOPICS), assignments=[self.some(), self.some()])

    def draw_partitions(self):
        add(self.cluster, self.rng.randint(1, 6), name=self.rng.choice(TOPICS))

    def draw_deletion(self):
        if self.rng.random() < 0.2:
            delete(self.cluster, (self.rng.choice(TOPICS), ZERO_UUID))

    def draw_unclean_topic(self):
        name = self.rng.choice(TOPICS)
        value = self.rng.choice(("true", "false"))
        self.cluster.configure(TOPIC, name, unclean_leader_election_enable=value)

    def draw_isr(self):
        topic = self.cluster.image.topics.named(self.rng.choice(TOPICS))
        if topic is not None and 0 in topic.partitions:
            partition = topic.partitions[0]
            if partition.leader != NO_LEADER:
                others = [b for b in partition.replicas if self.rng.random() < 0.7]
                isr = sorted({partition.leader, *others}, key=partition.replicas.index)
                alter(self.cluster, isr, topic=topic.name)

    def draw_election(self):
        elect(self.cluster, self.rng.choice((0, 1)), self.rng.choice(TOPICS))

    def draw_periodic_elections(self):
        self.cluster.decide(self.rng.choice((ELECT_PREFERRED, ELECT_UNCLEAN)), None)

    def draw_reassignment(self):
        replicas = None if self.rng.random() < 0.3 else self.some()
        reassign(self.cluster, replicas, topic=self.rng.choice(TOPICS))

    def draw_unregistration(self):
        if self.registered and self.rng.random() < 0.2:
            request = UnregisterBrokerRequest(broker_id=self.rng.choice(self.registered))
            self.cluster.decide(UNREGISTER_BROKER, request)


@pytest.mark.parametrize("number", range(share(60, quick=3, daily=12)))
def test_every_request_leaves_a_legal_cluster(number):
    seed = DAY * 1000 + number
    requests = Requests(seed)
    made = []
    try:
        for _ in range(400):
            made.append(requests.step())
    except Exception as error:
        pytest.fail(f"seed {seed}: {error!r} after {made[-12:]}")
    assert len(set(made)) == len(requests.kinds)
