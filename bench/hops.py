"""What a commit's hops and syncs cost by themselves: three Python processes without a protocol.

The leader passes the bytes of a put on as they came, every process writes and syncs them on a
thread of its own, and the put is answered when two of the three have them. There is no term, no
log, no codec, no state machine: nothing that keeps Raft's promises can be faster on this loop.
As a program, one of the three: `python -m bench.hops PORT FILE [LEADER'S PORT]`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import uvloop

HOST = "127.0.0.1"
SYNCED = b"+"
MAJORITY = 2


class Disk:
    """Writes and syncs in order on one thread."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self._thread = ThreadPoolExecutor(1)
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes, done: Callable[[], None]) -> None:
        self._thread.submit(self._write, data, done)

    def _write(self, data: bytes, done: Callable[[], None]) -> None:
        os.write(self._file, data)
        os.fdatasync(self._file)
        self._loop.call_soon_threadsafe(done)


class Connection(asyncio.Protocol):
    """One way in or out; `received` gets whatever comes."""

    def __init__(self, received: Callable[[Connection, bytes], None]) -> None:
        self._received = received

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.send = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        self._received(self, data)


class Leader:
    """Takes one put at a time, from any connection that sends one longer than `SYNCED`."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._followers: set[Connection] = set()
        self._rounds: dict[Connection, deque[Callable[[], None]]] = {}

    def received(self, connection: Connection, data: bytes) -> None:
        if data.startswith(SYNCED):
            rounds = self._rounds.setdefault(connection, deque())
            for _ in data:
                if rounds:
                    rounds.popleft()()
                else:  # a follower's greeting
                    self._followers.add(connection)
            return
        counted = 0

        def has_it() -> None:
            nonlocal counted
            counted += 1
            if counted == MAJORITY:
                connection.send(b"+OK\r\n")

        for follower in self._followers:
            self._rounds[follower].append(has_it)
            follower.send(data)
        self._disk.write(data, has_it)


async def follow(disk: Disk, leader_port: int) -> None:
    def received(leader: Connection, data: bytes) -> None:
        disk.write(data, lambda: leader.send(SYNCED))

    loop = asyncio.get_running_loop()
    while True:
        try:
            _, leader = await loop.create_connection(
                lambda: Connection(received), HOST, leader_port
            )
        except OSError:
            await asyncio.sleep(0.05)  # the leader is still starting
            continue
        leader.send(SYNCED)
        return


async def main(port: int, path: Path, leader_port: int | None) -> None:
    disk = Disk(path)
    if leader_port is not None:
        await follow(disk, leader_port)
    leader = Leader(disk)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(leader.received), HOST, port)
    await server.serve_forever()


if __name__ == "__main__":
    own, file, *leaders = sys.argv[1:]
    uvloop.run(main(int(own), Path(file), int(leaders[0]) if leaders else None))
