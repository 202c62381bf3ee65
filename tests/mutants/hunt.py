"""Hunt mutants: each in a process of its own, seed after seed, until a check fails.

`python -m mutants.hunt NAME FIRST END` is that process; it prints one line of JSON.
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

from mutants import plant
from quorate.base.errors import QuorateError


@dataclass(frozen=True, slots=True)
class Catch:
    """The result of one hunt.

    `check`: the check that failed, None where the mutant survives. `tried`: how many seeds ran.
    `seconds`: processor time.
    """

    mutant: str
    check: str | None
    message: str
    seed: int | None
    tried: int
    events: int
    seconds: float


def hunt_here(mutant: str, seeds: range) -> Catch:
    """Plant it into this very process, which is of no other use afterwards.

    A mutant with which the simulator cannot even be imported counts as caught. Raises
    UnknownMutantError and StaleMutantError.
    """
    began, events = time.process_time(), 0
    try:
        plant(mutant)
        from quorate.sim.run.run import checked, run_seed
    except QuorateError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - began
        return Catch(mutant, "exception", said, None, 0, 0, seconds)
    for tried, seed in enumerate(seeds, 1):
        outcome = run_seed(seed, checked())
        events += outcome.events
        if outcome.failure is not None:
            seconds = time.process_time() - began
            check, message = outcome.failure.check, outcome.failure.message
            return Catch(mutant, check, message, seed, tried, events, seconds)
    seconds = time.process_time() - began
    return Catch(mutant, None, "", None, len(seeds), events, seconds)


def hunt(mutant: str, seeds: range) -> Catch:
    """In a fresh process.

    Raises QuorateError where the mutant is stale, and where the process was ended from outside: a
    killed process has caught nothing.
    """
    command = [sys.executable, "-m", __name__, mutant, str(seeds.start), str(seeds.stop)]
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
    raise QuorateError(f"the hunt of {mutant} ended {how}{said and f': {said}'}")


def hunt_all(mutants: Sequence[str], seeds: range, jobs: int) -> Iterator[Catch]:
    """Every one of them, `jobs` at a time, in the order in which they end."""
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
        catch = hunt_here(name, range(int(first), int(end)))
    except QuorateError as error:
        print(error, file=sys.stderr)
        return _STALE
    print(json.dumps(asdict(catch)))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
