"""A disk that is full is named, with what to do, and without a traceback."""

from __future__ import annotations

import errno
import resource
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from quorate.spark.jobs.follow import failure
from quorate.spark.tables.files import TableWriter
from quorate.spark.tables.store import WarehouseWriteError
from quorate.spark.tables.warehouse import open_store
from quorate.spark.write_errors import DiskWriteError, cannot_write, error_number, fullest
from spark.logs import batches, log_directory
from spark.test_refusals import SOUND

AGAIN = "start the job again: nothing is lost or taken twice"
FULL = Path("/dev/full")
"""A device that has no space."""


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (OSError(errno.ENOSPC, "x"), errno.ENOSPC),
        (OSError("Unable to copy data\n \x1b[31m↳\x1b[0m No space left on device (os error 28)"),
         errno.ENOSPC),
        (PySparkException("java.io.IOException: No space left on device\n\tat x.y"), errno.ENOSPC),
        (ValueError("Disk quota exceeded (os error 122)"), errno.EDQUOT),
        (OSError(errno.EFBIG, "x"), errno.EFBIG),
        (FileNotFoundError(errno.ENOENT, "x"), None),
        (ValueError("other"), None),
    ],
)  # fmt: skip
def test_every_form_of_a_full_disk_is_one(error, number):
    assert error_number(error) == number


def test_the_message_has_the_path_the_space_and_what_to_do(tmp_path: Path):
    place = str(tmp_path / "not" / "there.parquet")
    text = cannot_write(place, OSError(errno.ENOSPC, "[Errno 28] Detail: ..."))
    head, _, rest = text.partition(" (")
    assert head == f"{place}: cannot be written: No space left on device"
    space, _, advice = rest.partition("): ")
    free, of = space.split(" free of ")
    assert all(size.split()[1] in ("B", "KiB", "MiB", "GiB", "TiB") for size in (free, of))
    assert advice == f"free space there, then {AGAIN}"
    assert str(DiskWriteError("/w", OSError(errno.EROFS, ""))) == (
        "/w: cannot be written: Read-only file system: the file system is mounted read-only; make "
        f"it writable, then {AGAIN}"
    )
    assert cannot_write("s3://b/w", OSError(errno.ENOSPC, "")).startswith(
        "s3://b/w: cannot be written: No space left on device: free"
    )
    assert cannot_write("/w", ValueError("odd\n thing")) == "/w: cannot be written: odd: thing"


def test_the_disk_with_the_least_space_is_the_full_one(tmp_path: Path, monkeypatch):
    free = {"/a": 5, "/b": 3, "/": 9}

    def usage(path):
        if str(path) not in free:
            raise FileNotFoundError
        return type("Usage", (), {"free": free[str(path)], "total": 10})

    monkeypatch.setattr("shutil.disk_usage", usage)
    assert fullest(["/a/x", "/b", "s3://c/d"]) == "/b"
    assert fullest(["s3://c/d"]) is None


@pytest.fixture
def small_files():
    """No file of this process may have more than 100 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small_files")
def test_a_data_file_that_cannot_be_written_is_named(tmp_path: Path):
    path = "a/1.parquet"
    writer = TableWriter(str(tmp_path), "topics", path)
    with pytest.raises(DiskWriteError, match="File too large: raise the limit") as caught:
        for _ in range(2):
            writer.add(("c", "id", "name", 0, None, None, None, True, False))
        writer.close()
    assert str(caught.value).startswith(f"{tmp_path}/gold/topics/{path}: cannot be written")


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("form", ["delta", "parquet"])
def test_a_file_of_the_store_that_cannot_be_written_is_named(tmp_path: Path, form: str):
    store = open_store(str(tmp_path), form)
    with pytest.raises(WarehouseWriteError, match="File too large"):
        store.write_text(store.path("control/x.json"), "x" * 200)


def test_a_full_disk_of_a_stream_names_its_checkpoint():
    head = "[STREAM_FAILED] Query [id = f9cb-d004, runId = 7a70-66d0] terminated with exception: "
    error = StreamingQueryException(f"{head}java.io.IOException: No space left on device")
    found = failure(error, "/warehouse/control/_stream/x")
    assert isinstance(found, DiskWriteError) and found.exit_code == 70
    assert str(found).startswith("/warehouse/control/_stream/x: cannot be written: No space left")


@pytest.mark.skipif(not FULL.is_char_device(), reason="the system has no /dev/full")
def test_a_page_on_a_full_disk_has_the_exit_code_of_a_failed_job(
    spark, pipeline, tmp_path: Path, monkeypatch
):
    log_directory(tmp_path / "node1", {0: SOUND})
    home = tmp_path / "home"
    assert pipeline("ingest", tmp_path / "node1", "-w", home, "--quiet")[0] == 0
    code, out, err = pipeline("report", "-w", home, "--out", FULL, "--quiet")
    assert (code, out) == (70, "") and err.startswith(f"{FULL}: cannot be written: No space left")

    def on_java_side(*_, **__):
        raise PySparkException("An error occurred while calling o1.collect.\n"
                               ": java.io.IOException: No space left on device\n\tat java.x")  # fmt: skip

    monkeypatch.setattr("quorate.spark.report.job.gather", on_java_side)
    code, out, err = pipeline("report", "-w", home, "--out", tmp_path / "page.html", "--quiet")
    assert (code, out) == (70, "") and err.count("\n") == 1
    assert "cannot be written: No space left on device (" in err and "java" not in err


def test_a_task_that_cannot_write_names_its_file(spark, pipeline, tmp_path: Path, monkeypatch):
    log_directory(tmp_path / "node1", {0: b"".join(batches([500] * 12))})
    python = tmp_path / "limited-python"
    python.write_text(f'#!/bin/bash\nulimit -f 24\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))  # Spark's workers alone
    home = tmp_path / "home"
    code, out, err = pipeline("ingest", tmp_path / "node1", "-w", home, "--quiet")
    last = err.splitlines()[-1]
    assert (code, out) == (70, "") and last.startswith(f"{home}/bronze/log/"), last
    assert ".parquet: cannot be written: File too large: raise the limit" in last
    assert "Exception ignored" not in err
