"""What a controller takes in a step, and what its driver has to do after it."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.base.ids import LeaderAndEpoch
from quorate.node.audit import AuditEntry
from quorate.node.long_texts import shorten_error_messages
from quorate.node.registration import RegistrationSend
from quorate.node.requests import Call
from quorate.raft.ready import Send
from quorate.replica.disk_jobs import Job
from quorate.replica.replica import Input
from quorate.wire.errors import EncodeError
from quorate.wire.messages import ControllerRegistrationResponse
from quorate.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Registered:
    """The response to a RegistrationSend; None: there was none."""

    response: ControllerRegistrationResponse | None


@dataclass(frozen=True, slots=True)
class Closed:
    """A call that has no response: close its connection."""

    token: int
    reason: str


NodeInput = Call | Registered | Input


@dataclass(slots=True)
class NodeEffects:
    """What to do now; `jobs` in order, everything else in any order."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    """(token of the call, frame)."""
    committed: list[tuple[int, int]] = field(default_factory=list)
    """(token of the call, end offset) of each write among `answers` that succeeded: the end
    (exclusive) of the newest record that its response may depend on. -1: it depends on none."""
    closed: list[Closed] = field(default_factory=list)
    too_long: list[tuple[Call, str]] = field(default_factory=list)
    """Requests that are refused because they are too long, each with the words for the log."""
    sends: list[Send] = field(default_factory=list)
    registrations: list[RegistrationSend] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    leader: LeaderAndEpoch | None = None
    notes: list[str] = field(default_factory=list)
    wake_at_ms: int | None = None
    stopped: bool = False
    faulted: str | None = None
    errors: int = 0
    """Faults that did not end the node (`MetadataErrorCount`)."""
    audit: list[AuditEntry] = field(default_factory=list)
    """Entries of the audit trail, in order."""
    throttled: list[tuple[int, int]] = field(default_factory=list)
    """(token of the call, ms) of each of `answers` whose connection is not to be read for that time."""
    queued_ms: list[int] = field(default_factory=list)
    """How long each write that was decided had waited in the queue."""

    is_answering: bool = False
    """An answer takes more steps, and may have made many objects."""

    def answer(self, call: Call, message: Message) -> None:
        """Answer the call. Where the version of the request has no field for what the response says,
        close the connection, as Kafka does."""
        try:
            self.answers.append((call.token, encoded(call, message)))
        except EncodeError as error:
            self.close(call, error)

    def close(self, call: Call, error: EncodeError) -> None:
        """Close the connection of a call whose response cannot be encoded."""
        self.closed.append(Closed(call.token, f"its response cannot be encoded: {error}"))


def encoded(call: Call, message: Message) -> bytes:
    """The frame of the response. Raises EncodeError."""
    try:
        return call.encode(message)
    except EncodeError:
        if not shorten_error_messages(message):
            raise
    return call.encode(message)
