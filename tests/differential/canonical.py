"""Responses and records as plain values, without what chance and time decide."""

from __future__ import annotations

import re
import time
from typing import Any

from differential.side import Side
from interop.process import HOST
from quorate.base.ids import Uuid, uuid_to_text
from quorate.wire.schema import Message, Struct

LONG_MAX = 2**63 - 1
MADE_UP = b"\x01made up"
"""How each uuid begins that the generator makes."""
_WORD = re.compile(r"[A-Za-z0-9_-]{22}")
_DENIED = re.compile(r"^Request Request\(.*\) needs \w+ permission\.$", re.S)
"""Kafka's text names a connection and Java objects (decision 7)."""
_DENIED_TEXT = "Cluster authorization failed."
_RANGE = re.compile(r"\b7-33\b")
"""Levels of metadata.version of Kafka 4.4, which Quorate supports."""
_MINUTE_MS = 60_000
_EPOCHS = {"broker_epoch", "previous_broker_epoch", "epoch"}
_TIMES = re.compile("timestamp")
_TOKEN_TIMES = (
    ("issue_timestamp", "expiration_timestamp", "max_timestamp"),
    ("issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms"),
)
"""Of a record, of a response."""
_FOREVER = "<no end>"
_TOKEN_ID = "token_id"
_UUID = "uuid"
_SKIPPED = {"finalized_features_epoch", "zk_migration_ready"}


def made_up(number: int) -> Uuid:
    """A uuid of the generator's."""
    return Uuid(MADE_UP + number.to_bytes(16 - len(MADE_UP), "big"))


def canonical(value: Any, side: Side, field: str = "") -> Any:
    """Dicts, lists and simple values; arrays of structs are sorted."""
    if isinstance(value, Struct):
        fields = {
            one.name: canonical(
                getattr(value, one.name),
                side,
                _UUID if _UUID in (one.type_name, one.element) else one.name,
            )
            for one in type(value).schema.fields
            if one.name not in _SKIPPED
        }
        return fields | _token_times(value)
    if isinstance(value, list | tuple):
        found = [canonical(one, side, field) for one in value]
        return sorted(found, key=repr) if found and isinstance(found[0], dict) else found
    if field == _UUID:
        return None if value is None else _uuid(value, side)
    if isinstance(value, bytes):
        return _bytes(value, side, field)
    if isinstance(value, str):
        if field == _TOKEN_ID:
            return side.tokens.names.get(value, value)
        if value == _DENIED_TEXT or _DENIED.search(value):
            return None
        value = _RANGE.sub("7-30", value)
        value = value.replace(side.node.address, "<its address>")
        value = value.replace(f"{HOST}:{side.login_port}", "<its login address>")
        value = value.replace(str(side.node.directory), "<its directory>")
        return _WORD.sub(lambda found: _word(found[0], side), value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _number(value, side, field)
    return value


def _token_times(value: Struct) -> dict[str, Any]:
    """The times of a token: exact, but for the time of the request.

    A token that is renewed was made some minutes ago: the two sides may round that differently.
    """
    for issue, expiry, end in _TOKEN_TIMES:
        issued_ms = getattr(value, issue, -1)
        if issued_ms > 0:
            expires_ms, ends_ms = getattr(value, expiry), getattr(value, end)
            found = {issue: "<issued>", end: _FOREVER}
            if ends_ms < LONG_MAX:
                found[end] = f"<issued {ends_ms - issued_ms:+d} ms>"
            return found | ({expiry: "<its end>"} if expires_ms == ends_ms else {})
    return {}


def _number(value: int, side: Side, field: str) -> Any:
    if field in _EPOCHS:
        return side.epochs.get(value, value)
    if field == "port" and value in (side.node.port, side.login_port):
        return "<its port>" if value == side.node.port else "<its login port>"
    if field == "throttle_time_ms":
        return value > 0
    if _TIMES.search(field) and value == LONG_MAX:
        return _FOREVER
    if _TIMES.search(field) and value > 0:
        minutes = (value - time.time() * 1000) / _MINUTE_MS
        return f"<now {round(minutes):+d} min>"
    return int(value)


def _bytes(value: bytes, side: Side, field: str) -> Any:
    if field == "hmac":
        return side.tokens.secret_name(value)
    return value.hex()


def _uuid(value: Uuid, side: Side) -> str:
    known = side.names.get(value)
    if known is not None:
        return known
    data = bytes(value)
    if data.startswith(MADE_UP) or not any(data[:15]):
        return uuid_to_text(value)
    return "<a new id>"


def _word(text: str, side: Side) -> str:
    for topic_id, name in side.names.items():
        if uuid_to_text(topic_id) == text:
            return name
    return side.tokens.names.get(text, text)


def canonical_records(records: list[tuple[Message, int]], side: Side) -> list[str]:
    """The records of one request as a sorted list: Kafka's order follows Java's hash maps."""
    return sorted(
        f"{type(record).__name__} v{version} {canonical(record, side)}"
        for record, version in records
    )


def differences(java: Any, quorate: Any, path: str = "") -> list[str]:
    """Where two canonical values differ, a line each."""
    if java == quorate and type(java) is type(quorate):
        return []
    if isinstance(java, dict) and isinstance(quorate, dict):
        return [
            line
            for key in sorted({*java, *quorate})
            for line in differences(java.get(key), quorate.get(key), f"{path}.{key}")
        ]
    if isinstance(java, list) and isinstance(quorate, list) and len(java) == len(quorate):
        return [
            line
            for number, (one, other) in enumerate(zip(java, quorate, strict=True))
            for line in differences(one, other, f"{path}[{number}]")
        ]
    return [f"{path}: java {java!r}, quorate {quorate!r}"]
