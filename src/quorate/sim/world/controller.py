"""A node that runs a whole controller: a ControllerNode over the metadata machine.

Raft requests of the simulated network pass through the codec of Kafka's newest versions, as a server
receives them. Requests of clients are handed to the controller beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from immutables import Map

from quorate.base.ids import Listeners, OffsetAndEpoch, Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.controller.token_config import TokenConfig
from quorate.formats.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    decode_record,
    encode_record,
)
from quorate.formats.versions import METADATA_VERSION
from quorate.metadata.image import Image
from quorate.metadata.replay import record_values
from quorate.node.controller_node import ControllerNode
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.node_io import NodeEffects, NodeInput, Registered
from quorate.node.raft_rpc_outbound import CLIENT_NAME, api_key_of, request_to_wire
from quorate.node.registration import Registrant
from quorate.node.requests import Call
from quorate.raft.inputs import Received
from quorate.raft.values import ControlState, RaftConfig
from quorate.replica.replica import Effects, Input, MemoryLimits, Replica
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import CommittedBatch, Now
from quorate.security.authorizer import AuthorizerConfig
from quorate.security.principal import ANONYMOUS
from quorate.sim.prng import Prng
from quorate.sim.world.security_requests import (
    HMAC_KEY,
    PRINCIPALS,
    TOKEN_CHECK_MS,
    TOKEN_EXPIRY_MS,
    TOKEN_LIFETIME_MS,
)
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.api import Recovered
from quorate.wire.header import decode_request, decode_response, encode_request
from quorate.wire.messages import ControllerRegistrationResponse
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

SESSION_MS: Final = 3_000
"""Of brokers: shorter than Kafka's, as a world is short."""
_ELECTIONS_MS: Final = 2_000
"""Between two looks for leaders to elect, preferred or unclean."""
_PART_RECORDS: Final = 1
"""A broker of a world has few partitions. Its fencing still takes several writes."""
_LENGTH: Final = 4
"""Bytes of a frame's length."""
_PROTOCOL: Final = "SASL_PLAINTEXT"
"""Of the listener. Without authentication nobody may ask for a token."""
_AUTHORIZER: Final = AuthorizerConfig(frozenset((ANONYMOUS, *PRINCIPALS)))
_TOKENS: Final = TokenConfig(HMAC_KEY, TOKEN_LIFETIME_MS, TOKEN_EXPIRY_MS, TOKEN_CHECK_MS)
_KEPT: Final = frozenset(
    kind.schema.key
    for kind in (
        AccessControlEntryRecord,
        DelegationTokenRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        RegisterBrokerRecord,
        RemoveAccessControlEntryRecord,
        RemoveDelegationTokenRecord,
        RemoveUserScramCredentialRecord,
        UserScramCredentialRecord,
    )
)
"""The types of records that a check reads. The second byte of a record is its type."""


