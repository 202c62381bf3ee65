"""Clients that pipeline Fetches of old records and read no response do not disturb others."""

import socket
import subprocess
import sys

import pytest

from interop.process import HOST, free_port
from quorate.base.ids import ReplicaKey, Uuid
from quorate.node.raft_rpc_outbound import request_to_wire
from quorate.raft.messages import FetchRequest
from quorate.wire.header import encode_request

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MEMBER = """
import asyncio, os, sys, time
from pathlib import Path
from quorate.embed import Member, create

class Nothing:
    def apply(self, offset, entry): return b""
    def snapshot(self): return [b""]
    def restore(self, parts): list(parts)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

async def main(directory, address):
    create(directory, 1, "flood", {1: address})
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1000000000"}
    member = await Member.start(directory, Nothing(), address, settings=settings)
    while not member.leads:
        await asyncio.sleep(0.01)
    for _ in range(12):
        await member.propose(os.urandom(1_000_000))
    print(member.node.replica.core.epoch, resident(), flush=True)
    while True:
        began = time.monotonic()
        await member.propose(b"small")
        print(time.monotonic() - began, resident(), flush=True)
        await asyncio.sleep(0.05)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""
LONGEST_S = 2.0
"""Limit for a commit meanwhile. When all reads started at once, it took 6 s and 2.5 GB."""
MOST_MIB = 512
"""Limit for the growth of the process: 256 MiB of unread responses, the rest is in progress."""


def test_fetches_of_old_records_stop_no_commit_and_use_bounded_memory(tmp_path):
    port = free_port()
    command = [sys.executable, "-c", MEMBER, str(tmp_path / "member"), f"{HOST}:{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as member:
        assert member.stdout is not None
        try:
            epoch, before = map(int, member.stdout.readline().split())
            nobody = ReplicaKey(-1, Uuid(bytes(16)))
            request = FetchRequest(None, nobody, epoch, 5, epoch, 0, 1 << 20, -1)
            flood = encode_request(request_to_wire(request, 17), 17, 1, "flood") * 128
            clients = [socket.create_connection((HOST, port)) for _ in range(8)]
            for client in clients:
                client.sendall(flood)
            took, grown = 0.0, 0
            lasted = 0.0
            while lasted < 8:
                seconds, size = member.stdout.readline().split()
                took, grown = max(took, float(seconds)), max(grown, int(size) - before)
                lasted += float(seconds) + 0.05
            for client in clients:
                client.close()
        finally:
            member.kill()
    assert took < LONGEST_S
    assert 16 < grown < MOST_MIB
