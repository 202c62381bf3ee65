"""The audit trail: who changed what, with which result, where it is in the log, and why.

The node makes an entry for each write that is answered, and for each request without permission. It
makes one too when the active controller changes something on its own. A write that commits in parts
gets one for each of them: the node may die before the last one. An entry never holds a value that may
be secret: of a request it has names and numbers, of configs their names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid, uuid_to_text
from quorate.controller.activation import NO_OP
from quorate.formats.records import PartitionChangeRecord, PartitionRecord
from quorate.node.api_row import Audit, Kind
from quorate.node.apis import API_TABLE, ROWS
from quorate.node.own_writes import OWN_REASONS
from quorate.node.requests import Call
from quorate.wire.schema import Message, Struct

AuditEntry = dict[str, Any]
"""Ready for JSON; `docs/operations.md` describes the fields."""

MOST_ITEMS: Final = 10
"""Items of a list that an entry shows; it says how many there are more."""
_MOST_LOOKED_AT: Final = 10_000
"""Rows of a response."""
_MOST_DEPTH: Final = 4
_UUID_BYTES: Final = 16
_MOST_TEXT: Final = 249
_ROUTINE: Final = frozenset(row.name for row in ROWS if row.audit is Audit.ROUTINE) | {NO_OP.name}
"""What brokers and the controller write all the time: kept where it elects leaders, or is refused by
an authorizer."""
_REASONS: Final = {row.name: row.reason for row in ROWS if row.reason} | {
    operation.name: reason for operation, reason in OWN_REASONS.items()
}
"""Name of an operation -> why it elects or changes."""
SHOWN: Final = frozenset(
    (
        *("topics", "topic", "topic_name", "topic_names", "topic_id", "name", "topic_partitions"),
        *("partitions", "partition_index", "partition_indexes", "num_partitions", "count"),
        *("replication_factor", "assignments", "broker_ids", "replicas", "election_type"),
        *("resources", "resource_type", "resource_name", "configs", "config_operation"),
        *("entries", "entity", "entity_type", "entity_name", "ops", "key", "remove"),
        *("creations", "filters", "resource_pattern_type", "principal", "host", "operation"),
        *("permission_type", "resource_type_filter", "resource_name_filter", "principal_filter"),
        *("deletions", "upsertions", "mechanism", "iterations", "feature_updates", "feature"),
        *("max_version_level", "upgrade_type", "broker_id", "controller_id", "voter_id"),
        *("voter_directory_id", "owner_principal_type", "owner_principal_name", "renewers"),
        *("principal_type", "principal_name", "validate_only", "incarnation_id", "rack"),
    )
)
"""Fields of requests that an entry shows. Values of configs, passwords, salts and tokens are not among
them."""


class WriteFacts:
    """What a write has done since its last entry, gathered on its way."""

    __slots__ = (
        *("elected", "elections", "end_offset", "first_offset", "has_more", "operation", "part"),
        *("placements", "records", "uncommitted", "_submitted"),
    )

    def __init__(self, operation: int = -1, part: int = 1) -> None:
        """operation: offset of the first record of the whole write, -1: none is committed; part: the
        number of the entry, from 1."""
        self.operation = operation
        self.part = part
        self.has_more = False
        """Another entry of the write follows, unless the node dies."""
        self.records = 0
        """That are committed: [first_offset, end_offset), perhaps with those of other writes between."""
        self.first_offset = -1
        self.end_offset = -1
        self.placements = 0
        """Partitions that were created."""
        self.elections = 0
        self.elected: list[dict[str, Any]] = []
        """The first MOST_ITEMS of the elections."""
        self.uncommitted = 0
        """Records whose outcome was not known when the write failed."""
        self._submitted: deque[Sequence[Message]] = deque()
        """Parts that are not committed."""

    def submitted(self, records: Sequence[Message]) -> None:
        """A part is on its way to the log. Parts commit in this order."""
        self._submitted.append(records)

    def committed(self, base_offset: int, end_offset: int) -> None:
        """The oldest part is committed."""
        records = self._submitted.popleft()
        self.records += len(records)
        if self.first_offset < 0:
            self.first_offset = base_offset
        if self.operation < 0:
            self.operation = base_offset
        self.end_offset = end_offset
        self._look_at(records)

    def failed(self) -> None:
        """Nobody learns what becomes of the parts that are not committed: the next leader may commit them."""
        while self._submitted:
            records = self._submitted.popleft()
            self.uncommitted += len(records)
            self._look_at(records)

    def next_part(self) -> WriteFacts:
        """The facts for the entry after this one, which has more."""
        self.has_more = True
        after = WriteFacts(self.operation, self.part + 1)
        after._submitted = self._submitted
        return after

    def _look_at(self, records: Sequence[Message]) -> None:
        for record in records:
            if isinstance(record, PartitionRecord):
                self.placements += 1
            elif isinstance(record, PartitionChangeRecord) and record.leader != -2:
                self.elections += 1
                if len(self.elected) < MOST_ITEMS:
                    self.elected.append(
                        {
                            "topicId": uuid_to_text(record.topic_id),
                            "partition": record.partition_id,
                            "leader": record.leader,
                        }
                    )


def is_worth_an_entry(name: str, facts: WriteFacts) -> bool:
    """Whether what is committed needs an entry before the write is answered. name: of the operation."""
    return facts.records > 0 and (facts.elections > 0 or name not in _ROUTINE)


def of_write(
    name: str,
    request: Any,
    call: Call | None,
    response: Any,
    facts: WriteFacts,
    error: ErrorCode,
) -> AuditEntry | None:
    """The entry of a write that is answered, or of a part of it; None: it is not worth one."""
    problems = [] if facts.has_more else _problems(response)
    is_refused = any("AUTHORIZATION" in problem["error"] for problem in problems)
    is_in_parts = facts.has_more or facts.part > 1
    if not is_in_parts:
        if name in _ROUTINE and not facts.elections and not is_refused:
            return None
        if not facts.records and error is ErrorCode.NONE and not problems:
            return None
    entry = _entry(name, request, call)
    entry["result"] = error.name if error is not ErrorCode.NONE or not problems else "PARTIAL"
    if problems:
        entry["errors"] = problems
    if is_in_parts:
        entry["operation"] = facts.operation
        entry["part"] = facts.part
        entry["more"] = facts.has_more
    if facts.records:
        entry["records"] = facts.records
        entry["firstOffset"] = facts.first_offset
        entry["endOffset"] = facts.end_offset
    if facts.uncommitted:
        entry["uncommitted"] = facts.uncommitted
    reason = _REASONS.get(name)
    if reason is not None:
        entry["reason"] = reason
    elif call is not None and (is_in_parts or facts.elections or facts.placements):
        entry["reason"] = "asked for by the client"
    if facts.placements:
        entry["placements"] = facts.placements
    if facts.elections:
        entry["electionCount"] = facts.elections
        entry["elections"] = facts.elected
    return entry


def of_answer(call: Call, response: Message) -> list[AuditEntry]:
    """The entry of a change of the voters, which the raft core has answered; none for another request."""
    row = API_TABLE.get(call.request.api_key)
    if row is None or row.kind is not Kind.RAFT or row.audit is Audit.NEVER:
        return []
    return [of_request(row.name, call, response)]


def of_request(name: str, call: Call, response: Message) -> AuditEntry:
    """The entry of a request that is answered at once: refused, or a change of the voters."""
    entry = _entry(name, call.request.message, call)
    problems = _problems(response)
    entry["result"] = problems[0]["error"] if problems else ErrorCode.NONE.name
    if problems:
        entry["errors"] = problems
    return entry


def _entry(name: str, request: Any, call: Call | None) -> AuditEntry:
    entry: AuditEntry = {"request": name}
    if call is None:
        entry["principal"] = None
    else:
        entry["version"] = call.request.version
        entry["principal"] = call.principal
        entry["clientId"] = call.request.client_id
        entry["address"] = call.host
        entry["listener"] = call.listener
        entry["forwarded"] = call.envelope is not None
        message = request if isinstance(request, Message) else call.request.message
        if message is not None:
            entry["what"] = _shown(message, 0)
    return entry


def _shown(value: Any, depth: int) -> Any:
    if isinstance(value, Struct):
        if depth == _MOST_DEPTH:  # unreached: no request of the trail is nested so deep
            return "..."
        fields = type(value).schema.fields
        found = {f.name: getattr(value, f.name) for f in fields if f.name in SHOWN}
        return {name: _shown(part, depth + 1) for name, part in found.items() if part is not None}
    if isinstance(value, list | tuple):
        shown = [_shown(item, depth) for item in value[:MOST_ITEMS]]
        more = len(value) - MOST_ITEMS
        return [*shown, f"and {more} more"] if more > 0 else shown
    if isinstance(value, bytes):  # no field of these holds a secret
        return uuid_to_text(Uuid(value)) if len(value) == _UUID_BYTES else None  # unreached: ids
    if isinstance(value, str):
        return value[:_MOST_TEXT]
    return value if isinstance(value, bool | int | float) else None  # unreached: no other kind


def _problems(response: Any) -> list[dict[str, Any]]:
    """The first errors in a response, each with its text and the name of its item. Of a long response
    the first _MOST_LOOKED_AT rows are looked at: to look at all would hold the loop."""
    rows = islice(_structs(response), _MOST_LOOKED_AT)
    failed = (row for row in rows if getattr(row, "error_code", 0))
    return [_problem(row) for row in islice(failed, MOST_ITEMS)]


def _structs(value: Any) -> Iterator[Struct]:
    """The value and all that is in it, from the top to the bottom."""
    if isinstance(value, list):
        for item in value:
            yield from _structs(item)
    elif isinstance(value, Struct):
        yield value
        for field in type(value).schema.fields:
            if field.holds_structs:
                yield from _structs(getattr(value, field.name))


def _problem(row: Any) -> dict[str, Any]:
    problem: dict[str, Any] = {"error": ErrorCode.of(row.error_code).name}
    text = getattr(row, "error_message", None)
    if text:
        problem["message"] = text[:_MOST_TEXT]
    name = getattr(row, "name", None)
    if isinstance(name, str):
        problem["name"] = name[:_MOST_TEXT]
    return problem
