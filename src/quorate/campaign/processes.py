"""Work for the workers: each piece in a fresh process, started by a task of Spark.

A fresh process imports exactly the code that was sent, and a planted mutant ends with it; Spark's
own Python processes live on from task to task. This module reaches the workers by value, within
the pickled task: there it imports nothing of this package, which may not be installed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RESULT: Final = "result string"
"""The column that comes back: one line of JSON for each piece of work."""
FAILED: Final = "a process of the campaign failed on"
_STDERR_CHARACTERS: Final = 2000
"""The part of a failed process's stderr that is reported: its end."""


def run_in_processes(pieces: DataFrame, common: dict[str, Any], archive: str | None) -> DataFrame:
    """Run a process for each row of `pieces`; returns their results, in the column `result`.

    A process gets the row and `common`, as one JSON object. archive: the name under which
    `job.ship` has sent the code; None: it is installed where the tasks run.
    """
    import pyspark.cloudpickle as pickle

    pickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    return pieces.mapInArrow(_task(common, archive), RESULT)


def _task(
    common: dict[str, Any], archive: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import SparkFiles

        code = None if archive is None else SparkFiles.get(archive)
        for batch in batches:
            for row in batch.to_pylist():
                result = run_in_process(json.dumps({**common, **row}), code)
                yield pyarrow.RecordBatch.from_pylist([{"result": result}])

    return run


def run_in_process(work: str, code: str | None) -> str:
    """The last line that `quorate.campaign.worker` prints for this work.

    The worker's standard input stays open as long as this process lives, and it exits when that
    closes. Raises RuntimeError where it fails: FAILED, the host and the last line of its stderr,
    then more of that.
    """
    environment = dict(os.environ)
    if code is not None:
        environment["PYTHONPATH"] = os.pathsep.join(
            [code, *filter(None, [environment.get("PYTHONPATH")])]
        )
    command = [sys.executable, "-P", "-m", "quorate.campaign.worker"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(work.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:  # it has exited already; its stderr says why
            pass
        output = process.stdout.read().decode()
        if process.wait() != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()[-_STDERR_CHARACTERS:]
            last = words.rpartition("\n")[2] or f"exit code {process.returncode}"
            raise RuntimeError(f"{FAILED} {socket.gethostname()}: {last}\n{words}")
    return output.strip().rpartition("\n")[2]
