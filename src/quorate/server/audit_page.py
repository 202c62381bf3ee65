"""`/audit`: the newest entries of a node's audit trail, as JSON.

Entries are numbered from 0 since the start of the process. A reader that follows the trail asks for
those that it does not have. The page is for the same readers as the metrics: it needs no login.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from itertools import islice
from typing import Final
from uuid import uuid4

from quorate.server.audit_log import AuditLog
from quorate.server.web import Page, Question

MOST_ENTRIES: Final = 1000
"""In one page: it is rendered on the node's loop."""


class AuditPage:
    """Answers `/audit?from=NUMBER&since=TIME&limit=COUNT`, the oldest of the entries first.

    from: the number of the first entry; without it, the oldest in memory
    since: only entries whose `time` is not before it, as text in the form of `time`
    limit: how many entries at most
    """

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._start = str(uuid4())

    def __call__(self, question: Question) -> Page:
        query = question.query
        try:
            first = int(query.get("from", 0))
            limit = min(int(query.get("limit", MOST_ENTRIES)), MOST_ENTRIES)
        except ValueError:
            return _json(HTTPStatus.BAD_REQUEST, {"error": "from and limit are numbers"})
        log = self._log
        oldest = log.written - len(log.recent)
        begin = min(max(first, oldest), log.written)
        entries = list(islice(log.recent, begin - oldest, begin - oldest + max(limit, 0)))
        since = query.get("since", "")
        facts = {
            "start": self._start,
            "from": begin,
            "next": begin + len(entries),
            "end": log.written,
            "entries": [entry for entry in entries if entry["time"] >= since],
        }
        return _json(HTTPStatus.OK, facts)


def _json(status: HTTPStatus, facts: dict[str, object]) -> Page:
    return Page(status, "application/json", json.dumps(facts).encode() + b"\n")
