"""The digest of the sources: it covers all that a world is made of, and nothing else."""

import shutil
from pathlib import Path

import pytest

import quorate
from quorate.sim.run import version

PACKAGE = Path(quorate.__file__).parent
OF_A_WORLD = (
    *("base", "broker", "config_definitions", "controller", "formats", "metadata", "node", "raft"),
    *("replica", "security", "sim", "storage", "verify", "wire"),
)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The sources, to be edited."""
    shutil.copytree(PACKAGE, tmp_path / "quorate", ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    monkeypatch.setattr(version, "_PACKAGE", tmp_path / "quorate")
    version.packages_of_a_world.cache_clear()
    yield tmp_path / "quorate"
    version.packages_of_a_world.cache_clear()


def test_a_world_is_made_of_what_the_simulator_imports():
    assert version.packages_of_a_world() == OF_A_WORLD


def test_an_edit_in_each_package_of_a_world_changes_the_digest(copy):
    digests = [version.source_digest()]
    for package in OF_A_WORLD:
        with (copy / package / "__init__.py").open("a") as source:
            source.write("# edited\n")
        digests.append(version.source_digest())
    assert len(set(digests)) == 1 + len(OF_A_WORLD)


def test_an_edit_elsewhere_does_not_change_the_digest(copy):
    digest = version.source_digest()
    (copy / "cli" / "main.py").write_text("")
    assert version.source_digest() == digest


def test_a_new_import_adds_its_package(copy):
    with (copy / "security" / "__init__.py").open("a") as source:
        source.write("\ndef late():\n    import quorate.log_dirs\n")
    assert {*OF_A_WORLD, "log_dirs"} <= set(version.packages_of_a_world())
