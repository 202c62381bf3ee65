"""`quorate sim`: worlds in which everything goes wrong that can, each drawn from a seed."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from functools import partial
from typing import Final

import click

from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, OrderedGroup, WholeNumber, json_option
from quorate.cli.sim.campaign import campaign
from quorate.cli.sim.explore import explore
from quorate.cli.sim.nemesis import nemesis
from quorate.cli.sim.options import plant_option, scenario_option, seed, seeds_option, with_bug
from quorate.cli.sim.progress import WorldTotals, ended_early, progress
from quorate.cli.sim.replay import replay
from quorate.cli.sim.scenario import scenario
from quorate.cli.sim.shrink import shrink

FAILED: Final = 1


@click.group(cls=OrderedGroup, context_settings=CONTEXT)
@click.pass_context
def sim(context: click.Context) -> None:
    """Run the production code of whole quorums in a deterministic simulator with fault injection.

    A seed determines the whole run: a failure is reproducible on every machine.
    """
    # SIGTERM and SIGHUP interrupt as SIGINT does: partial results are written then too.
    for number in (signal.SIGTERM, signal.SIGHUP):
        before = signal.getsignal(number)
        if before is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, signal.default_int_handler)
            context.call_on_close(partial(signal.signal, number, before))


# -- run ----------------------------------------------------------------------------------------
@sim.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim run --seeds 0..1000 --jobs 4
  quorate sim run --seeds 42 --json
  quorate sim run --seeds 0..1000 --scenario canElectInitialLeader
  quorate sim run --seeds 0..1000 --controllers""",
)
@seeds_option
@scenario_option
@click.option(
    "--controllers",
    is_flag=True,
    help="Let the seeds draw worlds of whole controllers, with clients that write metadata.",
)
@click.option("--jobs", type=WholeNumber(1, 1024), default=1, help="Processes.  [default: 1]")
@click.option("--keep-going", is_flag=True, help="Run all seeds even when one fails.")
@plant_option
@json_option
def run(
    seeds: range,
    scenario: str | None,
    controllers: bool,
    jobs: int,
    keep_going: bool,
    bug: str | None,
    as_json: bool,
) -> int:
    """Run seeds with every check on, up to the first that fails; exit code 1 then."""
    from quorate.sim.plan.draw_controllers import CONTROLLERS
    from quorate.sim.run.pool import run_seeds

    if controllers:
        if scenario is not None:
            raise click.UsageError("--controllers has no --scenario")
        scenario = CONTROLLERS  # the seeds draw another family of worlds, as with a scenario
    total, left, again = WorldTotals(scenario, bug), set(seeds), None
    try:
        with (
            progress(len(seeds), as_json) as show,
            closing(run_seeds(seeds, jobs, scenario=scenario, bug=bug)) as outcomes,
        ):
            for outcome in outcomes:
                total.add(outcome)
                left.discard(outcome.seed)
                show.add(outcome, total)
                if outcome.failure is not None and not keep_going:
                    break
    except KeyboardInterrupt:
        again = _rest(range(min(left, default=seeds.stop), seeds.stop), scenario, jobs, keep_going)
        again = with_bug(again, bug)
    if as_json:
        click.echo(json.dumps({**total.facts(), "go_on": again}))
    else:
        click.echo(total.text())
        if again is not None:
            click.echo(ended_early("interrupted", total.worlds, len(seeds), "seeds", again))
    if again is not None:
        return INTERRUPTED
    return FAILED if total.failures else 0


def _rest(seeds: range, scenario: str | None, jobs: int, keep_going: bool) -> str:
    """The command that runs what an interrupted one has not; with many jobs a few seeds more."""
    words = ["quorate sim run --seeds", f"{seeds.start}..{seeds.stop}"]
    words += [] if scenario is None else ["--scenario", scenario]
    words += [] if jobs == 1 else ["--jobs", str(jobs)]
    words += ["--keep-going"] if keep_going else []
    return " ".join(words)


sim.add_command(replay)


@sim.command(context_settings=CONTEXT)
@click.argument("seed", callback=seed)
@scenario_option
def plan(seed: int, scenario: str | None) -> None:
    """Print the plan that a seed draws, for `sim replay`."""
    from quorate.sim.plan.text import plan_text
    from quorate.sim.run.run import drawn

    click.echo(plan_text(drawn(seed, scenario)), nl=False)


sim.add_command(campaign)
sim.add_command(shrink)
sim.add_command(scenario)
sim.add_command(explore)
sim.add_command(nemesis)
