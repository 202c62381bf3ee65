"""Hunts mutants: each in a process of its own, seed after seed, until a check fails.

`python -m quorate.sim.mutants.hunt NAME FIRST END` is that process; it prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from quorate.base.errors import QuorateError
from quorate.sim.mutants.catalog import MUTANTS
from quorate.sim.mutants.mutant import Mutant, StaleMutant
from quorate.sim.mutants.plant import plant


@dataclass(frozen=True, slots=True)
class Catch:
    """What came of one hunt. `check` None: the mutant lives. `tried` counts seeds; `seconds` are of
    the processor."""

    mutant: str
    check: str | None
    message: str
    seed: int | None
    tried: int
    events: int
    seconds: float


class NoSuchMutant(QuorateError):
    """Says which come near."""

    exit_code = 2


def find(name: str) -> Mutant:
    """The mutant of this name. Raises NoSuchMutant."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    close = get_close_matches(name, [mutant.name for mutant in MUTANTS], cutoff=0.4)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise NoSuchMutant(
        f"there is no mutant '{name}'; {meant}'quorate sim mutants --list' says what there is"
    )


def hunt_here(mutant: Mutant, seeds: range) -> Catch:
    """Plant it into this very process, which is of no other use afterwards.

    A mutant that cannot even be imported counts as caught. Raises StaleMutant.
    """
    began, events = time.process_time(), 0
    try:
        plant(mutant)
        from quorate.sim.run import checked, run_seed
    except StaleMutant:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        return Catch(mutant.name, "exception", said, None, 0, 0, seconds)
    for tried, seed in enumerate(seeds, 1):
        outcome = run_seed(seed, checked())
        events += outcome.events
        if outcome.failure is not None:
            seconds = time.process_time() - began
            check, message = outcome.failure.check, outcome.failure.message
            return Catch(mutant.name, check, message, seed, tried, events, seconds)
    seconds = time.process_time() - began
    return Catch(mutant.name, None, "", None, len(seeds), events, seconds)


def hunt(mutant: Mutant, seeds: range) -> Catch:
    """In a fresh process.

    Raises QuorateError where the code to mutate is not there any more, and where that process did
    not come to its end: who kills a hunter has caught nothing.
    """
    command = [sys.executable, "-m", __name__, mutant.name, str(seeds.start), str(seeds.stop)]
    tether, held = os.pipe()
    try:
        done = subprocess.run(command, stdin=tether, capture_output=True, text=True, check=False)
    finally:
        os.close(tether)
        os.close(held)
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        return Catch(**json.loads(lines[-1]))
    if done.returncode == _STALE:
        raise QuorateError(done.stderr.strip())
    code = done.returncode
    how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
    said = done.stderr.strip().rpartition("\n")[2]
    raise QuorateError(f"the hunt of {mutant.name} ended {how}{said and f': {said}'}")


def hunt_all(mutants: Sequence[Mutant], seeds: range, jobs: int) -> Iterator[Catch]:
    """Every one of them, `jobs` at a time, as they are done."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(hunt, mutant, seeds) for mutant in mutants]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


_STALE = 3


def _end_with_parent() -> None:
    """The parent holds the other end of the pipe that is this process's input, however it ends."""
    os.read(0, 1)
    os._exit(1)


def _main(name: str, first: str, end: str) -> int:
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        catch = hunt_here(find(name), range(int(first), int(end)))
    except QuorateError as error:
        print(error, file=sys.stderr)
        return _STALE
    print(json.dumps(asdict(catch)))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
