"""`meta.properties`: which cluster and node a log directory belongs to.

Java properties text as `java.util.Properties.store` writes it (`MetaProperties`,
`PropertiesUtils`): a comment line with the date, then the keys in the order of Java's hash table.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Uuid, uuid_from_text, uuid_to_text
from quorate.formats.errors import FormatError, NewerFileError
from quorate.formats.files import META_PROPERTIES
from quorate.formats.properties import PropertiesError, load_properties

_HASH_ORDER: Final = ("node.id", "broker.id", "directory.id", "version", "cluster.id")
MEMBERS_VERSION: Final = "quorate.embed"
"""Of the file in a member's directory: Kafka's controller refuses a version that is no number."""
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_ESCAPES: Final = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"} | {
    char: "\\" + char for char in "\\=:#!"
}

HOW_TO_REPAIR: Final = (
    ". Put the file back as it was: version=1, and cluster.id, node.id and directory.id as the "
    "rest of the quorum knows this node ('metadata-quorum describe --replication')"
)


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """Version 1 always has cluster and node id; version 0 (before KRaft) may lack any."""

    version: int = 1
    cluster_id: str | None = None
    node_id: int | None = None
    directory_id: Uuid | None = None
    """None where an older Kafka wrote the file: one is then made up at start."""
    member: bool = False
    """The log is that of a program's own state machine (`quorate.embed`), and not of a cluster's
    metadata."""

    def __post_init__(self) -> None:
        if self.version == 1 and (self.cluster_id is None or self.node_id is None):
            raise ValueError("version 1 needs a cluster id and a node id")


def encode_meta_properties(meta: MetaProperties, written_at_ms: int) -> bytes:
    """The file's bytes; `written_at_ms` (since 1970, UTC) is the date in its comment."""
    known = {
        "version": MEMBERS_VERSION if meta.member else str(meta.version),
        "cluster.id": meta.cluster_id,
        "node.id" if meta.version else "broker.id": meta.node_id,
        "directory.id": None if meta.directory_id is None else uuid_to_text(meta.directory_id),
    }
    lines = ["#", f"#{_java_date(written_at_ms)}"]
    for key in _HASH_ORDER:
        value = known.get(key)
        if value is not None:
            lines.append(f"{key}={_escape(str(value))}")
    return "".join(line + "\n" for line in lines).encode()


def decode_meta_properties(data: bytes, where: str = META_PROPERTIES) -> MetaProperties:
    """Read the file; raises FormatError that names the key which is missing or wrong, and
    NewerFileError for a later version."""
    properties = _parse(data, where)
    text = properties.get("version", "0")
    member = text == MEMBERS_VERSION
    version = 1 if member else _integer(text, "version", where)
    if version not in (0, 1):
        raise (NewerFileError if version > 1 else FormatError)(
            f"{where}: version {version} is not supported, only 0 and 1: a newer release wrote "
            "it. Run that one; or if 'version' was damaged, put back the file, which says version=1"
        )
    id_key = "node.id" if version else "broker.id"
    for key in ("cluster.id", id_key) if version else ():
        if key not in properties:
            raise FormatError(f"{where}: {key} was not found{HOW_TO_REPAIR}")
    node_id = properties.get(id_key)
    directory_id = properties.get("directory.id")
    return MetaProperties(
        version,
        properties.get("cluster.id"),
        None if node_id is None else _integer(node_id, id_key, where),
        None if directory_id is None else _uuid(directory_id, where),
        member,
    )


def _parse(data: bytes, where: str) -> dict[str, str]:
    try:
        return {key: found.value for key, found in load_properties(data).items()}
    except PropertiesError as error:
        reason = f"{error} (line {error.line}, column {error.column})"
        raise FormatError(f"{where}: not a properties file: {reason}{HOW_TO_REPAIR}") from None


def _integer(text: str, key: str, where: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        raise FormatError(f"{where}: {key}={text} is not a whole number{HOW_TO_REPAIR}")
    return int(text)


def _uuid(text: str, where: str) -> Uuid:
    try:
        return uuid_from_text(text)
    except QuorateError as error:
        raise FormatError(f"{where}: directory.id: {error}{HOW_TO_REPAIR}") from None


def _escape(value: str) -> str:
    escaped = "".join(_ESCAPES.get(char, char) for char in value)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _java_date(ms: int) -> str:
    at = time.gmtime(ms // 1000)
    return (
        f"{_DAYS[at.tm_wday]} {_MONTHS[at.tm_mon - 1]} {at.tm_mday:02d} "
        f"{at.tm_hour:02d}:{at.tm_min:02d}:{at.tm_sec:02d} UTC {at.tm_year:04d}"
    )


def wrong_kind_message(directory: str, meta: MetaProperties) -> str:
    """The error message for a controller that opens a member's directory, or the reverse."""
    if meta.member:
        return (
            f"{directory} is the directory of a member (quorate.embed), and not a controller's: "
            "run it with the program that it belongs to; for a controller, format another one"
        )
    return (
        f"{directory} is a controller's directory: run it with `quorate server-start`; a member's "
        "is made with quorate.embed.create"
    )
