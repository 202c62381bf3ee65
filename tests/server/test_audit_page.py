"""`/audit`: the entries in a node's memory, by number."""

import json

import pytest

from quorate.server.audit_log import AuditLog
from quorate.server.audit_page import AuditPage
from quorate.server.web import Question
from server.test_audit_log import numbered, numbers


def ask(page, **query):
    found = page(Question({}, {name.rstrip("_"): str(value) for name, value in query.items()}))
    return found.status, json.loads(found.body)


@pytest.fixture
def page(tmp_path):
    """Entries 0 to 9, one a second; the last 5 are in memory."""
    log = AuditLog(tmp_path, 10_000, 2, entries=5)
    for number in range(10):
        log.write(numbered(number, number), 1, 1, number * 1000)
    return AuditPage(log)


@pytest.mark.parametrize(
    ("query", "entries", "facts"),
    [
        ({}, [5, 6, 7, 8, 9], (5, 10)),
        ({"from_": 7}, [7, 8, 9], (7, 10)),
        ({"from_": 6, "limit": 2}, [6, 7], (6, 8)),
        ({"limit": 0}, [], (5, 5)),
        ({"limit": -1}, [], (5, 5)),
        ({"from_": 10}, [], (10, 10)),
        ({"from_": 99}, [], (10, 10)),
        ({"from_": -9}, [5, 6, 7, 8, 9], (5, 10)),
        ({"since": "1970-01-01T00:00:08.000+00:00"}, [8, 9], (5, 10)),
    ],
)
def test_entries_are_given_by_number_the_oldest_first(page, query, entries, facts):
    status, found = ask(page, **query)
    assert (status, numbers(found["entries"])) == (200, entries)
    assert (found["from"], found["next"], found["end"]) == (*facts, 10)


def test_each_process_has_a_name_of_its_own(page):
    assert ask(page)[1]["start"] == ask(page)[1]["start"] != ask(AuditPage(page._log))[1]["start"]


def test_a_number_that_is_none_is_refused(page):
    assert ask(page, from_="x") == (400, {"error": "from and limit are numbers"})
