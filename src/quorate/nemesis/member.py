"""One member of the store as a process: `python -m quorate.nemesis.member DIRECTORY ...`

Requests and responses are lines of JSON; a connection has one request at a time. `do` names the
request: `put` (`key`, `value`), `cas` (also `expected`), `get` (`key`), `state`, `disk` (set the
disk's faults: `slow_s`, `fails`), `failed` (has the disk failed?). A response has `result`, or
`error`: `not-leader` (with `leader`), `in-doubt`, `refused` (with `why`).
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
from quorate.config.node_config import NodeConfig
from quorate.embed import InDoubtError, Member, NotLeaderError
from quorate.nemesis.disk import DiskFaults, LossyDisk
from quorate.nemesis.store import NemesisStore, StoreWrite
from quorate.storage.api import Storage
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions

SETTINGS: Final = {
    "internal.metadata.log.segment.bytes": "65536",
    "metadata.log.max.record.bytes.between.snapshots": "32768",
    "metadata.max.retention.bytes": "131072",
}
"""Small limits: a short run has many segments, snapshots and cleanings."""


@dataclass(frozen=True, slots=True)
class ClientEndpoint:
    """Serves the requests of clients and of the fault injector."""

    member: Member
    store: NemesisStore
    faults: DiskFaults

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (line := await reader.readline()).endswith(b"\n"):
                response = await self.respond(json.loads(line))
                writer.write(json.dumps(response).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def respond(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": await self.do(request)}
        except NotLeaderError as error:
            return {"error": "not-leader", "leader": error.leader_id}
        except InDoubtError:
            return {"error": "in-doubt"}
        except QuorateError as error:
            return {"error": "refused", "why": str(error)}

    async def do(self, request: dict[str, Any]) -> object:
        match request["do"]:
            case "put":
                return await self.write(StoreWrite(request["key"], request["value"]))
            case "cas":
                return await self.write(
                    StoreWrite(request["key"], request["value"], True, request["expected"])
                )
            case "get":
                await self.member.barrier()
                return self.store.values.get(request["key"])
            case "state":
                return {
                    "offset": self.member.applied_offset,
                    "digest": self.store.digest.hex(),
                    "values": sorted(self.store.values.items()),
                }
            case "disk":
                self.faults.slow_s, self.faults.fails = request["slow_s"], request["fails"]
                return True
            case "failed":
                return self.faults.failed
            case other:
                raise QuorateError(f"no such request: {other}")

    async def write(self, write: StoreWrite) -> object:
        return await self.member.propose(write.encode())


async def serve(given: argparse.Namespace) -> None:
    """Run the member until it stops. Raises QuorateError."""
    store = NemesisStore()
    faults = DiskFaults()

    def storage_of(config: NodeConfig) -> Storage:
        options = LogOptions(
            config.segment_bytes,
            config.metadata_log_segment_ms,
            needs_vote=True,
            node_id=config.node_id,
        )
        rng = random.Random(given.seed).random
        return DiskStorage(LossyDisk(Path(config.metadata_log_dir), faults, rng), options)

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
        endpoint = ClientEndpoint(member, store, faults)
        server = await asyncio.start_server(endpoint.serve, "127.0.0.1", given.port)
        logging.info("member %d serves", member.node_id)
        async with server:
            await member.wait_stopped()


def main() -> None:
    parser = argparse.ArgumentParser(description="A store member for fault injection.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--raft", required=True)
    parser.add_argument("--advertise", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--contacts", required=True)
    parser.add_argument("--seed", default="0")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        asyncio.run(serve(given))
    except QuorateError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
