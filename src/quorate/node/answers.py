"""How a node answers calls: it throttles their clients, encodes, and keeps what the audit trail needs.

An answer that takes long is built and encoded in steps: see `long_answers`.
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.controller.building import Building
from quorate.node.api_row import ApiRow, Audit
from quorate.node.audit import of_answer, of_request
from quorate.node.client_quotas import ClientQuotas
from quorate.node.envelope import envelope_error
from quorate.node.long_answers import LongAnswers, dropped_in_steps, frame_in_steps, timed
from quorate.node.long_requests import refusal
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.node_io import Closed, NodeEffects
from quorate.node.queued_write import WriteResponse
from quorate.node.requests import LONG_REQUEST_BYTES, Call
from quorate.wire.errors import EncodeError
from quorate.wire.messages import EnvelopeResponse
from quorate.wire.schema import Message


class Answers:
    """Answers the calls of one node. Times are monotonic, ms."""

    def __init__(self, quotas: ClientQuotas, machine: MetadataMachine, *, is_audited: bool) -> None:
        self._quotas = quotas
        self._machine = machine
        self._is_audited = is_audited
        self._effects = NodeEffects()
        """Of the present step of the node."""
        self._now_ms = 0
        self._long = LongAnswers()

    @property
    def is_busy(self) -> bool:
        """An answer takes more steps."""
        return len(self._long) > 0

    def begin_step(self, effects: NodeEffects, now_ms: int) -> None:
        """A step of the node begins; from now on answers go to these effects."""
        self._effects = effects
        self._now_ms = now_ms
        self._long.go_on()

    def in_steps(self, call: Call, steps: Building[None]) -> None:
        """Run what belongs to the answer of a call: one step now, the others in steps of the node."""
        self._long.begin(call.principal, steps)

    def close(self, call: Call, reason: str) -> None:
        """Close the connection of a call that has no response."""
        self._effects.closed.append(Closed(call.token, reason))

    def refuse_envelope(self, call: Call, response: EnvelopeResponse) -> None:
        """Answer an Envelope whose content is not served. Nobody is throttled for it."""
        self._effects.answer(call, response)

    def refuse_long(self, row: ApiRow, call: Call, *, is_denied: bool) -> None:
        """Answer a request that is too long. is_denied: the requester has no permission to ask.

        Where there is no response, its connection is closed; that of a broker stays.
        """
        began_ns = self._quotas.work_ns()
        answer = refusal(row, call, is_denied=is_denied)
        if isinstance(answer, Message):
            self._effects.too_long.append((call, str(call.too_long)))
            if self._is_audited and (is_denied or row.audit is not Audit.NEVER):
                self._effects.audit.append(of_request(row.name, call, answer))
            self._send(call, answer, self._quotas.work_ns() - began_ns, denied=is_denied)
            return
        self._effects.too_long.append((call, f"{call.too_long} It is not answered: {answer}"))
        if call.envelope is None:
            self.close(call, f"{call.too_long} {answer}")
        else:
            invalid = EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
            self.refuse_envelope(call.envelope, invalid)

    def deny(self, row: ApiRow, call: Call, refusal: Message | Building[Message]) -> None:
        """Answer a requester without the permission that the API needs."""
        if isinstance(refusal, Message):
            self._audit_denied(row, call, refusal)
            self._send(call, refusal, denied=True)
        else:
            self.in_steps(call, self._deny_in_steps(row, call, refusal))

    def _deny_in_steps(self, row: ApiRow, call: Call, steps: Building[Message]) -> Building[None]:
        refusal, work_ns = yield from timed(steps, self._quotas.work_ns)
        self._audit_denied(row, call, refusal)
        yield from self._send_in_steps(call, refusal, work_ns, denied=True)

    def _audit_denied(self, row: ApiRow, call: Call, refusal: Message) -> None:
        if self._is_audited:
            self._effects.audit.append(of_request(row.name, call, refusal))

    def reply(self, call: Call, answer: Message | Building[Message], work_ns: int = 0) -> None:
        """Answer what is no write. work_ns: how long the answer took to find."""
        if isinstance(answer, Message):
            if self._is_audited:
                self._effects.audit += of_answer(call, answer)
            self._send(call, answer, work_ns)
        else:
            self.in_steps(call, self._reply_in_steps(call, answer))

    def _reply_in_steps(self, call: Call, steps: Building[Message]) -> Building[None]:
        answer, work_ns = yield from timed(steps, self._quotas.work_ns)
        yield from self._send_in_steps(call, answer, work_ns)

    def write(self, response: WriteResponse) -> None:
        """Answer a write."""
        call, message, work_ns = response.call, response.message, response.work_ns
        committed = response.offset if response.error == ErrorCode.NONE else None
        if call.envelope is not None and response.error == ErrorCode.NOT_CONTROLLER:
            # The broker sends the request to the next controller (`RequestChannel.buildResponse`).
            frame = envelope_error(call, ErrorCode.NOT_CONTROLLER)
            self._effects.answers.append((call.token, frame))
        elif call.size > LONG_REQUEST_BYTES:
            self.in_steps(call, self._send_in_steps(call, message, work_ns, committed=committed))
        else:
            if committed is not None:
                self._effects.committed.append((call.token, committed))
            self._send(call, message, work_ns)

    def _send(
        self, call: Call, message: Message, work_ns: int = 0, *, denied: bool = False
    ) -> None:
        """Answer a call, and throttle the connection of a client that exceeds a quota.

        work_ns: how long the answer took to find; denied: the requester has no permission.
        """
        quotas, image, now_ms = self._quotas, self._machine.image, self._now_ms
        throttle_ms = quotas.throttle(call, message, image, work_ns, now_ms, denied=denied)
        began_ns = quotas.work_ns()
        self._effects.answer(call, message)
        quotas.encoded(call, image, quotas.work_ns() - began_ns, now_ms)
        if throttle_ms:
            self._effects.throttled.append((call.token, throttle_ms))
        if call.size > LONG_REQUEST_BYTES:
            self.in_steps(call, dropped_in_steps(call.request.message))

    def _send_in_steps(
        self,
        call: Call,
        message: Message,
        work_ns: int,
        *,
        denied: bool = False,
        committed: int | None = None,
    ) -> Building[None]:
        """Answer as `_send` does. committed: the end offset of a write that succeeded."""
        quotas = self._quotas
        throttle_ms = quotas.throttle(
            call, message, self._machine.image, work_ns, self._now_ms, denied=denied
        )
        try:
            frame, encoded_ns = yield from timed(frame_in_steps(call, message), quotas.work_ns)
        except EncodeError as error:
            self._effects.close(call, error)
            return
        quotas.encoded(call, self._machine.image, encoded_ns, self._now_ms)
        effects = self._effects
        effects.answers.append((call.token, frame))
        if committed is not None:
            effects.committed.append((call.token, committed))
        if throttle_ms:
            effects.throttled.append((call.token, throttle_ms))
        if call.size > LONG_REQUEST_BYTES:
            yield from dropped_in_steps(call.request.message)
