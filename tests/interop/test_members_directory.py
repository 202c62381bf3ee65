"""Kafka's own controller keeps off the directory of a member of quorate.embed."""

import pytest

from interop.java import JavaNode
from quorate.embed import create

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_kafkas_controller_does_not_start_on_a_members_directory(tmp_path):
    """It would be elected among the other members, or among the other controllers, and end both."""
    node = JavaNode(1, tmp_path)
    node.config["controller.quorum.bootstrap.servers"] = node.address
    create(node.data, 1, "counters", {1: node.address})
    before = {path: path.is_file() and path.read_bytes() for path in node.data.rglob("*")}
    node.write_properties()
    try:
        node.start()
        assert node.wait_for_exit() != 0
    finally:
        node.stop()
    assert "Invalid meta.properties version string 'quorate.embed'" in node.log
    assert {path: path.is_file() and path.read_bytes() for path in node.data.rglob("*")} == before
