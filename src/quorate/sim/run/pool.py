"""Runs many seeds on several processes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Final

from quorate.base.errors import QuorateError
from quorate.sim.run.run import WorldOutcome, checked, run_seed
from quorate.sim.run.worker import begin, is_wanted
from quorate.sim.world.observer import Observer

_SHARE: Final = 8
"""The number of seeds that a process takes at a time."""


class WorkerLostError(QuorateError):
    """A worker process was ended from outside."""

    exit_code = 70


def run_seeds(
    seeds: Sequence[int],
    jobs: int,
    watch: Callable[[], list[Observer]] = checked,
    scenario: str | None = None,
    bug: str | None = None,
) -> Generator[WorldOutcome, None, None]:
    """The outcome of every seed, in order of completion; `jobs` 1: in this process.

    `watch`, a function of a module, makes the observers of one world; by default all checks.
    `scenario`: one of SCENARIOS or CONTROLLERS. `bug`: a mutant that is planted in this process
    already. The worker processes plant it too. Raises WorkerLostError.
    """
    if jobs == 1:
        for seed in seeds:
            yield run_seed(seed, watch(), scenario)
        return
    try:
        yield from _run_on_many(seeds, jobs, watch, scenario, bug)
        return
    except BrokenProcessPool:
        pass
    gc.collect()  # the error and the pool refer to each other; frees the pool's pipes and processes
    raise WorkerLostError("a process that ran worlds was ended from outside (out of memory?)")


def _run_on_many(
    seeds: Sequence[int],
    jobs: int,
    watch: Callable[[], list[Observer]],
    scenario: str | None,
    bug: str | None,
) -> Generator[WorldOutcome, None, None]:
    shares = (seeds[at : at + _SHARE] for at in range(0, len(seeds), _SHARE))
    fresh = get_context("spawn")
    over = fresh.Event()
    with ProcessPoolExecutor(jobs, fresh, initializer=begin, initargs=(over, bug)) as pool:
        waiting: set[Future[list[WorldOutcome]]] = set()
        try:
            for share in shares:
                waiting.add(pool.submit(_run, share, watch, scenario))
                if len(waiting) > 2 * jobs:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield from future.result()
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield from future.result()
        finally:
            over.set()
            for future in waiting:
                future.cancel()


def _run(
    seeds: Sequence[int], watch: Callable[[], list[Observer]], scenario: str | None
) -> list[WorldOutcome]:
    return [run_seed(seed, watch(), scenario) for seed in seeds if is_wanted()]
