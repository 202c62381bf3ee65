"""What the outcome of a voter change is, by the answers to its attempts."""

import asyncio

import pytest

from quorate.base.errors import ErrorCode
from quorate.embed import ChangeFailed, InDoubt, MemberStopped, NotLeader, membership

NO_TIME = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT.message)
BUSY = (ErrorCode.REQUEST_TIMED_OUT, "another change is under way")
REFUSED = (ErrorCode.VOTER_NOT_FOUND, "no such voter")


def carried_through(*answers, timeout_s=60.0):
    """The outcome where the attempts are answered like this."""
    rest = list(answers)

    async def ask():
        answer = rest.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def already(error, again):
        return again and error == ErrorCode.VOTER_NOT_FOUND

    asyncio.run(membership.carry_through(ask, already, timeout_s))
    assert not rest


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(membership, "_PAUSE_S", 0)


def test_what_is_committed_at_once_or_later_is_done():
    carried_through((ErrorCode.NONE, None))
    carried_through(NO_TIME, NO_TIME, (ErrorCode.NONE, None))


def test_a_refusal_after_an_attempt_that_timed_out_may_say_that_it_is_done():
    carried_through(NO_TIME, REFUSED)
    with pytest.raises(ChangeFailed, match="no such voter"):
        carried_through(REFUSED)


@pytest.mark.parametrize("lost", [NotLeader(-1, None), MemberStopped("stopped")])
def test_nothing_was_changed_only_where_no_attempt_timed_out(lost):
    with pytest.raises(type(lost)):
        carried_through(lost)
    with pytest.raises(InDoubt, match="may or may not commit"):
        carried_through(NO_TIME, lost)


def test_what_was_refused_for_now_was_not_made_by_that_attempt():
    carried_through(BUSY, (ErrorCode.NONE, None))
    with pytest.raises(ChangeFailed, match="no such voter"):
        carried_through(BUSY, REFUSED)
    with pytest.raises(NotLeader):
        carried_through(BUSY, NotLeader(-1, None))


def test_when_the_time_is_over_it_failed_for_now():
    with pytest.raises(ChangeFailed) as failed:
        carried_through(NO_TIME, timeout_s=0)
    assert failed.value.retriable
