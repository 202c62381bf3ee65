"""What the real code did, the specification can do; what no replica may do, it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.sim.render.tla import Line, Tape
from spec.recorded_runs import change_of_voters, simulated, takeover, updated, updated_by_itself
from spec.tlc import Verdict, check, copy_spec

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def check_tape(tape: Tape, folder: Path) -> Verdict:
    copy_spec(folder)
    (folder / "Run.tla").write_text(tape.module())
    (folder / "Run.cfg").write_text(tape.config())
    return check(folder, "QuorateTrace.tla", "Run.cfg")


@pytest.mark.parametrize("run", [takeover, change_of_voters, simulated, updated, updated_by_itself])
def test_the_real_code_is_accepted(run: Callable[[], Tape], tmp_path: Path) -> None:
    tape = run()
    assert len(tape.lines) > 50
    verdict = check_tape(tape, tmp_path)
    assert verdict.broken == "Unfinished", verdict.text


def votes_twice(line: Line) -> Line | None:
    voted = line.voted is not None and line.leader is None and line.role == "unattached"
    return replace(line, voted="n1" if line.voted == "n3" else "n3") if voted else None


def one_too_far(line: Line) -> Line | None:
    return replace(line, hw=line.hw + 1) if line.role == "leader" and line.hw else None


def too_early(line: Line) -> Line | None:
    """The first commit of a leader, before its record is durable anywhere else."""
    fresh = line.role == "leader" and line.hw == 0 and line.durable == 0
    return replace(line, hw=1) if fresh else None


def not_durable(line: Line) -> Line | None:
    return replace(line, durable=line.durable + 1) if line.pending == 1 and line.log else None


def another_epoch(line: Line) -> Line | None:
    """The last record of a follower's log is of another epoch than it was."""
    if line.role != "follower" or line.epoch < 2 or not line.log:
        return None
    last = line.log[-1]
    return replace(line, log=(*line.log[:-1], replace(last, epoch=3 - last.epoch)))


@pytest.mark.parametrize("lie", [votes_twice, one_too_far, too_early, not_durable, another_epoch])
def test_a_lie_is_refused(lie: Callable[[Line], Line | None], tmp_path: Path) -> None:
    """One line is not what it was: TLC comes to it, and not past it."""
    tape = takeover()
    changed = [(at, lie(line)) for at, line in enumerate(tape.lines)]
    at, line = next((at, line) for at, line in changed if line is not None)
    if lie is votes_twice:
        tape.lines.insert(at + 1, line)
        at += 1
    else:
        tape.lines[at] = line
    verdict = check_tape(tape, tmp_path)
    assert verdict.clean, verdict.text
    assert f'<<"reached line", {at + 1}>>' in verdict.text
    assert f'<<"reached line", {at + 2}>>' not in verdict.text


def test_no_two_runs_of_tlc_share_a_folder(tmp_path: Path) -> None:
    """It unpacks its modules, and deletes them when it ends: others lost them beside it."""
    said = check_tape(takeover(), tmp_path).text
    read = re.findall(r"Parsing file (\S+)", said)
    assert read and all(path.startswith(f"{tmp_path}/") for path in read), said
