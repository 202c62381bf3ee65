"""The audit trail: its entries, its files, and what a killed node has kept of it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from quorate.server.audit_log import FILE, AuditError, AuditLog, read_entries

ENTRY = {"request": "CreateTopics", "principal": "User:alice", "result": "NONE"}


def numbered(first, last):
    return [{**ENTRY, "records": number} for number in range(first, last + 1)]


def numbers(entries):
    return [entry["records"] for entry in entries]


def test_entries_are_in_memory_and_on_disk_at_once(tmp_path):
    log = AuditLog(tmp_path / "audit", 10_000, 3, entries=2)
    log.write(numbered(1, 3), node_id=7, epoch=4, wall_ms=1_700_000_000_123)
    [line, *_] = (tmp_path / "audit" / FILE).read_text().splitlines()
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123+00:00",
        "node": 7,
        "epoch": 4,
        **ENTRY,
        "records": 1,
    }
    assert numbers(log.recent) == [2, 3], "the ring has the newest ones"
    assert os.stat(tmp_path / "audit" / FILE).st_mode & 0o777 == 0o600


def test_the_files_are_bounded_and_rotate(tmp_path):
    log = AuditLog(tmp_path, max_bytes=500, max_files=3, entries=5)
    for number in range(1, 41):
        log.write(numbered(number, number), 1, 1, 0)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["audit.1.jsonl", "audit.2.jsonl", FILE]
    assert all(path.stat().st_size <= 500 for path in tmp_path.iterdir())
    kept = numbers(read_entries(tmp_path))
    assert kept == list(range(kept[0], 41)), "the oldest are gone, the others in order"


def test_one_file_alone_begins_anew(tmp_path):
    log = AuditLog(tmp_path, max_bytes=300, max_files=1, entries=5)
    for number in range(1, 11):
        log.write(numbered(number, number), 1, 1, 0)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert numbers(read_entries(tmp_path))[-1] == 10


def test_a_new_start_goes_on_after_a_line_that_was_cut_off(tmp_path):
    AuditLog(tmp_path, 10_000, 2, 5).write(numbered(1, 1), 1, 1, 0)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"request":"Del')
    AuditLog(tmp_path, 10_000, 2, 5).write(numbered(2, 2), 1, 1, 0)
    assert numbers(read_entries(tmp_path)) == [1, 2]


def test_a_directory_that_cannot_be_used_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AuditError, match=r"quorate\.audit\.dir=.*: make it a directory"):
        AuditLog(tmp_path / "file", 10_000, 2, 5)


def test_a_failing_disk_is_logged_once_and_the_ring_goes_on(tmp_path, caplog):
    log = AuditLog(tmp_path / "audit", 10_000, 2, 5)
    log.close()
    (tmp_path / "audit" / FILE).unlink()
    (tmp_path / "audit").rmdir()
    log.write(numbered(1, 1), 1, 1, 0)
    log.write(numbered(2, 2), 1, 1, 0)
    assert caplog.text.count("cannot be written") == 1
    (tmp_path / "audit").mkdir()
    log.write(numbered(3, 3), 1, 1, 0)
    assert numbers(log.recent) == [1, 2, 3]
    assert numbers(read_entries(tmp_path / "audit")) == [3]


def test_a_killed_process_has_kept_what_it_wrote(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from quorate.server.audit_log import AuditLog\n"
        "AuditLog(Path(sys.argv[1]), 10_000, 2, 5).write([{'records': 1}], 1, 1, 0)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert numbers(read_entries(tmp_path)) == [1]
