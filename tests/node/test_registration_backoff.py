"""When a controller asks to be registered, and how long it waits after each outcome.

As Kafka's `ControllerRegistrationManager`: one request at a time, and after failures 100 ms, doubled each
time, up to 120 s.
"""

from types import SimpleNamespace

import pytest

from quorate.base.ids import Address, Listener, Uuid
from quorate.node.registration import Registrant, Registration
from quorate.replica.state_machine import Now

MINE, OTHER = Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2")
LEADER, NEXT = (2, Address("b", 2)), (3, Address("c", 3))


def image(incarnation=None, registers=True):
    """What is registered for node 1, at a metadata.version that knows registrations or not."""
    known = SimpleNamespace(incarnation_id=incarnation)
    controllers = {} if incarnation is None else {1: known}
    version = SimpleNamespace(controller_registration=registers)
    return SimpleNamespace(
        features=SimpleNamespace(metadata_version=version),
        cluster=SimpleNamespace(controllers=controllers),
    )


class Clock:
    """A registration of node 1, polled at times that the test sets."""

    def __init__(self):
        self.registration = Registration(Registrant(1, MINE, (Listener("C", "a", 1),)))
        self.ms = 1000

    def poll(self, found=None, leader=LEADER):
        return self.registration.poll(found or image(), leader, Now(self.ms, 0))

    def done(self, succeeded):
        self.registration.done(succeeded, Now(self.ms, 0))

    def asked_after(self, found=None, leader=LEADER):
        """Let the time pass to the next request; how long that takes."""
        began = self.ms
        assert self.poll(found, leader) is None
        wake = self.registration.wake_at_ms
        assert wake is not None and wake > began
        self.ms = wake - 1
        assert self.poll(found, leader) is None and self.registration.wake_at_ms == wake
        self.ms = wake
        assert self.poll(found, leader) is not None
        return self.ms - began


def asking():
    """It waits 100 ms for the first leader, and has asked it."""
    clock = Clock()
    assert clock.asked_after() == 100
    return clock


def test_one_request_at_a_time():
    clock = asking()
    clock.ms += 10_000_000
    assert clock.poll() is None and clock.registration.wake_at_ms is None


def test_each_failure_doubles_the_wait_up_to_two_minutes():
    clock, waits = asking(), []
    for _ in range(13):
        clock.done(False)
        waits.append(clock.asked_after())
    assert waits[:4] == [100, 200, 400, 800]
    assert waits[-3:] == [102_400, 120_000, 120_000]


def test_a_success_ends_the_doubling():
    clock = asking()
    for _ in range(3):
        clock.done(False)
        clock.asked_after()
    clock.done(True)
    assert clock.asked_after() == 5_000, "the record may be on its way"
    clock.done(False)
    assert clock.asked_after() == 100


def test_a_new_leader_is_asked_after_100_ms_and_not_before_the_backoff_ends():
    clock = asking()
    for _ in range(3):
        clock.done(False)
        clock.asked_after()
    clock.done(False)
    assert clock.asked_after(leader=NEXT) == 800
    clock.done(True)
    clock.ms += 5_000
    assert clock.poll(leader=None) is None
    assert clock.asked_after(leader=LEADER) == 100


def test_a_late_answer_of_the_former_leader_frees_the_next_request():
    """The request to the former leader is still open: nobody else is asked meanwhile."""
    clock = asking()
    assert clock.poll(leader=NEXT) is None and clock.registration.wake_at_ms is None
    clock.ms += 3_000
    assert clock.poll(leader=NEXT) is None
    clock.done(False)
    assert clock.asked_after(leader=NEXT) == 100


def test_nothing_is_asked_where_nothing_is_to_be_registered():
    clock = Clock()
    clock.poll(leader=LEADER)
    clock.ms += 100
    assert clock.poll(image(MINE)) is None and clock.registration.wake_at_ms is None
    assert clock.poll(image(registers=False)) is None
    assert clock.poll(leader=None) is None
    assert clock.asked_after(image(OTHER)) == 100, "an earlier start of this node is registered"


@pytest.mark.parametrize(("found", "waits"), [(image(), 0), (image(OTHER), 4_900)])
def test_a_removed_registration_is_asked_for_at_once_a_replaced_one_waits(found, waits):
    clock = asking()
    clock.done(True)
    clock.ms += 100
    assert clock.poll(image(MINE)) is None
    if waits:
        assert clock.asked_after(found) == waits
    else:
        assert clock.poll(found) is not None
