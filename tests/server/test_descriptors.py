"""The limit on open files, and the connections that leave room for the node's own."""

import resource
import subprocess
import sys

import pytest

from quorate.server.descriptors import longest_backlog, most_connections


@pytest.mark.parametrize(
    ("limit", "connections"),
    [(64, 32), (1024, 512), (4096, 2048), (20_000, 17_696), (resource.RLIM_INFINITY, 2**31 - 1)],
)
def test_connections_leave_room_for_the_nodes_own_files(limit, connections):
    assert most_connections(limit) == connections


@pytest.mark.parametrize("limit", [64, 200, 1024, 5000, 20_000])
def test_so_do_those_that_are_accepted_before_one_is_refused(limit):
    waiting = 2 * min(longest_backlog(limit), 1024)
    assert limit - most_connections(limit) - waiting >= min(limit // 4, 256)


def test_the_soft_limit_becomes_the_hard_one():
    program = """
import resource
from quorate.server.descriptors import in_force, most_connections, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))
print(raise_limit(), raise_limit(), most_connections(in_force()))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("300 300 150\n", "")
