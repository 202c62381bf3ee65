"""How long the answers to failed logins wait."""

from quorate.server.sasl import FailureDelay


def test_a_lone_failure_waits_for_the_configured_time():
    delay = FailureDelay(100)
    assert [delay.next_s(now_ms) for now_ms in (0, 2, 500)] == [0.1, 0.1, 0.1]


def test_failures_of_one_moment_are_answered_two_milliseconds_apart():
    delay = FailureDelay(100)
    assert [delay.next_s(0) for _ in range(4)] == [0.1, 0.102, 0.104, 0.106]
    assert delay.next_s(50) == 0.1


def test_no_answer_waits_for_more_than_four_seconds_longer():
    delay = FailureDelay(100)
    assert max(delay.next_s(0) for _ in range(3_000)) == 4.1


def test_without_a_configured_delay_no_answer_waits():
    delay = FailureDelay(0)
    assert {delay.next_s(0) for _ in range(100)} == {0.0}
