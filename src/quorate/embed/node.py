"""The node of a member: serves raft requests and takes its program's proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.base.errors import ErrorCode
from quorate.controller.building import at_once
from quorate.controller.configs_in_force import ConfigsInForce
from quorate.embed.first_start import CONTROLLERS, is_unconfirmed
from quorate.embed.foreign_quorum import foreign_quorum
from quorate.embed.machine import OpaqueMachine
from quorate.metadata.image import Image
from quorate.node.api_row import Kind
from quorate.node.apis import API_TABLE, ROWS, denied
from quorate.node.loggers import Loggers, NoLoggers
from quorate.node.long_requests import refusal
from quorate.node.node_io import Closed, NodeEffects, NodeInput, Registered
from quorate.node.raft_rpc_inbound import response_to_wire
from quorate.node.request_context import ReplicaView
from quorate.node.requests import Call
from quorate.raft import inputs
from quorate.raft.answers import bare_refusal
from quorate.raft.messages import Request, Response
from quorate.raft.ready import Refused
from quorate.replica.replica import Committed, Input, Replica
from quorate.replica.state_machine import Now
from quorate.wire.messages import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.schema import Message

_API_VERSIONS = 18
_SERVED = {row.key for row in ROWS if row.kind is Kind.RAFT} | {_API_VERSIONS}
"""API keys that need no metadata."""
_DESCRIBE_CLUSTER = 60


class EmbeddedNode(ReplicaView):
    """Runs a replica of an OpaqueMachine; a driver runs the node.

    During `step`, `settled` gets the outcome of each proposal, and `answered` gets the response to each
    request of the program itself (`ask`).
    """

    image_offset = -1
    is_behind_disk = False
    unstable_features = False

    def __init__(
        self,
        replica: Replica,
        machine: OpaqueMachine,
        settled: Callable[[Committed | Refused], None],
        answered: Callable[[int, Response], None],
    ) -> None:
        self.image = Image()
        self.replica = replica
        self.machine = machine
        self.node_id = replica.config.node_id
        self.cluster_id = replica.config.cluster_id
        self.now = Now(0, 0)
        self.loggers: Loggers = NoLoggers()
        self.configs = ConfigsInForce(self.node_id)
        self.allowed: frozenset[str] | None = None
        """Who may send requests, as `type:name`; None: all that are authenticated."""
        self._settled = settled
        self._answered = answered
        self._next = 0
        self._own = 0
        self._asked: dict[int, Call] = {}
        self._inbox: list[Input] = []
        self._refused: tuple[Call, Request, str] | None = None
        """The request of another quorum that ends this member, and the proof in words."""

    @property
    def index(self) -> None:
        """A member keeps no partitions."""

    @property
    def liveness(self) -> None:
        """A member has no brokers."""

    @property
    def elections(self) -> None:
        """A member elects no leaders of partitions."""

    @property
    def counts(self) -> None:
        """A member has no write queue and no authorizer."""

    @property
    def snapshots_loaded(self) -> int:
        """Snapshots loaded at the start or from a leader."""
        return self.machine.snapshots_loaded

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects:
        """Take all inputs. Raises QuorateError when the state machine fails."""
        self.now = now
        self.machine.begin_step()
        effects = NodeEffects()
        for item in happened:
            if isinstance(item, Call):
                self._call(item, effects)
            elif not isinstance(item, Registered):  # unreached: a member registers nowhere
                self._inbox.append(item)
        if self._refused is not None:
            # The replica must not take the request: one log would have records of two quorums.
            refused, request, effects.faulted = self._refused
            refusal = bare_refusal(request, ErrorCode.INVALID_VOTER_KEY)
            effects.answer(refused, response_to_wire(refusal, b"", refused.asked))
            return effects
        taken, self._inbox = self._inbox, []
        done = self.replica.step(taken, now)
        effects.sends, effects.jobs, effects.notes = done.sends, done.jobs, done.notes
        effects.leader, effects.wake_at_ms = done.leader, done.wake_at_ms
        effects.stopped, effects.faulted = done.stopped, done.faulted
        for answer in done.answers:
            call = self._asked.pop(answer.reply_to, None)
            if call is None:
                self._answered(answer.reply_to, answer.response)
            else:
                message = response_to_wire(answer.response, answer.data, call.asked)
                effects.answer(call, message)
        for outcome in done.outcomes:
            self._settled(outcome)
        return effects

    def ask(self, request: Request) -> inputs.Received:
        """Make the input for a request of the program itself; `answered` gets the response."""
        self._own -= 1
        return inputs.Received(self._own, request)

    def _call(self, call: Call, effects: NodeEffects) -> None:
        key = call.request.api_key
        row = API_TABLE.get(key)
        is_denied = row is not None and row.acl is not None and not self._allows(call.principal)
        if row is not None and call.too_long is not None:
            effects.too_long.append((call, call.too_long))
            found = refusal(row, call, is_denied=is_denied)
            if isinstance(found, Message):
                effects.answer(call, found)
            else:
                effects.closed.append(Closed(call.token, f"{call.too_long} {found}"))
            return
        if row is not None and is_denied:
            refused = denied(row, call)
            effects.answer(call, refused if isinstance(refused, Message) else at_once(refused))
            return
        if key in _SERVED:
            handler = API_TABLE[key].handler
            assert handler is not None
            answer = handler(self, call)
        elif key == _DESCRIBE_CLUSTER:
            answer = self._describe_cluster(call)
        else:
            effects.closed.append(Closed(call.token, f"api key {key} is not served here"))
            return
        if answer is not None:
            effects.answer(call, answer if isinstance(answer, Message) else at_once(answer))

    def _allows(self, principal: str) -> bool:
        return self.allowed is None or principal in self.allowed

    def _describe_cluster(self, call: Call) -> Message:
        """Describe the voters as controllers, so that Kafka's tools find them.

        With `include_fenced_brokers`, founders that never followed or led are marked as fenced: see
        `first_start`. A leader knows who votes and fetches before the voter set says so.
        """
        message = call.message
        assert isinstance(message, DescribeClusterRequest)
        if message.endpoint_type != CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="Members of a replicated state machine are controllers.",
            )
        present = self.replica.core.voters_of_epoch
        nodes = [
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=voter.key.id,
                host=end.host,
                port=end.port,
                is_fenced=(
                    message.include_fenced_brokers
                    and is_unconfirmed(voter)
                    and voter.key.id not in present
                ),
            )
            for voter in self.control.voters or ()
            for end in voter.listeners
            if end.name == call.listener
        ]
        return DescribeClusterResponse(
            endpoint_type=CONTROLLERS,
            cluster_id=self.cluster_id,
            controller_id=self.leader_id,
            brokers=nodes,
        )

    # -- what handlers see and do (node.request_context.NodeView) ----------------------------------------
    def ask_core(self, call: Call, request: Request) -> None:
        found = foreign_quorum(self.replica.core, self.replica.config, request)
        if found is not None:
            self._refused = call, request, found
            return
        self._next += 1
        self._asked[self._next] = call
        self._inbox.append(inputs.Received(self._next, request))
