"""Bugs of the store member that the checks of `sim nemesis` must find: `--plant member_bugs:NAME`.

A development module beside the tests, as `mutants`; the wheel does not have it. Unlike mutants,
these bugs are in the member alone, and not in the code under test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quorate.base.errors import QuorateError
from quorate.formats.files import LOG_SUFFIX


class UnknownBugError(QuorateError):
    """There is no such bug."""

    exit_code = 2


def find(name: str) -> Callable[[], None]:
    """The function that plants this bug. Raises UnknownBugError."""
    if name not in BUGS:
        raise UnknownBugError(f"no such bug: '{name}'; there are {', '.join(BUGS)}")
    return BUGS[name]


def plant(name: str) -> None:
    """Put the bug into this process, for as long as it lives. Raises UnknownBugError."""
    find(name)()


def _replace(cls: type, name: str, function: Callable[..., object]) -> None:
    """Let the class have another method, for as long as this process lives."""
    setattr(cls, name, function)


def _forget() -> None:
    """A sync of the log does nothing, and nothing reaches the medium early."""
    from quorate.nemesis.disk import LossyDisk, LossyFile

    sync, begin = LossyFile.sync, LossyDisk.__init__

    def forgetful_sync(self: LossyFile) -> None:
        if self.name.endswith(LOG_SUFFIX):
            self._disk.apply_faults("sync", self.name)
        else:
            sync(self)

    def without_writeback(self: LossyDisk, *arguments: Any) -> None:
        begin(self, *arguments)
        self.uniform = lambda: 1.0

    _replace(LossyFile, "sync", forgetful_sync)
    _replace(LossyDisk, "__init__", without_writeback)


def _hasty() -> None:
    """The leader acknowledges a write before it is committed."""
    from quorate.nemesis.member import ClientEndpoint

    write = ClientEndpoint.write

    async def hasty_write(self: ClientEndpoint, wanted: Any) -> object:
        if not self.member.leads:
            return await write(self, wanted)
        self.member.propose_nowait(wanted.encode()).add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )
        return not wanted.is_cas or self.store.values.get(wanted.key) == wanted.expected

    _replace(ClientEndpoint, "write", hasty_write)


def _stale() -> None:
    """Any member answers a get from its own state, without a barrier."""
    from quorate.nemesis.member import ClientEndpoint

    do = ClientEndpoint.do

    async def stale_do(self: ClientEndpoint, request: dict[str, Any]) -> object:
        if request["do"] == "get":
            return self.store.values.get(request["key"])
        return await do(self, request)

    _replace(ClientEndpoint, "do", stale_do)


BUGS = {"forget": _forget, "hasty": _hasty, "stale": _stale}
