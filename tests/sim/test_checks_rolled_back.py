"""A majority that is put back on old disks: what is lost is reported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.sim.checks.rolled_back import LOSS, RolledBackCheck
from sim.test_checks_core import broken

pytestmark = pytest.mark.interpreted

DROPPED = "truncated to 2, from 4: leader 1 does not have the rest"


class Node(SimpleNamespace):
    """One whose log has one byte for each offset."""

    def __init__(self, node_id: int, log: bytes, high_watermark: int) -> None:
        core = SimpleNamespace(high_watermark=high_watermark)
        super().__init__(id=node_id, incarnation=1, replica=object(), core=core)
        self.becomes(log)

    def becomes(self, log: bytes) -> None:
        self.storage = SimpleNamespace(
            end_offset=len(log), read=lambda start, end, most: log[start:end]
        )


class Scene:
    """Nodes 1 and 2 are put back. Node 3 survives: it has four records, and knows of three."""

    def __init__(self) -> None:
        self.nodes = {1: Node(1, b"abcd", 4), 2: Node(2, b"abcd", 3), 3: Node(3, b"abcd", 3)}
        self.leads: Node | None = self.nodes[1]
        self.check = RolledBackCheck()
        self.check.began(self)  # type: ignore[arg-type]

    def leader(self) -> Node | None:
        return self.leads

    def loses(self, log: bytes = b"abxyz") -> None:
        self.check.rolled_back({1, 2})
        for node_id in (1, 2):
            self.nodes[node_id].becomes(log)

    def says(self, node_id: int, note: str) -> None:
        effects: Any = SimpleNamespace(notes=[note])
        self.check.stepped(self.nodes[node_id], (), effects)  # type: ignore[arg-type]

    def ends(self) -> None:
        self.check.finished(self)  # type: ignore[arg-type]


def test_a_world_without_a_loss() -> None:
    scene = Scene()
    scene.leads = None
    scene.says(3, DROPPED)
    scene.ends()  # no majority was put back: other checks look
    scene = Scene()
    scene.loses(b"abcd")
    scene.ends()


def test_there_is_a_leader_again() -> None:
    scene = Scene()
    scene.loses()
    scene.leads = None
    with broken(LOSS, "there is no leader"):
        scene.ends()


def test_a_running_voter_keeps_what_it_knows_to_be_committed() -> None:
    scene = Scene()
    scene.loses()
    scene.nodes[3].becomes(b"abxyz")
    scene.says(3, DROPPED)
    with broken(LOSS, "node 3 dropped what it knew to be committed"):
        scene.ends()
    scene.nodes[3].incarnation = 2
    scene.ends()


def test_what_is_dropped_is_reported() -> None:
    scene = Scene()
    scene.loses()
    scene.nodes[3].becomes(b"abc")
    scene.says(1, "1-x fetches at 2: an older copy of its directory was restored")
    with broken(LOSS, "node 3 dropped committed records without a word"):
        scene.ends()
    scene.says(3, DROPPED)
    scene.ends()


def test_what_one_node_still_holds_is_reported() -> None:
    scene = Scene()
    scene.loses()
    scene.says(1, "Wrote snapshot 2-1")
    with broken(LOSS, "node 3 holds committed records that are lost"):
        scene.ends()
    scene.says(3, "diverges at 2, below what is committed (3): refused")
    scene.ends()


def test_what_a_leader_without_its_majority_has_appended_is_not_committed() -> None:
    scene = Scene()
    scene.nodes[3] = Node(3, b"abXY", 2)  # 1 and 2 have committed "cd" there
    scene.loses()
    scene.ends()


def test_a_second_leader_of_the_same_epoch_is_a_report() -> None:
    scene = Scene()
    scene.loses()
    scene.says(
        3,
        "epoch 2: leader is 2, a message names 1 at a:1: ignored. It leads another quorum of this cluster id",
    )
    scene.ends()


def test_a_survivor_that_is_down_is_not_asked() -> None:
    scene = Scene()
    scene.loses()
    scene.nodes[3].replica = None
    scene.ends()
