"""No request that decodes harms a controller: of every write API of the table, in any order.

The properties hold for each request, whatever it asks for. A run that fails is repeated by its seed.
"""

import hashlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from controller.any_api import (
    ERRORS,
    ROWS_OF,
    WRITES,
    E,
    ask,
    encoded,
    leaf_codes,
    may_change_though_refused,
    request_of,
)
from controller.cluster import Cluster, directory, whole, yield_all
from controller.draw_requests import SECRET, Draw
from controller.test_partition_index import assert_follows
from quorate.controller.delegation_tokens import EXPIRE_DELEGATION_TOKENS
from quorate.controller.elections import ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.heartbeats import FENCE_STALE_BROKER
from quorate.controller.result import ApiError, Result, Turn
from quorate.controller.token_config import TokenConfig
from quorate.formats.records import decode_record
from quorate.metadata import dump
from quorate.metadata.delta import ImageDelta
from quorate.metadata.image import Image
from quorate.metadata.interning import Interner
from quorate.node.record_parts import part_ends
from quorate.security.authorizer import AuthorizerConfig, Requester
from quorate.wire.registry import APIS
from time_budget import DAY, share

NOT_WAITING = [row for row in WRITES if row.name != "UnregisterBroker"]
"""Those that wait for no other decision to end."""
LEVELS = (7, 11, 14, 17, 21, 25, 29, 30, 33)
_REPEATED = re.compile(r"(.)\1{40,}")
_PRINCIPALS = ("User:admin", "User:admin", "User:admin", "User:alice")


class Run:
    """One cluster and its requests."""

    def __init__(self, seed, level=None):
        self.rng = rng = random.Random(seed)
        level = level or rng.choice(LEVELS)
        self.cluster = Cluster(
            level=level,
            elr=level >= 25 and rng.random() < 0.7,
            seed=seed,
            authorizer=AuthorizerConfig(frozenset({"User:admin"})),
            tokens=TokenConfig(secret_key=SECRET),
            part_records=rng.choice((2, 250)),
        )
        for broker in range(1, 5):
            directories = [directory(broker, number) for number in range(rng.choice((1, 2, 2)))]
            self.cluster.register(broker, log_dirs=directories)
            self.cluster.unfence(broker)
        for name in ("t0", "t1"):
            self.cluster.create(name, rng.randint(1, 3), rng.randint(1, 3))
        self.draw = Draw(rng, self.cluster)
        self.is_between = False
        """Another decision is in the middle of its turns."""
        self.answered: Counter[tuple[str, bool]] = Counter()
        """(API, whether it refused all) of each request."""

    def step(self, row):
        """One request of the API, and what happens of itself before it. Others come between its turns."""
        if not self.is_between:
            self.pass_time()
            self.cluster.may_use_tokens = self.rng.random() < 0.95
        message, version = self.draw.request(row)
        try:
            self.ask(row, message, version)
        except Exception as error:
            text = f"{row.name} v{version}: {error!r} for {message!r}"
            raise AssertionError(_REPEATED.sub(r"\1...", text)) from error

    def pass_time(self):
        cluster, rng = self.cluster, self.rng
        cluster.now_ms += rng.choice((1, 100, 5_000))
        for broker in list(cluster.image.cluster.brokers.values()):
            if rng.random() < 0.9:
                cluster.liveness.contact(broker.id, broker.epoch, cluster.now_ms)
        if rng.random() < 0.2:
            cluster.decide(FENCE_STALE_BROKER, None)
            cluster.decide(
                rng.choice((ELECT_PREFERRED, ELECT_UNCLEAN, EXPIRE_DELEGATION_TOKENS)), None
            )
        for broker in list(cluster.image.cluster.brokers):
            if rng.random() < 0.2:
                cluster.heartbeat(broker)

    def ask(self, row, message, version):
        cluster = self.cluster
        cluster.requester = Requester(self.rng.choice(_PRINCIPALS), "127.0.0.1", row.key)
        if row.on_arrival is not None:
            row.on_arrival(cluster.liveness, message, cluster.now_ms)
        is_as_rehearsed = self.rehearse(row.operation, request_of(row, message), version)
        cluster.between = (lambda: None) if self.is_between else self.another
        response = ask(cluster, row, message, version)
        cluster.between = lambda: None
        assert is_as_rehearsed(response), "decided twice, the request has two results"
        self.check_response(row, message, version, response)

    def another(self):
        """A request between the turns of another one."""
        self.is_between = True
        self.step(self.rng.choice(NOT_WAITING))
        self.is_between = False

    def rehearse(self, operation, request, version):
        """Decide it up to the first records: they, and the response without any, are those of later."""
        rng = random.Random()
        rng.setstate(self.cluster.rng.getstate())
        context = replace(self.cluster.context(version), rng=rng)
        if operation.empty(request) is not None:
            return lambda response: not self.cluster.records
        made = []

        def write(part):
            made.append(list(part.records))
            if made[-1] or isinstance(part, Turn):
                raise _WroteError

        try:
            result = whole(operation, self.cluster.head, request, context)
            if not isinstance(result, Result):
                result = yield_all(result, write)
        except _WroteError:
            return lambda response: self.cluster.records[: len(made[-1])] == made[-1]
        except ApiError:
            return lambda response: not self.cluster.records
        count = len(result.records)
        part_ends(operation.name, result.atomic, [b""] * count, 1 << 30)
        return lambda response: (
            response == result.response and self.cluster.records == list(result.records)
        )

    def check_response(self, row, message, version, response):
        assert type(response) is APIS[row.key].response
        self.response = encoded(response, version)
        codes = set(leaf_codes(response))
        allowed = ERRORS.get(row.name)
        assert allowed is not None, (
            f"ERRORS names the error codes of each API, but not of {row.name}"
        )
        assert codes <= {E.NONE, *allowed}
        rows = ROWS_OF.get(row.name)
        if rows is not None and not getattr(response, "error_code", 0):
            assert rows[1](response) == rows[0](message)
        is_refused = E.NONE not in codes
        is_without = is_refused and not may_change_though_refused(message, codes)
        if is_without or getattr(message, "validate_only", False):
            assert not self.cluster.records
        self.answered[row.name, is_refused] += 1
        check_image(self.cluster.image)

    def check_end(self):
        """The records give the head: one by one, and as a snapshot of it."""
        cluster = self.cluster
        assert_follows(cluster.head)
        records = [decode_record(value)[0] for values in cluster.written for value in values]
        assert replayed(records) == cluster.image
        if cluster.image.features.elr_enabled or not has_elr(cluster.image):
            snapshot = dump.records(cluster.image)
            assert replayed([record for record, _ in snapshot]) == cluster.image


