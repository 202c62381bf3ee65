"""The outcome of a voter change, given the responses to its attempts."""

import asyncio

import pytest

from quorate.base.errors import ErrorCode
from quorate.embed import (
    InDoubtError,
    MembershipChangeError,
    MemberStoppedError,
    NotLeaderError,
    membership,
)

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

    asyncio.run(membership.change_until_committed(ask, already, timeout_s))
    assert not rest


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(membership, "_PAUSE_S", 0)


def test_a_change_committed_at_once_or_later_succeeds():
    carried_through((ErrorCode.NONE, None))
    carried_through(NO_TIME, NO_TIME, (ErrorCode.NONE, None))


def test_a_refusal_after_a_timed_out_attempt_may_mean_success():
    carried_through(NO_TIME, REFUSED)
    with pytest.raises(MembershipChangeError, match="no such voter"):
        carried_through(REFUSED)


@pytest.mark.parametrize("lost", [NotLeaderError(-1, None), MemberStoppedError("stopped")])
def test_not_leader_is_certain_only_without_a_timed_out_attempt(lost):
    with pytest.raises(type(lost)):
        carried_through(lost)
    with pytest.raises(InDoubtError, match="may or may not commit"):
        carried_through(NO_TIME, lost)


def test_a_refused_attempt_did_not_make_the_change():
    carried_through(BUSY, (ErrorCode.NONE, None))
    with pytest.raises(MembershipChangeError, match="no such voter"):
        carried_through(BUSY, REFUSED)
    with pytest.raises(NotLeaderError):
        carried_through(BUSY, NotLeaderError(-1, None))


def test_the_timeout_raises_a_retriable_error():
    with pytest.raises(MembershipChangeError) as failed:
        carried_through(NO_TIME, timeout_s=0)
    assert failed.value.retriable
