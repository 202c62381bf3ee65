"""A node whose log holds a program's own entries: raft requests and its program's proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.base.errors import ErrorCode
from quorate.embed.first_start import CONTROLLERS, is_unproven
from quorate.embed.machine import OpaqueMachine
from quorate.metadata.image import Image
from quorate.node.calls import Call
from quorate.node.controller import Closed, NodeEffects, NodeInput, Registered
from quorate.node.handlers import HANDLERS
from quorate.node.host import Done, ReplicaView
from quorate.node.machine import Now
from quorate.node.replica import Committed, Input, Replica
from quorate.node.translate import response_to_wire
from quorate.raft import inputs
from quorate.raft.messages import Request, Response
from quorate.raft.ready import Refused
from quorate.wire.messages import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.schema import Message

_SERVED = frozenset({1, 18, 52, 53, 54, 55, 59, 80, 81, 82})
"""Api keys that need no metadata: ApiVersions and those of the quorum itself."""
_DESCRIBE_CLUSTER = 60


class EmbeddedNode(ReplicaView):
    """Steps a replica of an OpaqueMachine; what the server's driver drives.

    `settled` is called during `step` with the outcome of each proposal; `answered` with each
    answer of the core to a question of our own (`ask`).
    """

    image_offset = -1
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
        self._settled = settled
        self._answered = answered
        self._next = 0
        self._own = 0
        self._asked: dict[int, Call] = {}
        self._inbox: list[Input] = []

    @property
    def snapshots_loaded(self) -> int:
        return self.machine.snapshots_loaded

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects:
        """Take everything that happened. Raises QuorateError where the machine does."""
        self.now = now
        self.machine.begin_step()
        effects = NodeEffects()
        for item in happened:
            if isinstance(item, Call):
                self._call(item, effects)
            elif not isinstance(item, Registered):
                self._inbox.append(item)
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
        """The input that puts a request of our own to the core; see `answered`."""
        self._own -= 1
        return inputs.Received(self._own, request)

    def _call(self, call: Call, effects: NodeEffects) -> None:
        key = call.request.api_key
        if key in _SERVED:
            answer = HANDLERS[key](self, call)
        elif key == _DESCRIBE_CLUSTER:
            answer = self._describe_cluster(call)
        else:
            effects.closed.append(Closed(call.token, f"api key {key} is not served here"))
            return
        if answer is not None:
            effects.answer(call, answer)

    def _describe_cluster(self, call: Call) -> Message:
        """The voters as controllers, so that Kafka's tools find their way.

        Who asks for fenced ones too is told which founders have never been there.
        """
        message = call.message
        assert isinstance(message, DescribeClusterRequest)
        if message.endpoint_type != CONTROLLERS:
            return DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="Members of a replicated state machine are controllers.",
            )
        nodes = [
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=voter.key.id,
                host=end.host,
                port=end.port,
                is_fenced=message.include_fenced_brokers and is_unproven(voter),
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

    # -- what handlers see and do (node.host.Host) ----------------------------------------
    def ask_core(self, call: Call, request: Request) -> None:
        self._next += 1
        self._asked[self._next] = call
        self._inbox.append(inputs.Received(self._next, request))

    def submit(self, call: Call, values: list[bytes], done: Done) -> None:
        raise AssertionError("no request of a peer appends to a program's log")

    def upgrade_kraft_version(
        self, call: Call, version: int, validate_only: bool, done: Done
    ) -> None:
        raise AssertionError("a program's log begins at kraft.version 1")
