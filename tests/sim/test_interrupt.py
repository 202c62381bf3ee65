"""Ctrl-C ends a world between two of its events."""

from __future__ import annotations

import signal
import subprocess
import sys
from threading import Thread

import pytest

from quorate.sim.explore.search import Search
from quorate.sim.explore.setups import SETUPS
from quorate.sim.plan.plan import Plan
from quorate.sim.run.run import run_plan
from quorate.sim.world.interrupt import HALT, deferred
from quorate.sim.world.observer import Observer

pytestmark = pytest.mark.usefixtures("default_interrupt")


class Interrupts(Observer):
    """Ctrl-C comes at the fourth step, when all three replicas have begun; counts steps."""

    def __init__(self) -> None:
        self.steps = 0

    def stepped(self, *_: object) -> None:
        self.steps += 1
        if self.steps == 4:
            signal.raise_signal(signal.SIGINT)


def test_a_world_ends_after_the_event_in_which_it_was_interrupted() -> None:
    seen = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        run_plan(Plan(voters=3, duration_ms=1000), [seen])
    assert seen.steps == 4
    assert not HALT.wanted and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_exploration_ends_between_two_states() -> None:
    with pytest.raises(KeyboardInterrupt):
        Search(SETUPS["election"]).run(9, lambda level: signal.raise_signal(signal.SIGINT))


def test_an_unread_interrupt_is_raised_at_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), deferred():
        signal.raise_signal(signal.SIGINT)


def test_a_program_with_its_own_signal_handlers_keeps_them() -> None:
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with deferred():
            signal.raise_signal(signal.SIGINT)
            assert heard == [1]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_world_runs_in_any_thread() -> None:
    ended = []
    thread = Thread(target=lambda: ended.append(run_plan(Plan(voters=1, duration_ms=100))))
    thread.start()
    thread.join()
    assert ended[0].failure is None


LONG_RUNNING_WORLD = """
from quorate.sim.plan.draw import draw
from quorate.sim.world.observer import Observer
from quorate.sim.run.run import checked, run_plan


class Interrupter(Observer):
    is_interrupted = False

    def stepped(self, process, happened, effects):
        if not self.is_interrupted and process.world.now_us > {minutes} * 60_000_000:
            self.is_interrupted = True
            print("late", flush=True)


try:
    run_plan(draw(269), [Interrupter(), *checked()])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [20, 30, 60, 90, 120])
def test_a_long_running_world_is_interrupted_and_not_aborted(minutes: int) -> None:
    """Its times are large numbers: compiled code often took the interrupt for want of memory."""
    command = [sys.executable, "-c", LONG_RUNNING_WORLD.format(minutes=minutes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "late\n"
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
    assert (process.returncode, said) == (0, "interrupted\n")
