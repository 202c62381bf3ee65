"""The driver's timer: a node is stepped when it asked to be."""

import asyncio
from types import SimpleNamespace

from quorate.node.controller import NodeEffects
from quorate.raft.inputs import Shutdown
from quorate.server.driver import Driver
from quorate.server.listener import Limits
from quorate.storage.memory import MemoryStorage

FAR_MS, NEAR_MS = 3_600_000, 5


class Sleeper:
    """Asks for a step in an hour; when something happened, for one soon."""

    node_id = 1
    replica = SimpleNamespace(config=SimpleNamespace(listeners=()))

    def __init__(self):
        self.steps = []
        self.woken = asyncio.Event()

    def step(self, happened, now):
        self.steps.append(len(happened))
        if len(self.steps) == 3:
            self.woken.set()
        delay = NEAR_MS if happened else FAR_MS
        return NodeEffects(wake_at_ms=now.monotonic_ms + delay)


def test_a_nearer_deadline_replaces_a_later_one():
    async def story():
        storage = MemoryStorage()
        storage.open()
        node = Sleeper()
        loop = asyncio.get_running_loop()
        driver = Driver(node, storage, loop, Limits(), 10, lambda fault: None)
        driver.start()
        while not node.steps:
            await asyncio.sleep(0)
        driver.post(Shutdown(0))
        await asyncio.wait_for(node.woken.wait(), 20)
        await driver.close()
        assert node.steps == [0, 1, 0]

    asyncio.run(story())
