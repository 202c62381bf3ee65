"""Every world that a seed draws can make progress once its faults are off."""

from __future__ import annotations

from quorate.sim.plan.draw import draw
from quorate.sim.run.run import run_seed


def test_timeouts_leave_time_for_an_answer() -> None:
    for seed in range(300):
        plan = draw(seed)
        answer_ms = 2 * (plan.network.delay_us + plan.network.jitter_us) // 1000
        timing = plan.timing
        assert timing.request_timeout_ms > timing.fetch_max_wait_ms + answer_ms, seed
        assert timing.fetch_timeout_ms > timing.fetch_max_wait_ms + answer_ms, seed
        assert timing.election_timeout_ms > 2 * answer_ms, seed


def test_a_long_poll_longer_than_the_request_timeout() -> None:
    """Each leader's fetches timed out, so that voters deposed each other without end."""
    assert run_seed(4125).failure is None
