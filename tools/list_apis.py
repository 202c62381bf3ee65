"""Write the table of APIs as a page: `python tools/list_apis.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from quorate.node.api_row import KIB, AclRule, ApiRow
from quorate.node.apis import ROWS
from quorate.wire.registry import CONTROLLER_API_VERSIONS

PAGE: Final = Path(__file__).resolve().parents[1] / "docs/apis.md"
_HEAD: Final = """# The APIs that a controller serves

Made from the one table of APIs, `node/apis.py`, by `python tools/list_apis.py`.

The raft core answers a *raft* request. Any node answers a *read* from its committed image. The active
controller answers a *write* when its records are committed. *Connection* requests are about
the connection itself. *Forwardable*: a broker may pass the request on in an Envelope. The
*permission* is the one that an authorizer asks for.

| key | API | versions | kind | forwardable | size limit, KiB | permission |
|---|---|---|---|---|---|---|
"""


def page() -> str:
    return _HEAD + "".join(f"| {' | '.join(_cells(row))} |\n" for row in ROWS)


def _cells(row: ApiRow) -> tuple[str, ...]:
    low, high = CONTROLLER_API_VERSIONS[row.key]
    acl = row.acl
    return (
        str(row.key),
        row.name,
        str(low) if low == high else f"{low}-{high}",
        row.kind.value,
        "yes" if row.forwardable else "",
        str(row.max_bytes // KIB),
        "" if acl is None else f"{acl.operation.name} on {_guarded(acl)}",
    )


def _guarded(acl: AclRule) -> str:
    return "each resource" if acl.resource is None else acl.resource.name


if __name__ == "__main__":
    PAGE.write_text(page())
