"""The limit on open files, and the connections that it allows."""

import resource
import subprocess
import sys

import pytest

from quorate.server.descriptors import max_backlog_for, max_connections_for


@pytest.mark.parametrize(
    ("limit", "connections"),
    [(64, 32), (1024, 512), (4096, 2048), (20_000, 17_696), (resource.RLIM_INFINITY, 2**31 - 1)],
)
def test_connections_leave_room_for_the_nodes_own_files(limit, connections):
    assert max_connections_for(limit) == connections


@pytest.mark.parametrize("limit", [64, 200, 1024, 5000, 20_000])
def test_full_backlogs_leave_room_for_the_nodes_own_files(limit):
    waiting = 2 * min(max_backlog_for(limit), 1024)
    assert limit - max_connections_for(limit) - waiting >= min(limit // 4, 256)


def test_the_soft_limit_is_raised_to_the_hard_limit():
    program = """
import resource
from quorate.server.descriptors import max_connections_for, raise_limit, soft_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 300))
print(raise_limit(), raise_limit(), max_connections_for(soft_limit()))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("300 300 150\n", "")
