"""Brokers without data on asyncio: they register and heartbeat as real ones do (KIP-631)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from bench.clients import HOST, Framed

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC_ID, Listener, Uuid
from quorate.broker.lifecycle import BrokerIdentity, BrokerLifecycle, Response
from quorate.formats.batch import iter_batches
from quorate.formats.versions import supported_features
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)
from quorate.wire.messages.fetch import FetchRequest, FetchResponse
from quorate.wire.registry import api
from quorate.wire.schema import Message

RACKS = 3
FIRST_ID = 1000
SCOUTS = 50
_PAUSE_S = 0.05
FETCH_WAIT_MS, FETCH_BYTES = 500, 1 << 20
"""What a broker of Kafka asks for: the wait is a constant of KafkaRaftClient."""
M = TypeVar("M", bound=Message)


class Wire:
    """Requests of any API in their newest version, one at a time on one connection."""

    def __init__(self, protocol: Framed) -> None:
        self._protocol = protocol

    @classmethod
    async def connect(cls, port: int) -> Wire:
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(Framed, HOST, port)
        return cls(protocol)

    async def ask(self, request: Message, response: type[M]) -> M:
        """The response. Raises OSError when the connection breaks."""
        key = type(request).schema.key
        assert key is not None, "only requests have an api key"
        version = api(key).max_version
        frame = await self._protocol.ask(encode_request(request, version, 1, "bench"))
        _, found = decode_response(frame, key, version)
        assert isinstance(found, response)
        return found

    def close(self) -> None:
        if self._protocol.transport is not None:
            self._protocol.transport.close()


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


class Fleet:
    """`count` brokers that live until the context ends; they look for the active controller."""

    def __init__(
        self,
        count: int,
        cluster_id: str,
        ports: Sequence[int],
        connect: Callable[[int], Awaitable[Wire]] = Wire.connect,
    ) -> None:
        self._ports = ports
        self._connect = connect
        self._leads: int | None = None
        """The port that answered last as the active controller."""
        self._answered: dict[int, float] = {}
        """When each broker got its last answer (monotonic, s)."""
        self._silence: dict[int, float] = {}
        self.heartbeats: list[float] = []
        """How long each heartbeat took, s."""
        self.fetches: list[int] = []
        """The bytes of each Fetch response that observers received."""
        self.brokers = [
            BrokerLifecycle(
                BrokerIdentity(
                    number,
                    cluster_id,
                    Uuid(secrets.token_bytes(16)),
                    (Listener("PLAINTEXT", HOST, 9092),),
                    supported_features(),
                    (Uuid(secrets.token_bytes(16)),),
                    rack=f"rack-{number % RACKS}",
                )
            )
            for number in range(FIRST_ID, FIRST_ID + count)
        ]
        self._lives: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Fleet:
        self._lives = [asyncio.ensure_future(self._live(broker)) for broker in self.brokers]
        return self

    async def __aexit__(self, *_: object) -> None:
        for life in self._lives:
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)

    def stop(self, count: int) -> set[int]:
        """The first `count` brokers send nothing any more; their ids."""
        for life in self._lives[:count]:
            life.cancel()
        return {broker.identity.broker_id for broker in self.brokers[:count]}

    def follow(self) -> None:
        """From now on each broker fetches the metadata log from its beginning, as an observer."""
        ids = (broker.identity for broker in self.brokers)
        self._lives += [asyncio.ensure_future(self._observe(each)) for each in ids]

    async def _observe(self, identity: BrokerIdentity) -> None:
        assert self._leads is not None, "brokers that are unfenced know who leads"
        wire = await self._connect(self._leads)
        offset = last_epoch = epoch = 0
        topic = FetchRequest.FetchTopic
        try:
            while True:
                request = FetchRequest(
                    cluster_id=identity.cluster_id,
                    replica_state=FetchRequest.ReplicaState(replica_id=identity.broker_id),
                    max_wait_ms=FETCH_WAIT_MS,
                    min_bytes=0,
                    max_bytes=FETCH_BYTES,
                    topics=[
                        topic(
                            topic_id=METADATA_TOPIC_ID,
                            partitions=[
                                topic.FetchPartition(
                                    current_leader_epoch=epoch,
                                    fetch_offset=offset,
                                    last_fetched_epoch=last_epoch,
                                    partition_max_bytes=FETCH_BYTES,
                                )
                            ],
                        )
                    ],
                )
                response = await wire.ask(request, FetchResponse)
                (partition,) = response.responses[0].partitions
                epoch = partition.current_leader.leader_epoch
                if partition.error_code == ErrorCode.FENCED_LEADER_EPOCH:
                    continue
                assert partition.error_code == ErrorCode.NONE, partition
                records = bytes(partition.records or b"")
                for batch in iter_batches(records, cut_tail=True, verify=False):
                    offset, last_epoch = batch.last_offset + 1, batch.epoch
                self.fetches.append(len(records))
        finally:
            wire.close()

    def watch_silence(self) -> Callable[[], Mapping[int, float]]:
        """From now on: the longest time between two answers to each broker, s."""
        now = time.monotonic()
        self._answered = dict.fromkeys(self._answered, now)
        self._silence = {}

        def silence() -> Mapping[int, float]:
            for number in self._answered:
                self._note_answer(number)
            return self._silence

        return silence

    def _note_answer(self, number: int) -> None:
        now = time.monotonic()
        span = now - self._answered.get(number, now)
        self._silence[number] = max(self._silence.get(number, 0.0), span)
        self._answered[number] = now

    async def unfenced(self, timeout_s: float) -> None:
        """Wait until every broker is in service. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            while any(broker.is_fenced for broker in self.brokers):
                self.check()
                await asyncio.sleep(_PAUSE_S)

    def check(self) -> None:
        """Raise what ended a broker."""
        for life in self._lives:
            if life.done() and not life.cancelled():
                life.result()

    async def _active_port(self, number: int, turn: int) -> int:
        """Brokers follow the metadata log and know who leads. Here one in SCOUTS of them looks for it."""
        while self._leads is None and number % SCOUTS:
            await asyncio.sleep(_PAUSE_S)
        return self._ports[turn % len(self._ports)] if self._leads is None else self._leads

    async def _live(self, broker: BrokerLifecycle) -> None:
        broker.start(_now_ms())
        broker.set_ready(_now_ms())
        wire, turn, port = None, 0, 0
        try:
            while not broker.ended:
                due = broker.wake_at_ms
                await asyncio.sleep(_PAUSE_S if due is None else max(due - _now_ms(), 0) / 1000)
                request = broker.poll(_now_ms(), broker.epoch)
                if request is None:
                    continue
                code = None
                try:
                    if wire is None:
                        port = await self._active_port(broker.identity.broker_id, turn)
                        wire = await self._connect(port)
                    response: Response
                    if isinstance(request, BrokerHeartbeatRequest):
                        start = time.perf_counter()
                        response = await wire.ask(request, BrokerHeartbeatResponse)
                        self.heartbeats.append(time.perf_counter() - start)
                    else:
                        response = await wire.ask(request, BrokerRegistrationResponse)
                    code = response.error_code
                    if code == ErrorCode.NONE:
                        self._leads = port
                        self._note_answer(broker.identity.broker_id)
                    broker.received(response, _now_ms())
                except OSError:
                    broker.failed(_now_ms())
                if wire is not None and code in (None, ErrorCode.NOT_CONTROLLER):
                    wire.close()
                    wire = None
                if wire is None:
                    turn += 1
                    self._leads = None if self._leads == port else self._leads
            raise AssertionError(f"broker {broker.identity.broker_id} ended: {broker.ended}")
        finally:
            if wire is not None:
                wire.close()
