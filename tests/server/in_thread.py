"""A server on an event loop of its own, in a thread, for tests whose client blocks."""

from __future__ import annotations

import asyncio
import threading


class InThread:
    """Use as a context manager. `serve` opens the server, calls `opened`, and closes it."""

    def __enter__(self):
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve()))
        self.thread.start()
        assert self.ready.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.end.set)
        self.thread.join(10)

    async def serve(self):
        raise AssertionError("a server says how it is opened")

    async def opened(self):
        """Say that the server is open, and wait for the end of the test."""
        self.loop, self.end = asyncio.get_running_loop(), asyncio.Event()
        self.ready.set()
        await self.end.wait()
