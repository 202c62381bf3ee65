"""Clients of a world of controllers: each sends one metadata write at a time until it has a response.

A client sends AlterClientQuotas, UpdateFeatures, ControllerRegistration or UnregisterController,
requests about ACLs, SCRAM credentials and delegation tokens, and about topics where there are brokers.
It sends them to the node that it takes for the active controller. If the node is not active, or does
not respond in time, the client sends the same request to another node.
The registrations of the nodes themselves use the same path.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener, Uuid
from quorate.formats.versions import FEATURES, LATEST_PRODUCTION, METADATA_VERSION, MINIMUM
from quorate.node.registration import Registrant, RegistrationSend
from quorate.sim.prng import Prng
from quorate.sim.world.client_loop import MAX_PATIENCE, RETRY_US, ClientLoop, LoopClient
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.controller_calls import ControllerCall, ControllerCalls
from quorate.sim.world.network import Network
from quorate.sim.world.observable import LISTENER
from quorate.sim.world.process import Process
from quorate.sim.world.security_requests import PRINCIPALS
from quorate.sim.world.topic_requests import topic_request
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsResponse,
    ControllerRegistrationResponse,
    CreateAclsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteAclsResponse,
    DeleteTopicsResponse,
    IncrementalAlterConfigsResponse,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
)
from quorate.wire.schema import Message

_QUOTAS: Final = 40
"""Most quotas of a world: the digest of the image covers all of them after every batch."""
_FIRST_FOREIGN_ID: Final = 1000
"""Node ids of the controllers that clients register lie above the ids of the nodes."""
QUOTA: Final = "producer_byte_rate"
_UPGRADE: Final = 1
_ABOUT_SECURITY: Final = 0.25
"""The part of the requests that are about ACLs, credentials and tokens."""
_ABOUT_TOPICS: Final = 0.7
"""The part of the others that are about topics, where there are brokers."""


class MetadataClient(LoopClient):
    """`request` is the request that it waits for."""

    def __init__(self, seed: int, client_id: int, target: int) -> None:
        super().__init__(client_id, Prng(seed, "metadata client", client_id), target)
        self.request: Message | None = None


class ClientCall(ControllerCall):
    """An attempt of a client."""

    def __init__(
        self, clients: ControllerClients, client: MetadataClient, request: Message
    ) -> None:
        super().__init__(request, principal=PRINCIPALS[client.id % len(PRINCIPALS)])
        self.client = client
        self.attempt = client.attempt
        self._clients = clients

    def answered(self, response: Message | None) -> None:
        self._clients.answered(self, response)


class RegistrationCall(ControllerCall):
    """A node registers with the active controller."""

    def __init__(self, process: Process, registration: RegistrationSend) -> None:
        super().__init__(registration.request, process.id)
        self._process = process
        self._to = registration.to
        self._turn = process.turn

    def answered(self, response: Message | None) -> None:
        controller = self._process.controller
        if self._process.turn != self._turn or controller is None:
            return
        assert response is None or isinstance(response, ControllerRegistrationResponse)
        if response is not None:
            self._process.world.registered(self._process, self._to)
        controller.registered(response)
        self._process.post()


class ControllerClients(ClientLoop[MetadataClient]):
    """All metadata clients; none where the plan has no controllers."""

    def __init__(self, world: SimulatedCluster, network: Network, calls: ControllerCalls) -> None:
        plan = world.plan
        count = plan.clients.count if plan.controllers else 0
        clients = [MetadataClient(plan.seed, i, 1 + i % plan.voters) for i in range(1, count + 1)]
        super().__init__(world, network, clients)
        self._calls = calls
        self._quotas = 0
        self._brokers = plan.brokers
        self._topics = 0

    @property
    def pending(self) -> list[Message]:
        """The requests without a response."""
        return [client.request for client in self._all if client.request is not None]

    # -- requests -----------------------------------------------------------------------------
    def _invoke(self, client: MetadataClient) -> None:
        if self._may_begin:
            client.request = self._drawn(client)
            self._try(client)

    def _drawn(self, client: MetadataClient) -> Message:
        rng = client.rng
        if rng.happens(_ABOUT_SECURITY):
            return self._world.security.draw(rng)
        if self._brokers and rng.happens(_ABOUT_TOPICS):
            self._topics += 1
            return topic_request(rng, self._topics, self._brokers)
        choice = rng.random()
        if choice < 0.6 and self._quotas < _QUOTAS:
            # A user of its own for each quota: a request that arrives late overwrites nothing.
            self._quotas += 1
            return _quota(f"user{self._quotas}", float(self._quotas))
        if choice < 0.85:
            names = (METADATA_VERSION, METADATA_VERSION, *sorted(FEATURES))
            name = rng.pick(names)
            if name == METADATA_VERSION:
                return _upgrade(name, rng.between(int(MINIMUM), int(LATEST_PRODUCTION)))
            return _upgrade(name, rng.between(0, FEATURES[name].latest_production))
        node_id = _FIRST_FOREIGN_ID + client.id
        if choice < 0.9:
            # Of a node that runs too: it registers again.
            return UnregisterControllerRequest(
                controller_id=rng.pick((node_id, 1 + rng.below(self._nodes)))
            )
        listeners = (Listener(LISTENER, f"node{node_id}", node_id),)
        return Registrant(node_id, Uuid(rng.bytes(16)), listeners).request()

    def _try(self, client: MetadataClient) -> None:
        request, world = client.request, self._world
        if request is None:
            return
        client.attempt += 1
        asked = ClientCall(self, client, request)
        self._calls.send(asked, client.target)
        timeout = world.now_us + self._plan.timeout_ms * 1000 * client.patience
        world.push(timeout, self._time_out, asked)

    def _time_out(self, asked: ClientCall) -> None:
        client = asked.client
        if client.request is not asked.request or client.attempt != asked.attempt:
            return
        client.patience = min(client.patience + 1, MAX_PATIENCE)
        if self._may_begin and client.rng.happens(self._plan.give_up):
            client.request = None
            self._think(client)
        else:
            client.target = 1 + client.rng.below(self._nodes)
            self._try(client)

    def answered(self, asked: ClientCall, response: Message | None) -> None:
        """A node answers, or refuses the connection (None)."""
        client = asked.client
        if response is not None:
            self._world.security.answered(response)
        if client.request is not asked.request or client.attempt != asked.attempt:
            return
        if response is None or error_of(response) == ErrorCode.NOT_CONTROLLER:
            client.attempt += 1  # the timeout of this attempt counts no more
            client.target = self._next_target(client)
            self._world.push(self._world.now_us + RETRY_US, self._try, client)
            return
        client.request, client.patience = None, 1
        self._think(client)

    def _next_target(self, client: MetadataClient) -> int:
        """Choose the next node after a refusal.

        In the liveness phase it is the controller that the refusal names, as Kafka's clients do it:
        where half of the nodes cannot start again, chance might not find it in time.
        """
        chosen = 1 + client.rng.below(self._nodes)
        refusing = self._world.processes[client.target]
        if self._may_begin or refusing.replica is None:
            return chosen
        known = refusing.core.leader.leader_id
        return chosen if known < 0 else known

    def register(self, process: Process, registration: RegistrationSend) -> None:
        """A node asks the active controller to register it."""
        asked = RegistrationCall(process, registration)
        to = self._world.addresses.get(registration.address)
        if to is not None:
            self._calls.send(asked, to)
        self._calls.expire(asked, registration.timeout_ms * 1000)


def error_of(response: Message) -> ErrorCode:
    """The error of a write: of the response, or of its only entry."""
    if isinstance(response, AlterClientQuotasResponse):
        return ErrorCode.of(response.entries[0].error_code)
    if isinstance(response, CreateTopicsResponse):
        return ErrorCode.of(response.topics[0].error_code)
    if isinstance(response, DeleteTopicsResponse | IncrementalAlterConfigsResponse):
        return ErrorCode.of(response.responses[0].error_code)
    if isinstance(response, DeleteAclsResponse):
        return ErrorCode.of(response.filter_results[0].error_code)
    if isinstance(
        response, CreatePartitionsResponse | CreateAclsResponse | AlterUserScramCredentialsResponse
    ):
        return ErrorCode.of(response.results[0].error_code)
    code: int = response.error_code  # type: ignore[attr-defined]
    return ErrorCode.of(code)


def _quota(user: str, value: float) -> AlterClientQuotasRequest:
    entry = AlterClientQuotasRequest.EntryData
    return AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="user", entity_name=user)],
                ops=[entry.OpData(key=QUOTA, value=value, remove=False)],
            )
        ]
    )


def _upgrade(feature: str, level: int) -> UpdateFeaturesRequest:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=_UPGRADE
    )
    return UpdateFeaturesRequest(feature_updates=[update])
