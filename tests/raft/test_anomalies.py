"""A voter that is not one node with one disk: what the leader says of it, and how often."""

from __future__ import annotations

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener
from quorate.base.notes import Warn
from quorate.raft.anomalies import REPORT_INTERVAL_MS, Anomalies
from quorate.raft.messages import UpdateVoterRequest
from quorate.sim.scenario.names import key, listeners, voter
from raft.single import EPOCH, Single, fetch
from raft.voter_scenarios import START, committed, update

HERE, THERE = "host2:9002", "moved:1"
WINDOW_MS = 5 * 2_000
"""Five of Kafka's fetch timeouts."""


def at_host() -> UpdateVoterRequest:
    return update(listeners=listeners(2))


def acknowledge(single: Single, offset: int = START, node_id: int = 2) -> None:
    single.ask(fetch(offset, EPOCH + 1, max_wait_ms=0, replica=key(node_id)))


def report(single: Single, request: UpdateVoterRequest) -> None:
    """Node 2 says where it is; the record is committed."""
    answer = single.ask(request)
    assert answer is not None and answer.error == ErrorCode.NONE
    acknowledge(single, single.core.log_end.offset)
    assert single.core.high_watermark == single.core.log_end.offset


def warnings(single: Single) -> list[str]:
    return [note for note in single.notes if isinstance(note, Warn)]


def copies(single: Single) -> list[str]:
    return [text for text in warnings(single) if "two nodes seem to run on copies" in text]


def moves(single: Single) -> list[str]:
    return [note for note in single.notes if " moved from " in note]


# -- addresses -----------------------------------------------------------------------------------
def test_a_new_address_is_named() -> None:
    single = committed()
    report(single, update())
    (warning,) = moves(single)
    assert warning == (
        f"offset {START}: voters {{1, 2, 3}}, 2 moved from {HERE} to {THERE}".replace(
            "{1, 2, 3}", "{" + ", ".join(str(key(i)) for i in (1, 2, 3)) + "}"
        ).replace(" 2 moved", f" {key(2)} moved")
    )


def test_a_voter_set_with_unchanged_endpoints_is_reported_without_them() -> None:
    single = committed()
    report(single, update(listeners=listeners(2), max_kraft_version=2))
    assert moves(single) == []
    assert single.notes[-1].startswith(f"offset {START}: voters ")


def test_the_same_endpoint_change_is_reported_once_a_minute() -> None:
    single = committed()
    for _ in range(10):
        report(single, update())
        report(single, at_host())
    assert len(moves(single)) == 2
    for _ in range(31):
        single.now += 2_000
        acknowledge(single, single.core.log_end.offset)
        single.step()
    report(single, update())
    assert len(moves(single)) == 3


def test_an_endpoint_that_alternates_means_two_nodes_on_copies_of_one_directory() -> None:
    single = committed()
    for request in (update(), at_host()):
        report(single, request)
    assert copies(single) == [] and single.core.duplicate_replica_signs == 0
    for _ in range(10):
        report(single, update())
        report(single, at_host())
    (warning,) = copies(single)
    assert str(key(2)) in warning and HERE in warning and THERE in warning
    assert "docs/recovery.md" in warning
    assert single.core.duplicate_replica_signs == 20


def test_a_voter_that_changes_its_endpoint_and_returns_gives_no_warning() -> None:
    single = committed()
    for request in (update(), at_host(), update()):
        report(single, request)
        for _ in range(WINDOW_MS // 2_000 + 1):
            single.now += 2_000
            acknowledge(single, single.core.log_end.offset)
    assert warnings(single) == []


def test_no_endpoint_change_is_refused_however_often_it_repeats() -> None:
    single = committed()
    for _ in range(50):
        report(single, update())
        report(single, at_host())
    assert single.core.voters.voters == tuple(voter(i) for i in (1, 2, 3))


# -- Fetches -------------------------------------------------------------------------------------
def test_a_voter_that_forgot_what_it_acknowledged_is_reported() -> None:
    single = committed()
    acknowledge(single, START - 1)
    (warning,) = warnings(single)
    assert warning.startswith(f"{key(2)} fetches at {START - 1}, having acknowledged {START}")
    assert (
        "an older copy of its directory was restored" in warning and "docs/recovery.md" in warning
    )
    assert single.core.duplicate_replica_signs == 1


def test_a_log_end_that_regresses_repeatedly_means_two_nodes() -> None:
    single = committed()
    for _ in range(10):
        acknowledge(single, START - 1)
        acknowledge(single, START)
    first, second = warnings(single)
    assert "was restored" in first
    assert [second] == copies(single) and "time and again it fetches" in second
    assert single.core.duplicate_replica_signs == 10


def test_restored_disks_minutes_apart_are_each_reported() -> None:
    single = committed()
    for _ in range(4):
        acknowledge(single, START - 1)
        for _ in range(31):
            single.now += 2_000
            acknowledge(single, START)
    assert len(warnings(single)) == 4 and copies(single) == []


@pytest.mark.parametrize("node_id", [4, 9])
def test_an_observers_log_end_may_regress(node_id: int) -> None:
    single = committed()
    for _ in range(5):
        acknowledge(single, START, node_id)
        acknowledge(single, START - 1, node_id)
    (warning,) = warnings(single)
    assert warning == f"{key(node_id)} fetches at {START - 1}, having acknowledged {START}"
    assert single.core.duplicate_replica_signs == 0


def test_a_peer_with_the_leaders_own_id_is_reported_once_a_minute() -> None:
    single = committed()
    for _ in range(5):
        acknowledge(single, START, 1)
    (warning,) = warnings(single)
    assert "this leader's own id" in warning and "a copy of its directory" in warning


def test_what_is_meant_by_moved() -> None:
    assert update().listeners == (Listener("CONTROLLER", "moved", 1),)


# -- how much is kept of what was said -------------------------------------------------------------
def test_a_peer_that_makes_up_directory_ids_is_reported_once_a_minute() -> None:
    single = committed()
    for disk in range(50):
        single.ask(fetch(START, EPOCH + 1, max_wait_ms=0, replica=key(1, 100 + disk)))
    assert len([text for text in warnings(single) if "leader's own id" in text]) == 1


def test_only_the_latest_notes_are_remembered() -> None:
    anomalies = Anomalies()
    for number in range(5_000):
        assert anomalies.should_report(f"thing {number}", number)
    assert not anomalies.should_report("thing 4999", 5_000)
    assert not anomalies.should_report("thing 4000", 5_000)
    assert anomalies.should_report("thing 3999", 5_000), "forgotten: there is room for 1000"
    assert anomalies.should_report("thing 4999", 4_999 + REPORT_INTERVAL_MS)
