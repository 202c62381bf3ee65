"""The limit on open files, and the connections that leave room for the node's own."""

import resource
import subprocess
import sys

import pytest

from quorate.server.descriptors import most_connections


@pytest.mark.parametrize(
    ("limit", "connections"),
    [(64, 32), (512, 256), (1024, 768), (20_000, 19_744), (resource.RLIM_INFINITY, 2**31 - 1)],
)
def test_connections_leave_room_for_the_nodes_own_files(limit, connections):
    assert most_connections(limit) == connections


def test_the_soft_limit_becomes_the_hard_one():
    program = """
import resource
from quorate.server.descriptors import connections_that_fit, raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))
print(raise_limit(), raise_limit(), connections_that_fit())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("300 300 150\n", "")
