"""A small replicated key-value store that speaks Redis's protocol (RESP).

    kv() { python examples/kv.py "$@"; }
    M=1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
    for i in 1 2 3; do kv found data-$i $i --members $M; done
    for i in 1 2 3; do kv serve data-$i --raft 127.0.0.1:700$i --port 640$i & done
    redis-cli -p 6401 set greeting hello

SET and DEL get their response when a majority has synced them to disk. GET reads what this member
has applied; after SYNC, that includes everything acknowledged before. A member that does not lead
responds `-MOVED 0 host:port` with the leader's raft address, or `-TRYAGAIN` while there is none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from quorate.embed import Member, NotLeaderError, OverloadedError, QuorateError, create


class Store:
    """Keys and values; an entry is `S<key length>:<key><value>` or `D<key>`, or empty."""

    def __init__(self) -> None:
        # Python's garbage collector does not traverse a dict that holds only bytes, however large.
        self.data: dict[bytes, bytes] = {}

    def apply(self, offset: int, entry: bytes) -> bytes:
        kind, rest = entry[:1], entry[1:]
        if kind == b"S":
            length, _, text = rest.partition(b":")
            size = int(length)
            self.data[text[:size]] = text[size:]
        elif kind == b"D":
            if rest not in self.data:
                return b":0\r\n"
            del self.data[rest]
            return b":1\r\n"
        return b"+OK\r\n"

    def snapshot(self) -> Iterable[bytes]:
        frozen = self.data.copy()  # 50 ms for a million keys
        return (b"%d:%b%b" % (len(k), k, v) for k, v in frozen.items())

    def restore(self, chunks: Iterable[bytes]) -> None:
        self.data = {}
        for chunk in chunks:
            length, _, text = chunk.partition(b":")
            self.data[text[: int(length)]] = text[int(length) :]


class ProtocolError(Exception):
    """The client sent something other than RESP."""


def take_command(buffer: bytes, at: int) -> tuple[list[bytes], int] | None:
    """The next array of bulk strings and where it ends; None when it is incomplete."""
    if at >= len(buffer):
        return None
    if buffer[at : at + 1] != b"*":
        raise ProtocolError("expected an array of bulk strings")
    count, at = take_number(buffer, at)
    words: list[bytes] = []
    for _ in range(count):
        if at < 0 or at >= len(buffer):
            return None
        if buffer[at : at + 1] != b"$":
            raise ProtocolError("expected a bulk string")
        size, at = take_number(buffer, at)
        if at < 0 or len(buffer) < at + size + 2:
            return None
        words.append(buffer[at : at + size])
        at += size + 2
    return None if at < 0 else (words, at)


def take_number(buffer: bytes, at: int) -> tuple[int, int]:
    """The number after the sign at `at`, and where the next line begins (-1: not all there)."""
    end = buffer.find(b"\r\n", at)
    if end < 0:
        return 0, -1
    text = buffer[at + 1 : end]
    if not text.isdigit() or len(text) > 9:
        raise ProtocolError("expected a length")
    return int(text), end + 2


class Client(asyncio.Protocol):
    """One connection; answers leave in the order of the commands."""

    def __init__(self, member: Member, store: Store) -> None:
        self.member = member
        self.store = store
        self.rest = b""
        self.entries: list[bytes] = []
        self.size = 0
        self.reading = False
        self.answers: deque[Changes | Read | bytes] = deque()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.rest += data
        self.take()

    def take(self) -> None:
        """Handle commands in order, up to a GET that waits for the changes before it."""
        buffer, at = self.rest, 0
        try:
            while not self.reading and (taken := take_command(buffer, at)) is not None:
                words, at = taken
                self.answer(words)
        except ProtocolError as error:
            self.say(b"-ERR Protocol error: %b\r\n" % str(error).encode())
            self.flush()
            self.transport.close()
            return
        self.rest = buffer[at:]
        self.propose()
        self.flush()

    def answer(self, words: list[bytes]) -> None:
        match words[0].upper() if words else b"", words[1:]:
            case b"SET", [key, value]:
                self.change(b"S%d:%b%b" % (len(key), key, value))
            case b"DEL", [key]:
                self.change(b"D" + key)
            case b"SYNC", []:
                self.change(b"")
            case b"GET", [key]:
                self.say(Read(key))
                self.reading = len(self.answers) > 1
            case b"PING", []:
                self.say(b"+PONG\r\n")
            case name, _:
                self.say(b"-ERR unknown command or wrong arguments: %b\r\n" % name[:40])

    def say(self, answer: Read | bytes) -> None:
        """Queue an answer that needs no result."""
        self.propose()
        self.answers.append(answer)

    def change(self, entry: bytes) -> None:
        """Collect changes of one read of the socket, up to about a MiB, for one proposal."""
        if self.size + len(entry) > 1 << 20:
            self.propose()
        self.entries.append(entry)
        self.size += len(entry)

    def propose(self) -> None:
        if self.entries:
            changes = Changes(len(self.entries))
            entries, self.entries, self.size = self.entries, [], 0
            self.answers.append(changes)
            self.member.submit(entries, lambda outcome: self.done(changes, outcome))

    def done(self, changes: Changes, outcome: list[object] | QuorateError) -> None:
        changes.answers = answers_to(outcome, changes.count)
        self.flush()

    def flush(self) -> None:
        """Write the answers that are ready, in the order of the commands."""
        ready: list[bytes] = []
        while self.answers:
            answer = self.answers[0]
            if isinstance(answer, bytes):
                ready.append(answer)
            elif isinstance(answer, Read):
                ready.append(bulk(self.store.data.get(answer.key)))
            elif answer.answers is not None:
                ready += answer.answers
            else:
                break
            self.answers.popleft()
        if ready and not self.transport.is_closing():
            self.transport.write(b"".join(ready))
        if self.reading and not self.answers:
            self.reading = False
            self.take()


@dataclass
class Changes:
    """The answers to changes that were proposed together; None until they are committed."""

    count: int
    answers: list[bytes] | None = None


@dataclass
class Read:
    """A GET: read when all changes before it are answered."""

    key: bytes


def bulk(value: bytes | None) -> bytes:
    return b"$-1\r\n" if value is None else b"$%d\r\n%b\r\n" % (len(value), value)


def answers_to(outcome: list[object] | QuorateError, count: int) -> list[bytes]:
    """The answer of the store to each change, or the reason why all were refused."""
    if isinstance(outcome, list):
        return cast(list[bytes], outcome)
    if isinstance(outcome, NotLeaderError):
        said = f"MOVED 0 {outcome.address}" if outcome.address else "TRYAGAIN no leader is known"
        return [f"-{said}\r\n".encode()] * count
    said = "TRYAGAIN" if isinstance(outcome, OverloadedError) else "ERR"
    return [f"-{said} {outcome}\r\n".encode()] * count


async def serve(directory: str, raft: str, port: int, contacts: tuple[str, ...]) -> None:
    store = Store()
    loop = asyncio.get_running_loop()
    async with await Member.start(directory, store, raft, contacts=contacts) as member:
        server = await loop.create_server(lambda: Client(member, store), "127.0.0.1", port)
        print(f"member {member.node_id} serves on 127.0.0.1:{port}", flush=True)
        async with server:
            await member.wait_stopped()


def main() -> None:
    parser = argparse.ArgumentParser(description="A replicated key-value store.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    found = verbs.add_parser("found", help="make a member's directory, once")
    found.add_argument("directory")
    found.add_argument("id", type=int)
    found.add_argument(
        "--members", help="the founders: 1=host:port,2=host:port; none to join later"
    )
    run = verbs.add_parser("serve", help="run a member")
    run.add_argument("directory")
    run.add_argument("--raft", required=True, help="host:port for the other members")
    run.add_argument("--port", type=int, required=True, help="port for clients")
    run.add_argument("--contacts", default="", help="members' addresses, to join")
    given = parser.parse_args()
    try:
        if given.verb == "found":
            pairs = [part.split("=", 1) for part in (given.members or "").split(",") if part]
            founders = {int(number): address for number, address in pairs}
            create(given.directory, given.id, "kv-example", founders or None)
            return
        contacts = tuple(part for part in given.contacts.split(",") if part)
        gc.set_threshold(20_000)  # a node creates few reference cycles: look for them more rarely
        with contextlib.suppress(KeyboardInterrupt):
            run_loop(serve(given.directory, given.raft, given.port, contacts))
    except (QuorateError, ValueError) as error:
        sys.exit(str(error))


def run_loop(main: object) -> None:
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        runner.run(main)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
