"""Plans: drawn from seeds, written as text, read back."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import blake2b

import pytest

from quorate.sim.plan import draw as module
from quorate.sim.plan.draw import draw
from quorate.sim.plan.draw_membership import since_format_7
from quorate.sim.plan.plan import (
    FAULT_EVENTS,
    OPERATIONS,
    ClockPlan,
    FaultEvent,
    Plan,
    PlanError,
    TimingPlan,
)
from quorate.sim.plan.text import RENAMED, parse_plan, plan_text
from quorate.sim.prng import Prng

SEEDS = range(300)


def test_a_seed_always_draws_the_same_plan() -> None:
    """Pinned: another version of Python, or a careless change of the swarm, would show here.

    Who changes what seeds draw on purpose writes the new value, and says so in the change.
    """
    assert blake2b(first_plans().encode(), digest_size=8).hexdigest() == "cdb56eda65a675f6"


def first_plans() -> str:
    """Of the first seeds, with the names of the earlier releases in which the hashes were pinned."""
    text = "".join(plan_text(draw(seed)) for seed in range(50))
    for old, new in RENAMED.items():
        text = text.replace(new, old)
    return text


def undo(monkeypatch: pytest.MonkeyPatch, *formats: str) -> None:
    """Draw without what these formats added."""
    monkeypatch.setattr(module, "_ROLLED_BACK", 0.0)
    for name in formats:
        monkeypatch.setattr(module, name, lambda seed, plan, *_: plan)


def hash_without(format_: int, *settings: str) -> str:
    """Of the first plans as the format before had them, which knew nothing of these settings."""
    text = first_plans()
    for line in (*settings, "disk.index_interval 4096", "timing.retry_backoff_max_ms 0"):
        text = text.replace(f"{line}\n", "")
    text = text.replace("format 9\n", f"format {format_ - 1}\n")
    return blake2b(text.encode(), digest_size=8).hexdigest()


def test_format_8_leaves_the_earlier_draws_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    undo(monkeypatch, "since_format_8")
    assert hash_without(8) == "337fb629fc28dc02"


def test_format_7_leaves_the_earlier_draws_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    undo(monkeypatch, "since_format_8", "since_format_7")
    assert hash_without(7, "listeners 1", "disk.byte_us 0") == "4f8635adf08f81b7"


def test_format_6_leaves_the_earlier_draws_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    undo(monkeypatch, "since_format_8", "since_format_7", "_since_format_6")
    assert hash_without(6, "listeners 1", "disk.byte_us 0") == "973f8daaf226cb23"


def test_every_rare_fault_event_is_drawn_within_the_world() -> None:
    for seed in SEEDS:
        plan = draw(seed)
        assert all(fault_event.at_ms < plan.duration_ms for fault_event in plan.fault_events), seed


def test_the_text_holds_the_whole_plan() -> None:
    for seed in SEEDS:
        plan = draw(seed)
        assert parse_plan(plan_text(plan)) == plan


def test_a_short_text_holds_what_differs_from_the_defaults() -> None:
    for seed in SEEDS:
        plan = draw(seed)
        assert parse_plan(plan_text(plan, short=True)) == plan
    assert plan_text(Plan(), short=True) == "format 9\nseed 0\nvoters 3\nduration_ms 10000\nend\n"


def test_a_plan_of_format_1_is_one_of_today_without_what_is_new() -> None:
    assert parse_plan("format 1\nseed 7\n") == Plan(seed=7)


def test_a_plan_that_was_cut_off_anywhere_is_refused() -> None:
    text = plan_text(draw(8), short=True)
    assert parse_plan(text[:-1]) == draw(8) and text.endswith("\nend\n")
    for length in range(len("format 8\n"), len(text) - 1):
        with pytest.raises(PlanError, match=r"line \d+: "):
            parse_plan(text[:length])


def test_a_plan_of_format_5_has_its_end_and_no_fault_event_behind_it() -> None:
    """It is one of today, which has nothing that it did not name."""
    assert parse_plan("format 5\nseed 7\nend\n") == Plan(seed=7)
    with pytest.raises(PlanError, match="line 2: the plan is cut off here"):
        parse_plan("format 5\nseed 7\n")
    with pytest.raises(PlanError, match=r"line 2: .* is never done"):
        parse_plan("format 5\nat 10000 upgrade\nend\n")


def test_a_plan_of_format_7_has_its_end() -> None:
    assert parse_plan("format 7\nseed 7\nend\n") == Plan(seed=7)
    with pytest.raises(PlanError, match="line 2: the plan is cut off here"):
        parse_plan("format 7\nseed 7\n")


def test_a_plan_of_format_6_has_nothing_of_later_formats() -> None:
    assert parse_plan("format 6\nseed 7\nend\n") == Plan(seed=7)
    assert (Plan().listeners, Plan().disk.byte_us) == (1, 0)
    with pytest.raises(PlanError, match="line 2: the plan is cut off here"):
        parse_plan("format 6\nseed 7\n")


@pytest.mark.parametrize("drift", [0, 50_000, 500_000])
def test_a_request_outlasts_the_answer_that_waits_by_the_slowest_clock(drift: int) -> None:
    timing = TimingPlan(fetch_max_wait_ms=600, request_timeout_ms=602, fetch_timeout_ms=603)
    plan = since_format_7(1, Plan(timing=timing, clock=ClockPlan(drift)), 1)
    waits = 600 * 1_000_000 / (1_000_000 - drift)
    for timeout in (plan.timing.request_timeout_ms, plan.timing.fetch_timeout_ms):
        assert timeout * 1_000_000 / (1_000_000 + drift) > waits
    if drift == 0:
        assert plan.timing == timing


def test_plans_of_earlier_releases_have_other_names() -> None:
    old = "at 5 stranger from=1 to=2 period_ms=50 times=3\nat 6 err node=1 how=remove-stranger\n"
    new = "at 5 foreign-cluster from=1 to=2 period_ms=50 times=3\nat 6 err node=1 how=remove-unknown\n"
    plan = parse_plan(f"format 4\nseed 7\n{old}")
    assert plan == parse_plan(f"format 4\nseed 7\n{new}")
    assert new in plan_text(plan)


def test_plans_before_format_5_have_no_end() -> None:
    assert parse_plan("format 4\nseed 7\n# as it was\n") == Plan(seed=7)
    assert parse_plan("seed 7\nend # of it\n\n# really\n") == Plan(seed=7)


def test_the_tail_of_format_2_was_another_one() -> None:
    """It decided nothing, so a plan that names it runs as it did."""
    assert parse_plan("format 2\nseed 7\ndisk.tail_bytes 0\n") == Plan(seed=7)
    assert parse_plan("format 3\ndisk.tail_bytes 300\n").disk.tail_bytes == 300


def test_operations_of_a_disk_have_names() -> None:
    plan = parse_plan("at 7 crash-inside node=leader what=roll step=3")
    assert plan.fault_events == (FaultEvent(7, "crash-inside", (0, OPERATIONS.index("roll"), 3)),)
    assert str(plan.fault_events[0]) == "at 7 crash-inside node=leader what=roll step=3"


def test_one_world_in_four_has_the_fault_events_of_eight() -> None:
    counts = sorted(len(draw(seed).fault_events) for seed in SEEDS)
    quarter = len(SEEDS) // 4
    assert sum(counts[-quarter:]) > sum(counts[:-quarter])
    assert 25 < counts[-quarter // 2] < 160 and counts[len(SEEDS) // 2] < 25


def test_a_node_named_twice_is_one_node() -> None:
    plan = parse_plan("at 7 partition nodes=2,2 for_ms=9")
    assert plan.fault_events == (FaultEvent(7, "partition", (4, 9)),)


def test_every_kind_of_fault_event_is_drawn() -> None:
    drawn = {fault_event.kind for seed in SEEDS for fault_event in draw(seed).fault_events}
    assert drawn == set(FAULT_EVENTS)


def test_settings_left_out_have_their_defaults() -> None:
    plan = parse_plan(
        "# a small world\nvoters 1\n\nat 100 kill node=leader down_ms=5 # now\n"
        "at 7 partition nodes=0,1 for_ms=9\n"
    )
    fault_events = (FaultEvent(100, "kill", (0, 5)), FaultEvent(7, "partition", (3, 9)))
    assert plan == Plan(voters=1, fault_events=fault_events)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "format 10\ncolour 3",
            "1: this plan is of format 10, and this version runs formats 1, 2, 3, 4, 5, 6, 7, 8, 9",
        ),
        ("at 5 crash-inside node=1 what=x step=3", "no operation 'x', but truncate, roll"),
        ("voters", "line 1: a setting is a name and a value"),
        ("\nvoters x", "line 2: 'x' is no number"),
        ("colour 3", "no setting 'colour'"),
        ("network.colour 3", "no setting 'network.colour'"),
        ("network 3", "no setting 'network'"),
        ("voters 3\nvoters 3", "line 2: 'voters' is set twice"),
        ("static maybe", "neither yes nor no"),
        ("network.loss 1.5", "no probability"),
        ("network.loss nan", "no probability"),
        ("network.loss much", "'much' is no number"),
        ("network.delay_us -1", "negative"),
        ("seed 99999999999999999999", "too large"),
        ("at -5 reset node=1", "negative"),
        ("at 5 partition nodes=1,99999999999 for_ms=3", "no node 99999999999"),
        ("at 5 partition nodes= for_ms=3", "'' is no number"),
        ("voters 8", "1 to 7 voters"),
        ("young 2,3\nold 1,2\nvoters 3", "line 2: node 2 is old and young"),
        ("at 5 explode node=1", "no fault event 'explode'"),
        ("at 5", "a fault event is"),
        ("at soon kill node=1 down_ms=5", "'soon' is no number"),
        ("at 5 kill node=1", "'kill' takes node= down_ms="),
        ("at 5 kill down_ms=5 node=1", "'kill' takes node= down_ms="),
        ("at 5 kill node=4 down_ms=5", "there is no node 4"),
        ("at 5 cut from=0 to=1 for_ms=5", "there is no node 0"),
        ("\nclients.think_ms 0", "line 2: clients.think_ms is from 1 to 3600000, and not 0"),
        ("\nclients.timeout_ms 0", "line 2: clients.timeout_ms is from 1"),
        ("\n\nclients.keys 0", "line 3: clients.keys is from 1"),
        ("disk.slice_bytes 0", "line 1: disk.slice_bytes is from 1"),
        ("timing.fetch_timeout_ms 0", "line 1: timing.fetch_timeout_ms is from 10 to"),
        ("duration_ms 999999999999", "line 1: duration_ms is from 1 to 86400000, and not"),
        ("voters 2\nduration_ms 0", "line 2: duration_ms is from 1"),
        (
            "duration_ms 500\nat 99999 kill node=1 down_ms=3",
            "line 2: 'at 99999 kill node=1 down_ms=3' is never done: all faults end at 500 ms",
        ),
        ("at 5 flap nodes=1 period_ms=0 times=3", "line 1: period_ms is from 1 to .*'at 5 flap"),
        ("\nat 5 kill node=9 down_ms=1", "line 2: there is no node 9"),
        ("\nlimits.batch_bytes 1", "line 2: limits.batch_bytes is at least 261, and not 1: so"),
        (
            "clients.lists 5\nlimits.batch_bytes 1060\n",
            "line 2: limits.batch_bytes is at least 1061, and not 1060",
        ),
        ("listeners 3", "line 1: listeners is from 1 to 2, and not 3"),
        ("timing.fetch_max_bytes 1000000000000", "line 1: timing.fetch_max_bytes is from 1 to 21"),
        ("timing.snapshot_max_bytes 9999999999", "line 1: timing.snapshot_max_bytes is from 1"),
        ("clients.lists 0", "line 1: clients.lists is from 1 to 1000"),
        ("limits.caught_up_within_ms 0", "line 1: limits.caught_up_within_ms is from 1"),
        ("\nclock.drift_ppm 1000000", "line 2: clock.drift_ppm is from 0 to 500000, and not"),
        ("format 5\n\nvoters 1\n", "line 3: the plan is cut off here: its last line is 'end'"),
        ("voters 1\nend\n\nat 5 reset node=1", "line 4: the plan has ended before: 'at 5 reset"),
        ("end\nend", "line 2: the plan has ended before"),
        ("end 5", "line 1: there is no setting 'end'"),
        ("colour  3", "line 1: there is no setting 'colour': 'colour  3'$"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        parse_plan(text)


# -- random numbers --------------------------------------------------------------------------------------
def test_streams_of_the_prng_are_independent() -> None:
    one, other = Prng(1, "link", 1, 2), Prng(1, "link", 2, 1)
    assert [one.random() for _ in range(3)] != [other.random() for _ in range(3)]
    again = Prng(1, "link", 1, 2)
    one = Prng(1, "link", 1, 2)
    for _ in range(100):
        other.random()
    assert [one.below(1000) for _ in range(5)] == [again.below(1000) for _ in range(5)]


def test_the_prng_keeps_to_its_bounds() -> None:
    rng = Prng(3, "bounds")
    assert {rng.between(2, 4) for _ in range(200)} == {2, 3, 4}
    assert {rng.skewed(0, 2) for _ in range(500)} == {0, 1, 2}
    assert {rng.pick("ab") for _ in range(50)} == {"a", "b"}
    assert sorted(rng.shuffled(range(9))) == list(range(9))
    assert not rng.happens(0.0) and rng.happens(1.0)
    assert len(rng.bytes(16)) == 16


def test_the_swarm_draws_only_from_its_seed() -> None:
    """In another process with another hash seed the same plan is drawn."""
    code = "from quorate.sim.plan.text import plan_text; from quorate.sim.plan.draw import draw\n"
    code += "print(plan_text(draw(77)), end='')"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": "99"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == plan_text(draw(77))
