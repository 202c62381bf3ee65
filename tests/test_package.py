"""The wheel in a bare environment, away from the repository: it is complete and runs."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CLUSTER_ID = "Auo5pIz_RXynyYRjkH2osA"
QUORATE_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "QUORATE_PURE_PYTHON")

pytestmark = pytest.mark.slow


def run(command, cwd, **environment):
    """The output of a command that succeeds, in the environment of a user."""
    clean = {key: value for key, value in os.environ.items() if key not in QUORATE_VARIABLES}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The sdist, and the wheel that was built from it without the repository."""
    out = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    path = os.environ.get("PYTHONPATH", "")
    run(build, out, QUORATE_PURE_PYTHON="1", PYTHONPATH=path)  # compiling takes a minute
    return out


@pytest.fixture(scope="module")
def wheel(dist):
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def quorate(wheel, tmp_path_factory):
    """The command `quorate` of an environment that has the wheel and its locked dependencies."""
    home = tmp_path_factory.mktemp("bare") / "venv"
    venv.create(home, with_pip=False)
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    install = (uv, "pip", "install", "--quiet", "--python", home / "bin" / "python")
    run((*install, "--require-hashes", "--requirements", ROOT / "requirements.lock"), home)
    run((*install, "--no-deps", wheel), home)
    return home / "bin" / "quorate"


def test_the_sdist_holds_what_a_build_needs_and_no_tests(dist):
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "tools/build_native.py",
        "tools/hatch_native.py",
        "tools/native_classes.py",
        "src/quorate/wire/_native.c",
    } <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_wheel_holds_the_package_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    version = re.match(r"quorate-([^-]+)-", wheel.name)[1]
    assert tops == {"quorate", f"quorate-{version}.dist-info"}
    assert wheel.name.endswith("-py3-none-any.whl")
    completions = {f"quorate/cli/completion/quorate.{shell}" for shell in ("bash", "zsh", "fish")}
    assert completions <= set(names)
    assert "quorate/py.typed" in names and "quorate/wire/messages/quorum.py" in names
    development = re.compile(r"(^|/)(tests?|mutants|bench)/|\.so$|_native\.json$")
    assert [name for name in names if development.search(name)] == []


def test_the_command_is_that_of_the_environment(quorate, tmp_path):
    assert run((quorate, "--version"), tmp_path).startswith("quorate ")
    where = (quorate.with_name("python"), "-c", "import quorate; print(quorate.__file__)")
    assert Path(run(where, tmp_path).strip()).is_relative_to(quorate.parent.parent)


def test_storage_format_and_dump_log_run(quorate, tmp_path):
    properties = tmp_path / "server.properties"
    properties.write_text(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n"
        "controller.listener.names=CONTROLLER\nlog.dirs=data\n"
        "controller.quorum.bootstrap.servers=localhost:9093\n"
    )
    command = (quorate, "storage", "format", "--standalone", "-t", CLUSTER_ID, "-c", properties)
    assert "Formatting dynamic metadata voter directory data" in run(command, tmp_path)
    checkpoint = "data/bootstrap.checkpoint"
    dump = (quorate, "dump-log", "--cluster-metadata-decoder", "--json", "--files", checkpoint)
    lines = [json.loads(line) for line in run(dump, tmp_path).splitlines()]
    features = [
        line["data"]["name"] for line in lines if line.get("type") == "FEATURE_LEVEL_RECORD"
    ]
    assert features[0] == "metadata.version"


@pytest.mark.e2e
def test_the_tour_of_the_quickstart_runs(quorate, tmp_path):
    command = (quorate, "quickstart", "--tour", "--data", "quorum")
    assert "All steps succeeded" in run(command, tmp_path)
    assert (tmp_path / "quorum" / "controller-1").is_dir()
