"""This package's own code on its way to the workers of a cluster, as an archive of Spark's.

An archive and no `--py-files`: Spark unpacks it, and the code reads files that lie beside it.
"""

from __future__ import annotations

import tempfile
import zipfile
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import quorate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = Path(quorate.__file__).parent


def is_remote(spark: SparkSession) -> bool:
    """May the tasks run on other machines than the driver? Then the code must get there."""
    return not str(spark.sparkContext.master).startswith("local")


def ship(spark: SparkSession) -> str:
    """Send the package to all executors of the session, once; the name of its folder there."""
    path, name = _archive()
    context = spark.sparkContext
    if not any(uri.endswith(f"#{name}") for uri in context.listArchives):
        context.addArchive(f"{path}#{name}")
    return name


@cache
def _archive() -> tuple[Path, str]:
    """A zip file of the package, and a name that says what is in it.

    It is there until this process ends: executors that come late fetch it late.
    """
    digest = blake2b(digest_size=8)
    path = Path(_home().name) / "quorate.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                inside, data = str(file.relative_to(_PACKAGE.parent)), file.read_bytes()
                digest.update(f"{inside}\0{len(data)}\0".encode() + data)
                archive.writestr(inside, data)
    return path, f"quorate-{digest.hexdigest()}"


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quorate-")
