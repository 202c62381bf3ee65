"""How long events take: slow ones are named, and each period has a report."""

from dataclasses import replace
from random import Random

import pytest

from conformance.marker import kafka_scenario
from quorate.base.notes import Fault
from quorate.controller.activation import NO_OP
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.counts import ControllerCounts
from quorate.controller.event_durations import EventDurations
from quorate.controller.head import Head
from quorate.controller.liveness import Liveness
from quorate.controller.performance import REPORT_PERFORMANCE
from quorate.node.write_queue import WriteQueue
from quorate.raft.values import ControlState
from quorate.replica.proposals import Committed, Submit

MS = 1_000_000


@kafka_scenario("EventPerformanceMonitorTest", "defaultPeriodNs", "slowestEventWithNoEvents")
def test_a_period_is_a_minute_and_begins_without_events():
    durations = EventDurations()
    assert (durations.period_ms, durations.threshold_ms) == (60_000, 2_000)
    assert (durations.slowest, durations.slowest_ns) == (None, 0)
    config = ControllerConfig(1, "cluster")
    assert (config.performance_period_ms, config.slow_event_ms) == (60_000, 2_000)


@kafka_scenario("EventPerformanceMonitorTest", "slowestEventWithThreeEvents")
def test_the_slowest_event_is_kept():
    durations = EventDurations()
    for name, took_ms in (("fast", 2), ("slow", 100), ("middling", 50)):
        durations.observe(name, took_ms * MS)
    assert (durations.slowest, durations.slowest_ns) == ("slow", 100 * MS)


@kafka_scenario("EventPerformanceMonitorTest", "logSlowEvent", "doNotLogFastEvent")
def test_an_event_is_slow_from_the_threshold_on():
    durations = EventDurations(threshold_ms=250)
    assert durations.observe("event", 250 * MS - 1) is None
    said = "Exceptionally slow controller event event took 250 ms."
    assert durations.observe("event", 250 * MS) == said


@kafka_scenario(
    "EventPerformanceMonitorTest",
    "formatNsAsDecimalMsWithZero",
    "formatNsAsDecimalMsWith100",
    "formatNsAsDecimalMsWith123456789",
    "periodicPerformanceMessageWithOneEvent",
)
@pytest.mark.parametrize(
    ("took_ns", "text"), [(0, "0.00"), (100 * MS, "100.00"), (123_456_789, "123.46")]
)
def test_the_report_has_milliseconds_with_two_digits(took_ns, text):
    durations = EventDurations()
    durations.observe("myEvent", took_ns)
    assert durations.report() == (
        "In the last 60000 ms period, 1 controller events were completed, which took an average of "
        f"{text} ms each. The slowest event was myEvent, which took {text} ms."
    )


@kafka_scenario(
    "EventPerformanceMonitorTest",
    "periodicPerformanceMessageWithNoEvents",
    "periodicPerformanceMessageWithThreeEvents",
    "generatePeriodicPerformanceMessageResetsState",
)
def test_a_report_begins_the_next_period():
    durations = EventDurations(period_ms=5_000)
    for name, took_ms in (("a", 12), ("b", 19), ("c", 1)):
        durations.observe(name, took_ms * MS)
    assert durations.report() == (
        "In the last 5000 ms period, 3 controller events were completed, which took an average of "
        "10.67 ms each. The slowest event was b, which took 19.00 ms."
    )
    said = "In the last 5000 ms period, there were no controller events completed."
    assert durations.report() == durations.report() == said


class Clock:
    """Goes on by 3 ms each time that it is read."""

    now_ns = 0

    def __call__(self):
        self.now_ns += 3 * MS
        return self.now_ns


def test_the_active_controller_reports_the_writes_that_it_decided():
    """From the decision to the response."""
    counts = ControllerCounts(durations=EventDurations(threshold_ms=1))
    context = Context(
        ControllerConfig(1, "cluster"), ControlState(1, ()), 0, Random(1), Liveness(9_000)
    )
    context = replace(context, counts=counts)
    queue = WriteQueue(
        Head(), Liveness(9_000), 1 << 20, lambda call: context, lambda: 1, counts, Clock()
    )
    queue.add(NO_OP, None, None, 0)
    assert counts.durations.count == 0, "a node that is not active decides nothing"
    assert queue.leadership_changed(5)
    queue.add(NO_OP, None, None, 0)
    [part] = queue.inputs
    assert isinstance(part, Submit)
    queue.settle(Committed(part.token, 0, 1))
    assert (counts.durations.count, counts.durations.slowest) == (1, NO_OP.name)
    [slow] = queue.out.notes
    assert isinstance(slow, Fault) and slow.startswith("Exceptionally slow controller event ")
    queue.out.notes.clear()
    queue.add(REPORT_PERFORMANCE, None, None, 0)
    assert "1 controller events were completed" in queue.out.notes[0]
