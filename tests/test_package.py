"""The wheels in a bare environment, away from the repository: they are complete and run."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
CLUSTER_ID = "Auo5pIz_RXynyYRjkH2osA"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
QUORATE_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "QUORATE_PURE_PYTHON")

pytestmark = pytest.mark.slow


build_native = SimpleNamespace(**runpy.run_path(str(ROOT / "tools" / "build_native.py")))


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


def build(out, *what, **environment):
    """Build what is asked for as `make dist` does, with the environment variables."""
    command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out, *what, ROOT)
    run(command, out, PYTHONPATH=os.environ.get("PYTHONPATH", ""), **environment)


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The sdist, and the wheel that was built from it without the repository and a compiler."""
    out = tmp_path_factory.mktemp("dist")
    build(out, QUORATE_PURE_PYTHON="1")
    return out


@pytest.fixture(scope="module")
def pure_wheel(dist):
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def compiled_wheel(tmp_path_factory):
    """The wheel of the repository, with the parts that `make native` compiled."""
    current = build_native.MANIFEST.exists() and json.loads(
        build_native.MANIFEST.read_text()
    ) == build_native.wanted(build_native.COMPILED)
    if not current and not os.environ.get("CI"):
        pytest.skip("the compiled parts are not current: run 'make native'")
    out = tmp_path_factory.mktemp("compiled")
    build(out, "--wheel")
    (found,) = out.glob("*.whl")
    return found


def installed(wheel, home):
    """The command `quorate` of an environment that has the wheel and its locked dependencies."""
    venv.create(home, with_pip=False)
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    install = (uv, "pip", "install", "--quiet", "--python", home / "bin" / "python")
    run((*install, "--require-hashes", "--requirements", ROOT / "requirements.lock"), home)
    run((*install, "--no-deps", wheel), home)
    return home / "bin" / "quorate"


@pytest.fixture(scope="module")
def pure(pure_wheel, tmp_path_factory):
    return installed(pure_wheel, tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(scope="module")
def compiled(compiled_wheel, tmp_path_factory):
    return installed(compiled_wheel, tmp_path_factory.mktemp("bare") / "venv")


@pytest.fixture(params=["pure", "compiled"])
def quorate(request):
    """The command of each wheel."""
    return request.getfixturevalue(request.param)


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


def assert_complete(names, suffix):
    """The package and nothing else; `suffix` ends the name of a compiled part."""
    tops = {re.sub(r"-.*(\.dist-info)$", r"\1", name.partition("/")[0]) for name in names}
    assert {top for top in tops if not top.endswith(suffix)} == {"quorate", "quorate.dist-info"}
    completions = {f"quorate/cli/completion/quorate.{shell}" for shell in ("bash", "zsh", "fish")}
    assert completions <= set(names)
    assert "quorate/py.typed" in names and "quorate/wire/messages/quorum.py" in names
    development = re.compile(r"(^|/)(tests?|mutants|bench)/|_native\.json$")
    assert [name for name in names if development.search(name)] == []


def test_the_pure_wheel_holds_the_package_alone(pure_wheel):
    names = zipfile.ZipFile(pure_wheel).namelist()
    assert pure_wheel.name.endswith("-py3-none-any.whl")
    assert_complete(names, SUFFIX)
    assert [name for name in names if name.endswith(".so")] == []


def test_the_compiled_wheel_holds_each_compiled_module_and_its_source(compiled_wheel):
    names = set(zipfile.ZipFile(compiled_wheel).namelist())
    assert "none" not in compiled_wheel.name
    assert_complete(names, SUFFIX)
    sources = {f"quorate/{name}" for name in (*build_native.COMPILED, "wire/_native.c")}
    assert sources <= names
    assert {str(Path(name).with_suffix(SUFFIX)) for name in sources} <= names


def test_the_command_is_that_of_the_environment(quorate, tmp_path):
    assert run((quorate, "--version"), tmp_path).startswith("quorate ")
    where = (quorate.with_name("python"), "-c", "import quorate; print(quorate.__file__)")
    assert Path(run(where, tmp_path).strip()).is_relative_to(quorate.parent.parent)


def test_the_compiled_parts_run_where_the_wheel_has_them(pure, compiled, tmp_path):
    code = "import quorate.raft.core, quorate.wire.codec; print(quorate.raft.core.__file__)"
    for quorate, suffix in ((pure, ".py"), (compiled, SUFFIX)):
        assert run((quorate.with_name("python"), "-c", code), tmp_path).strip().endswith(suffix)


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
def test_the_tour_of_the_quickstart_runs(compiled, tmp_path):
    command = (compiled, "quickstart", "--tour", "--data", "quorum")
    assert "All steps succeeded" in run(command, tmp_path)
    assert (tmp_path / "quorum" / "controller-1").is_dir()
