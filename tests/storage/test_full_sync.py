"""macOS: a sync that reaches past the drive's cache, and no fdatasync."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable

import pytest

from quorate.storage.disk import sync_all, sync_file

F_FULLFSYNC = 51  # <sys/fcntl.h> of macOS


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked of the system, as on macOS, where a full sync goes well."""
    asked: list[str] = []

    def full(fd: int, command: int) -> int:
        assert command == F_FULLFSYNC
        asked.append("full")
        return 0

    monkeypatch.delattr(os, "fdatasync", raising=False)
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda fd: asked.append("plain"))
    return asked


def failing(number: int) -> Callable[[int, int], int]:
    def full(fd: int, command: int) -> int:
        raise OSError(number, os.strerror(number))

    return full


def test_a_file_and_a_directory_are_synced_in_full(calls: list[str]) -> None:
    sync_file(7)
    sync_all(7)
    assert calls == ["full", "full"]


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_without_it_gets_the_plain_one(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", failing(number))
    sync_file(7)
    assert calls == ["plain"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_full_sync_that_failed_is_not_tried_another_way(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The plain one might go well then, with what was written lost."""
    monkeypatch.setattr(fcntl, "fcntl", failing(number))
    with pytest.raises(OSError) as raised:
        sync_file(7)
    assert raised.value.errno == number
    assert calls == []