class ControllerMachine(KeyValueMachine):
    """The metadata machine with the `trail` that the checks of applied state compare.

    It extends KeyValueMachine because every simulated node has one; it keeps no keys. `history` stays
    0: a snapshot holds the image only, so a hash of all batches would not survive it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.metadata = MetadataMachine()
        self.notes = self.metadata.notes
        self._hashed: Image | None = None
        self.records: list[tuple[int, Message]] = []
        """(offset, record) of those of _KEPT that were applied in this step of the node."""

    def apply(self, entry: CommittedBatch) -> int:
        taken = self.metadata.apply(entry)
        for number, value in enumerate(entry.values):
            if value[1] in _KEPT:
                self.records.append((entry.base_offset + number, decode_record(value)[0]))
        end = entry.last_offset + 1
        self._leave_trail(end)
        self.newest = end, entry.timestamp_ms
        return taken

    def _leave_trail(self, end: int) -> None:
        image = self.metadata.image
        if image is not self._hashed:
            # The order of records follows the order of insertion, which differs between a replay
            # and a snapshot. Hence a sum, in which the order does not matter.
            self._hashed, total = image, 0
            if image.features.metadata_version is not None:
                for value in record_values(image):
                    total ^= crc32(value)
            self.digest = total
        self.trail.append((end, self.history, self.digest))

    # -- snapshots ----------------------------------------------------------------------------
    def freeze(self) -> Iterable[bytes] | None:
        values = self.metadata.freeze()
        # A list, because the simulated disk and the checks read the values, too.
        return None if values is None else list(values)

    def begin_load(self, snapshot_id: OffsetAndEpoch, timestamp_ms: int) -> None:
        self._loading = snapshot_id
        self.metadata.begin_load(snapshot_id, timestamp_ms)

    def load(self, values: Sequence[bytes]) -> None:
        self.metadata.load(values)

    def end_load(self) -> None:
        assert self._loading is not None
        self.metadata.end_load()
        self._leave_trail(self._loading.offset)
        self._loading = None

    # -- leading ------------------------------------------------------------------------------
    def lead(self, epoch: int, now: Now) -> None:
        self.led = epoch
        self.metadata.lead(epoch, now)

    def follow(self, leader_id: int, epoch: int) -> None:
        self.led = None
        self.metadata.follow(leader_id, epoch)

    def poll(self, now: Now, control: ControlState) -> Sequence[Sequence[bytes]]:
        return ()

    def write_at_once(self, count: int) -> None:
        """No effect: a controller writes only requested records and its own duties."""

    def wake_at_ms(self) -> int | None:
        return None


class ObservedReplica(Replica):
    """Reports each of its steps: one step of a ControllerNode makes one or more."""

    def __init__(
        self,
        config: RaftConfig,
        recovered: Recovered,
        machine: ControllerMachine,
        random: Callable[[], float],
        policy: SnapshotPolicy,
        memory: MemoryLimits,
        stepped: Callable[[Sequence[Input], Effects], None],
    ) -> None:
        super().__init__(config, recovered, machine, random, policy, memory)
        self._stepped = stepped
        self._reports = False

    def step(self, happened: Iterable[Input], now: Now) -> Effects:
        taken = list(happened)
        effects = super().step(taken, now)
        if not self._reports:  # a check steps the replica again, which is not an event
            self._reports = True
            try:
                self._stepped(taken, effects)
            finally:
                self._reports = False
        return effects


class ControllerRng:
    """The ids and choices of a controller, from the stream of its node."""

    def __init__(self, rng: Prng) -> None:
        self._rng = rng

    def randbytes(self, n: int, /) -> bytes:
        return self._rng.bytes(n)

    def randrange(self, stop: int, /) -> int:
        return self._rng.below(stop)


@dataclass(frozen=True, slots=True)
class ControllerResponse:
    """A response of a controller, decoded."""

    token: int
    request: Message
    response: Message
    committed: int | None
    """The end offset (exclusive) that `NodeEffects.committed` names for it; None: it names none."""
    principal: str = ANONYMOUS
    """Who asks."""


class SimulatedController:
    """One incarnation of a controller: `node` and the calls that it has not answered."""

    def __init__(
        self,
        replica: ObservedReplica,
        machine: ControllerMachine,
        listeners: Listeners,
        rng: Prng,
        metadata_version: int,
        max_idle_ms: int,
    ) -> None:
        """metadata_version: the level at which a new cluster begins."""
        node_id = replica.config.node_id
        level = FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata_version)
        self.listener = listeners[0].name
        self.records = machine.records
        """What the newest step has applied, of the records that a check reads."""
        self.node = ControllerNode(
            replica,
            machine.metadata,
            Registrant(node_id, Uuid(rng.bytes(16)), listeners),
            ControllerRng(rng),
            Bootstrap((encode_record(level, 0),)),
            ControllerConfig(
                node_id,
                replica.config.cluster_id,
                max_idle_ms=max_idle_ms,
                session_timeout_ms=SESSION_MS,
                imbalance_check_interval_ms=_ELECTIONS_MS,
                unclean_election_interval_ms=_ELECTIONS_MS,
                part_records=_PART_RECORDS,
                authorizer=_AUTHORIZER,
                tokens=_TOKENS,
                security_protocols=Map({self.listener: _PROTOCOL}),
            ),
        )
        self._calls: dict[int, Call] = {}
        """By token: without a response."""
        self._inbox: list[NodeInput] = []

    def ask(self, token: int, request: Message, principal: str) -> None:
        """A client's request arrives. The next step takes it."""
        self._inbox.append(self._call(token, request, principal))

    def registered(self, response: ControllerRegistrationResponse | None) -> None:
        """The response to this node's own registration arrives; None: there is none."""
        self._inbox.append(Registered(response))

    def step(self, happened: Sequence[Input], now: Now) -> NodeEffects:
        taken, self._inbox = self._inbox, []
        self.records.clear()
        for item in happened:
            if isinstance(item, Received):
                version = APIS[api_key_of(item.request)].max_version
                request = request_to_wire(item.request, version)
                taken.append(self._call(item.reply_to, request))
            else:
                taken.append(item)
        return self.node.step(taken, now)

    def _call(self, token: int, request: Message, principal: str = ANONYMOUS) -> Call:
        """Through the codec, as the server's listener reads it."""
        key = type(request).schema.key
        assert key is not None
        frame = encode_request(request, APIS[key].max_version, 1, CLIENT_NAME)
        call = Call(
            token,
            decode_request(frame[_LENGTH:]),
            self.listener,
            principal=principal,
            size=len(frame) - _LENGTH,
        )
        self._calls[token] = call
        return call

    def responses(self, effects: NodeEffects) -> list[ControllerResponse]:
        """The responses of one step, each once."""
        committed = dict(effects.committed)
        found = []
        for token, frame in effects.answers:
            call = self._calls.pop(token)
            request = call.request
            assert request.message is not None
            _, response = decode_response(frame[_LENGTH:], request.api_key, request.version)
            end = committed.get(token)
            found.append(ControllerResponse(token, request.message, response, end, call.principal))
        return found
