"""How executors without quorate in their Python get the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from quorate.spark.session import package_zip
from spark.cluster import Cluster
from spark.fleet import DYNAMIC, places
from time_budget import one_day_in

IMPORT = "import quorate.formats.batch_records as m; print(m.__file__)"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python that has the packages of this one, but for quorate.

    A line of a .pth file names a folder; the .pth files in that folder, of which one leads to an
    editable quorate, are not read.
    """
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    if ask(python, IMPORT).returncode == 0:
        pytest.skip("quorate is not an editable install here: every Python would find it")
    assert ask(python, "import pyarrow").returncode == 0
    return python


def ask(python: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(python), "-c", program]
    return subprocess.run(
        command, env=clean | environment, capture_output=True, text=True, cwd=python.parent
    )


@pytest.mark.slow
def test_the_zip_is_all_that_is_needed(bare, tmp_path):
    packed = package_zip(tmp_path)
    program = "import quorate.spark.data_source, quorate.spark.audit; " + IMPORT
    found = ask(bare, program, PYTHONPATH=str(packed))
    assert found.stdout.strip() == f"{packed}/quorate/formats/batch_records.py", found.stderr


@pytest.mark.slow
@one_day_in(3, 0)
def test_executors_without_the_package_get_it(bare, tmp_path):
    """The command, on a cluster whose workers can import nothing of ours."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    cluster = Cluster(tmp_path / "cluster", workers=1)
    try:
        command = [sys.executable, "-m", "quorate", "pipeline", "audit", "--json"]
        command += ["--master", cluster.url, "--conf", "spark.executor.memory=512m", "--quiet"]
        command += ["--conf", "spark.driver.host=127.0.0.1", *places("d-divergent")]
        done = subprocess.run(
            command, env=clean | {"PYSPARK_PYTHON": str(bare)}, capture_output=True, text=True
        )
    finally:
        cluster.stop()
    assert done.returncode == 0, done.stderr
    assert [one["cluster_id"] for one in json.loads(done.stdout)["clusters"]] == [DYNAMIC]
    assert "log level" not in done.stderr and "log4j" not in done.stderr  # Spark's own greeting