class _WroteError(Exception):
    """Ends a rehearsal."""


def check_image(image):
    """What no request may break, beyond what `cluster.check` says of a change."""
    topics, brokers = list(image.topics), list(image.cluster.brokers.values())
    assert {topic.name: topic.id for topic in topics} == dict(image.topics.ids)
    for topic in topics:
        assert sorted(topic.partitions) == list(range(len(topic.partitions)))
        for partition in topic.partitions.values():
            assert set(partition.adding_replicas).isdisjoint(partition.removing_replicas)
            assert set(partition.replicas) != set(partition.removing_replicas)
    directories = [one for broker in brokers for one in broker.directories]
    assert len(set(directories)) == len(directories)
    named = {resource.name for resource in image.configs if resource.type == 2}
    assert named <= set(image.topics.ids)
    assert all(image.configs.values()) and all(image.client_quotas.values())
    assert {one for found in image.acls_by_pattern.values() for one in found} == set(image.acls)


def has_elr(image):
    """Without the feature a snapshot has no eligible replicas, as Kafka's."""
    return any(
        p.elr or p.last_known_elr for topic in image.topics for p in topic.partitions.values()
    )


def replayed(records):
    delta = ImageDelta(Image(), Interner())
    for record in records:
        delta.replay(record)
    return delta.apply()


@pytest.mark.parametrize("number", range(share(250, quick=1, daily=16)))
def test_no_request_harms_a_controller(number):
    seed = DAY * 1_000 + number
    run = Run(seed)
    for done in range(400):
        try:
            run.step(run.rng.choice(WRITES))
        except Exception as error:
            pytest.fail(f"seed {seed}, request {done}: {error}")
    run.check_end()


def digest():
    """What was answered and written in some runs."""
    found = hashlib.sha256()
    for seed in range(3):
        run = Run(seed)
        for _ in range(120):
            run.step(run.rng.choice(WRITES))
            found.update(run.response)
        found.update(repr(run.cluster.written).encode())
    return found.hexdigest()


def test_every_process_decides_the_same():
    """Whatever order its sets and hash maps have."""
    program = "from controller.test_any_request import digest; print(digest())"
    found = {
        subprocess.check_output(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_every_api_of_the_table_is_drawn_and_does_something():
    """An API that is new to the table is drawn too. `Draw` needs a `fit_` of it where nothing succeeds."""
    runs = [Run(seed, LEVELS[-1]) for seed in range(3)]
    for run in runs:
        for _ in range(15 * len(WRITES)):
            run.step(run.rng.choice(WRITES))
    answered = sum((run.answered for run in runs), Counter())
    assert [row.name for row in WRITES if not answered[row.name, False]] == []
    assert [row.name for row in WRITES if not answered[row.name, True]] == []
