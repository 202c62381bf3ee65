"""The audit trail: who changed what, with which result, where it is in the log, and why.

The node makes an entry for each write that is answered, and for each request without permission. It
makes one too when the active controller changes something on its own. An entry never holds a value
that may be secret: of a request it has names and numbers, of configs their names.
"""

from __future__ import annotations

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
    """What a write has done, gathered on its way."""

    __slots__ = ("elected", "elections", "first_offset", "placements", "records")

    def __init__(self) -> None:
        self.records = 0
        self.first_offset = -1
        self.placements = 0
        """Partitions that were created."""
        self.elections = 0
        self.elected: list[dict[str, Any]] = []
        """The first MOST_ITEMS of the elections."""

    def add(self, records: Sequence[Message]) -> None:
        """These records were submitted."""
        self.records += len(records)
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


def of_write(
    name: str,
    request: Any,
    call: Call | None,
    response: Any,
    facts: WriteFacts,
    error: ErrorCode,
    end_offset: int,
) -> AuditEntry | None:
    """The entry of a write that is answered; None: it is not worth one."""
    problems = _problems(response)
    is_refused = any("AUTHORIZATION" in problem["error"] for problem in problems)
    if name in _ROUTINE and not facts.elections and not is_refused:
        return None
    if not facts.records and error is ErrorCode.NONE and not problems:
        return None
    entry = _entry(name, request, call)
    entry["result"] = error.name if error is not ErrorCode.NONE or not problems else "PARTIAL"
    if problems:
        entry["errors"] = problems
    if facts.records and end_offset >= 0:
        entry["records"] = facts.records
        entry["firstOffset"] = facts.first_offset
        entry["endOffset"] = end_offset
    reason = _REASONS.get(name)
    if reason is not None:
        entry["reason"] = reason
    elif call is not None and (facts.elections or facts.placements):
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
