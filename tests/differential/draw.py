"""What every domain of the generator draws from: names, brokers, partitions, mostly valid choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from differential.canonical import made_up
from differential.channel import CLIENT, DIRECT, Asker
from differential.side import Side
from quorate.base.ids import Uuid
from quorate.metadata.image import Broker, Image, Partition, Topic
from quorate.wire.schema import Message

T = TypeVar("T")

BROKERS = tuple(range(7))
RACKS = ("a", "b", "c", None)
TOPICS = (*(f"t{n}" for n in range(14)), "t.x", "t_x", "__consumer_offsets", "__share_group_state")
BAD_TOPICS = ("", ".", "..", "a b", "x" * 250, "__cluster_metadata", "ünï", "no/slash")
USERS = ("alice", "bob", "carol")
PRINCIPALS = ("User:admin", "User:alice", "User:bob")
"""Who may be in an Envelope; admin is a super user."""
GROUPS = ("g1", "g2", "")
SUBSCRIPTIONS = ("m1", "m2", "")


@dataclass
class Draft:
    """One request of both sides; `build` fills in the ids that each side chose itself."""

    build: Callable[[Side], Message]
    is_read: bool = False
    places: bool = False
    """The controller chooses replicas at random: the records are compared by rules."""
    is_direct: bool = False
    """Never in an Envelope: nobody can be denied it."""
    then: list[Draft] = field(default_factory=list)
    """Requests that follow at once."""
    version: int | None = None
    related: Sequence[str] = ()
    """Principals for whom the answer is another than for others."""
    asker: Asker = DIRECT
    client: str = CLIENT


class Draw:
    """The seeded choices, made on the image of the Java controller."""

    def __init__(self, rng: Random, side: Side, features: dict[str, tuple[int, int]]) -> None:
        self.rng = rng
        self.side = side
        self.features = features
        """What the brokers support: feature -> lowest and highest level."""
        self.incarnations = 0

    @property
    def image(self) -> Image:
        return self.side.image

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one(self, values: Sequence[T]) -> T:
        return self.rng.choice(values)

    def some(self, values: Sequence[T], most: int) -> list[T]:
        """From none to `most` of them, each once."""
        return self.rng.sample(values, min(len(values), self.rng.randint(0, most)))

    def usually(self, probability: float, value: T, others: Sequence[T]) -> T:
        return value if self.chance(probability) else self.one(others)

    def often_twice(self, values: list[T]) -> list[T]:
        """Now and then one of them is named twice."""
        if values and self.chance(0.04):
            return [*values, self.one(values)]
        return values

    # Brokers

    @property
    def registered(self) -> list[int]:
        return sorted(self.image.cluster.brokers)

    @property
    def active(self) -> list[int]:
        brokers = self.image.cluster.brokers
        return [i for i in self.registered if not brokers[i].fenced]

    def broker(self) -> int:
        """Mostly a registered one."""
        known = self.registered
        if known and self.chance(0.93):
            return self.one(known)
        return self.one((*BROKERS, 99, -1))

    def registration(self, broker: int) -> Broker | None:
        return self.image.cluster.brokers.get(broker)

    def epoch(self, broker: int) -> Callable[[Side], int]:
        """The broker's epoch on a side, mostly; else one that is not."""
        if self.chance(0.95):
            return lambda side: side.epoch_of(broker)
        wrong = self.one((-1, 0, 1 << 40))
        return lambda side: wrong

    def directories(self, broker: int) -> list[Uuid]:
        """All that the broker may have."""
        return [made_up(1000 + 10 * max(broker, 0) + n) for n in range(3)]

    def replicas(self, count: int | None = None) -> list[int]:
        """A manual assignment: mostly distinct registered brokers."""
        known = self.registered or [0]
        count = self.rng.randint(1, 4) if count is None else count
        found = self.rng.sample(known, min(count, len(known)))
        if self.chance(0.03):
            found.append(self.one((99, -1, *found)))
        if self.chance(0.01):
            found = []
        return found

    # Topics

    @property
    def topics(self) -> list[str]:
        return sorted(self.image.topics.ids)

    def topic(self) -> str:
        """Mostly the name of a topic that there is."""
        known = self.topics
        if known and self.chance(0.94):
            return self.one(known)
        return self.one((*TOPICS, *BAD_TOPICS))

    def new_topic(self) -> str:
        free = [name for name in TOPICS if name not in self.image.topics.ids]
        if free and self.chance(0.85):
            return self.one(free)
        return self.one((*TOPICS, *BAD_TOPICS))

    def topic_id(self) -> Callable[[Side], Uuid]:
        name = self.topic()
        unknown = made_up(1)
        if self.chance(0.02):
            return lambda side: unknown
        return lambda side: side.topic_id(name)

    def topic_named(self, name: str) -> Topic | None:
        return self.image.topics.named(name)

    def partition(self) -> tuple[str, int, Partition | None]:
        """A topic's name, an index, and the partition if there is one."""
        name = self.topic()
        topic = self.topic_named(name)
        if topic is None or self.chance(0.03):
            index = self.one((0, 1, 99, -1))
            return name, index, None if topic is None else topic.partitions.get(index)
        index = self.one(sorted(topic.partitions))
        return name, index, topic.partitions[index]

    def partitions(self, most: int) -> dict[str, list[tuple[int, Partition | None]]]:
        """By topic; indexes of a topic are distinct."""
        found: dict[str, dict[int, Partition | None]] = {}
        for _ in range(self.rng.randint(1, most)):
            name, index, partition = self.partition()
            found.setdefault(name, {})[index] = partition
        return {name: list(rows.items()) for name, rows in found.items()}
