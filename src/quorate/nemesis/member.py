"""One member of the store as a process: `python -m quorate.nemesis.member DIRECTORY ...`

Clients speak lines of JSON, one request at a time for each connection: `{"do": "put", "key": 1,
"value": 7}`, also `cas` (with `expected`), `get`, `state`, `disk` to set faults, and `failed`: was
one met? The answer has `result` or `error`: not-leader (with `leader`), in-doubt, or refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.embed import InDoubt, Member, NotLeader
from quorate.nemesis.bugs import NONE, OWN
from quorate.nemesis.disk import DiskFaults, LossyDisk
from quorate.nemesis.store import Store, Write
from quorate.node.config import NodeConfig
from quorate.storage.api import Storage
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions

SETTINGS: Final = {
    "internal.metadata.log.segment.bytes": "65536",
    "metadata.log.max.record.bytes.between.snapshots": "32768",
    "metadata.max.retention.bytes": "131072",
}
"""Small, so that a short run sees many segments, snapshots and cleanings."""


@dataclass(frozen=True, slots=True)
class Front:
    """Answers clients."""

    member: Member
    store: Store
    faults: DiskFaults
    plant: str

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                answer = await self.answer(json.loads(line))
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": await self.do(asked)}
        except NotLeader as error:
            return {"error": "not-leader", "leader": error.leader_id}
        except InDoubt:
            return {"error": "in-doubt"}
        except QuorateError as error:
            return {"error": "refused", "why": str(error)}

    async def do(self, asked: dict[str, Any]) -> object:
        match asked["do"]:
            case "put":
                return await self.write(Write(asked["key"], asked["value"]))
            case "cas":
                return await self.write(
                    Write(asked["key"], asked["value"], True, asked["expected"])
                )
            case "get":
                if self.plant != "stale":
                    await self.member.barrier()
                return self.store.values.get(asked["key"])
            case "state":
                return {
                    "offset": self.member.applied_offset,
                    "digest": self.store.digest.hex(),
                    "values": sorted(self.store.values.items()),
                }
            case "disk":
                self.faults.slow_s, self.faults.fails = asked["slow_s"], asked["fails"]
                return True
            case "failed":
                return self.faults.failed
            case other:
                raise QuorateError(f"no such request: {other}")

    async def write(self, write: Write) -> object:
        if self.plant == "hasty" and self.member.leads:
            self.member.propose_nowait(write.encode()).add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )
            return not write.is_cas or self.store.values.get(write.key) == write.expected
        return await self.member.propose(write.encode())


async def serve(given: argparse.Namespace) -> None:
    """Until the member stops. Raises QuorateError."""
    store = Store()
    faults = DiskFaults(forgets_log=given.plant == "forget")

    def storage_of(config: NodeConfig) -> Storage:
        options = LogOptions(config.segment_bytes, config.metadata_log_segment_ms, needs_vote=True)
        chance = (lambda: 1.0) if faults.forgets_log else random.Random(given.seed).random
        return DiskStorage(LossyDisk(Path(config.metadata_log_dir), faults, chance), options)

    member = await Member.start(
        given.directory,
        store,
        given.raft,
        advertise=given.advertise,
        contacts=tuple(given.contacts.split(",")),
        settings=SETTINGS,
        open_storage=storage_of,
    )
    async with member:
        front = Front(member, store, faults, given.plant)
        server = await asyncio.start_server(front.serve, "127.0.0.1", given.port)
        logging.info("member %d serves", member.node_id)
        async with server:
            await member.wait_stopped()


def main() -> None:
    parser = argparse.ArgumentParser(description="A member of the store that the nemesis torments.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--raft", required=True)
    parser.add_argument("--advertise", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--contacts", required=True)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--plant", choices=[NONE, *OWN], default=NONE)
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        asyncio.run(serve(given))
    except QuorateError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
