"""How work reaches the workers: each piece in a fresh process, started by a task of Spark.

A fresh process has the code that it is told to have, and a bug planted into it is gone with it,
while Spark's own Python processes live on from task to task. This module travels to the workers
by value, as text of its own: on their side it imports nothing of this package, which may not be
installed there.
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

TOLD: Final = "told string"
"""The column that comes back: one line of JSON for each piece of work."""
FAILED: Final = "a process of the campaign failed on"
_SAYS: Final = 2000
"""Characters of what a process says at its end."""


def spread(pieces: DataFrame, common: dict[str, Any], archive: str | None) -> DataFrame:
    """One process for each row of `pieces`; the rows are what those say, in the column `told`.

    A process gets the row and `common`, as one piece of JSON. `archive` is the name under which
    `ship` has sent the code; None: it is installed where the tasks run.
    """
    import pyspark.cloudpickle as pickle

    pickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    return pieces.mapInArrow(_task(common, archive), TOLD)


def _task(
    common: dict[str, Any], archive: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import SparkFiles

        code = None if archive is None else SparkFiles.get(archive)
        for batch in batches:
            for row in batch.to_pylist():
                told = in_a_process(json.dumps({**common, **row}), code)
                yield pyarrow.RecordBatch.from_pylist([{"told": told}])

    return run


def in_a_process(work: str, code: str | None) -> str:
    """The last line that `quorate.campaign.worker` prints for this work.

    Its standard input stays open as long as this process lives; it ends with it. Raises
    RuntimeError where it fails: after FAILED the host and its last line, then more of what it said.
    """
    environment = dict(os.environ)
    if code is not None:
        environment["PYTHONPATH"] = os.pathsep.join(
            [code, *filter(None, [environment.get("PYTHONPATH")])]
        )
    command = [sys.executable, "-P", "-m", "quorate.campaign.worker"]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=environment
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(work.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:  # it has ended already, and says why
            pass
        told = process.stdout.read().decode()
        if process.wait() != 0:
            said.seek(0)
            words = said.read().decode(errors="replace").strip()[-_SAYS:]
            last = words.rpartition("\n")[2] or f"exit code {process.returncode}"
            raise RuntimeError(f"{FAILED} {socket.gethostname()}: {last}\n{words}")
    return told.strip().rpartition("\n")[2]
