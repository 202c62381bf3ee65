"""`quorate sim nemesis`: fault injection into a quorum of real processes.

Exit codes: 0 every invariant holds, 1 one is violated, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.columns import fold
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, NumberRange, ToolCommand, WholeNumber, json_option

if TYPE_CHECKING:
    from quorate.nemesis.checks import Violation
    from quorate.nemesis.run import NemesisOptions, NemesisResult, NemesisWorkload

_JARS: Final = Path(".kafka/libs")
_MIXED_PACE: Final = 3.0
"""A JVM takes seconds to start."""


class InvalidOptionsError(QuorateError):
    """The options fit nothing that can be run."""

    exit_code = 2


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim nemesis --seconds 60
  quorate sim nemesis --seconds 600 --members 5 --seed 7 --keep last-run
  quorate sim nemesis --mixed --seconds 120 --kafka-libs .kafka/libs""",
)
@click.option(
    "--seconds",
    type=NumberRange(1, 86_400),
    default=30.0,
    help="Duration of the faults.  [default: 30]",
)
@click.option(
    "--seed", type=WholeNumber(0), help="Seed of the faults and clients.  [default: random]"
)
@click.option(
    "--members", type=click.Choice(["3", "5"]), default="3", help="Number of nodes.  [default: 3]"
)
@click.option(
    "--only",
    metavar="KIND,...",
    help="Inject these kinds of faults only; `--only help` lists them.",
)
@click.option(
    "--plant",
    metavar="MODULE:NAME",
    hidden=True,
    help="Plant a mutant in each member, in memory.",
)
@click.option(
    "--mixed", is_flag=True, help="Run a minority of Kafka's controllers beside Quorate's."
)
@click.option(
    "--kafka-libs",
    envvar="QUORATE_KAFKA_LIBS",
    type=click.Path(path_type=Path),
    default=_JARS,
    help="Kafka's jars, for --mixed.  [default: .kafka/libs, or $QUORATE_KAFKA_LIBS]",
)
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep all files in this new directory. Default: only where an invariant is violated.",
)
@json_option
def nemesis(as_json: bool, keep: Path | None, **given: Any) -> int:
    """Inject faults into a quorum of real processes on loopback, and check its invariants.

    Clients put, get and compare-and-set meanwhile. At the end all faults are repaired. Then the
    quorum must accept writes, and the clients' history must be linearizable. Every acknowledged
    write must be on every disk, and all logs and states must be equal.
    """
    if given["only"] == "help":
        from quorate.nemesis.plan import FAULT_KINDS

        lines = [f"{name:34} {text}" for name, text in FAULT_KINDS.items()]
        click.echo("\n".join(fold(lines)))
        return 0
    options, workload = _plan(given, keep)
    from quorate.nemesis.run import run_nemesis

    progress = _NemesisProgress(_ignore if as_json or not sys.stderr.isatty() else _show)
    try:
        result = run_nemesis(workload, options, progress)
    except KeyboardInterrupt:
        if keep is None:
            shutil.rmtree(options.directory, ignore_errors=True)
        click.echo(_ended_early(options, progress, given, keep), err=as_json)
        return INTERRUPTED
    except OSError as error:
        raise InvalidOptionsError(f"{options.directory}: {error.strerror or error}") from None
    kept = keep is not None or bool(result.violations)
    if not kept:
        shutil.rmtree(options.directory)
    click.echo(json.dumps(result.to_json()) if as_json else _text(result, kept))
    return 1 if result.violations else 0


class _NemesisProgress:
    """Counts the events of a run and passes them on."""

    def __init__(self, on_event: Callable[[Mapping[str, Any]], None]) -> None:
        self._on_event = on_event
        self.faults = 0
        self.seconds = 0.0

    def __call__(self, event: Mapping[str, Any]) -> None:
        self.faults += event["what"] == "begin"
        self.seconds = event["at_us"] / 1e6
        self._on_event(event)


def _ended_early(
    options: NemesisOptions, progress: _NemesisProgress, given: dict[str, Any], keep: Path | None
) -> str:
    """What was done, and the command that injects the same faults; a run cannot be resumed."""
    words = [f"quorate sim nemesis --seed {options.seed} --seconds {options.seconds:g}"]
    words += ["--members", given["members"]]
    words += ["--mixed"] if given["mixed"] else []
    words += [] if given["only"] is None else ["--only", shlex.quote(given["only"])]
    words += [] if given["plant"] is None else ["--plant", given["plant"]]
    lines = [
        f"interrupted: {progress.faults} faults begun, the last event after "
        f"{progress.seconds:.1f} of {options.seconds:g} s; no check was run"
    ]
    if keep is not None:
        lines.append(f"the files until now are in {shlex.quote(str(keep))}")
    return "\n".join([*lines, "the same faults again:", f"  {' '.join(words)}"])


def _show(event: Mapping[str, Any]) -> None:
    node = event.get("node")
    click.echo(
        f"{event['at_us'] / 1e6:7.1f} s  {event['what']:9} {event.get('kind', '')} "
        f"{'' if node is None else f'node {node}'} {event.get('text', event.get('error', ''))}",
        err=True,
    )


def _ignore(event: Mapping[str, Any]) -> None:
    """Show nothing."""


def _plan(given: dict[str, Any], keep: Path | None) -> tuple[NemesisOptions, NemesisWorkload]:
    import secrets

    from quorate.nemesis.plan import DISK_FAULT_KINDS, FAULT_KINDS, draw_faults
    from quorate.nemesis.run import NemesisOptions
    from quorate.sim.run.plant import check_mutant

    if given["plant"] is not None:
        check_mutant(given["plant"])
    mixed, members = given["mixed"], int(given["members"])
    kinds = [kind for kind in FAULT_KINDS if not (mixed and kind in DISK_FAULT_KINDS)]
    if given["only"] is not None:
        asked = [kind.strip() for kind in given["only"].split(",")]
        if unknown := [kind for kind in asked if kind not in kinds]:
            raise InvalidOptionsError(
                f"no such kind of fault: '{unknown[0]}'; there are {', '.join(kinds)}"
            )
        kinds = asked
    if mixed and given["plant"] is not None:
        raise InvalidOptionsError("only members of the store can have a bug: leave out --mixed")
    seed = secrets.randbits(32) if given["seed"] is None else given["seed"]
    pace = _MIXED_PACE if mixed else 1.0
    faults = draw_faults(seed, given["seconds"], kinds, pace)
    if not faults:
        raise InvalidOptionsError(f"no fault begins in the first {pace:g} s: give more --seconds")
    workload: NemesisWorkload
    if mixed:
        from quorate.nemesis.mixed_workload import ControllerWorkload

        workload = ControllerWorkload(given["kafka_libs"], members)
    else:
        from quorate.nemesis.store_workload import StoreWorkload

        workload = StoreWorkload(members, mutant=given["plant"])
    directory = keep or Path(tempfile.mkdtemp(prefix="quorate-nemesis-"))
    return NemesisOptions(seed, given["seconds"], faults, directory.absolute()), workload


def _text(result: NemesisResult, kept: bool) -> str:
    operations = ", ".join(f"{number} {what}" for what, number in result.outcomes.items())
    lines = [
        f"seed {result.options.seed}, {result.options.seconds:g} s: "
        f"{sum(result.faults.values())} faults, {result.processes} processes",
        f"  faults       {_counted(result.faults)}",
        f"  operations   {operations or 'none'}",
        f"  leaders      {', '.join(result.leaders) or 'none'}",
        f"  longest time without an acknowledged write: {result.outage_ms} ms",
    ]
    if result.failed:
        lines.append(f"  failed       {_counted(result.failed)}")
    if result.skipped:
        lines.append(f"  skipped      {_counted(result.skipped)}")
    if result.recovery_ms >= 0:
        lines.append(f"  recovered {result.recovery_ms} ms after the last repair")
    lines += _violations(result.violations)
    if not result.violations:
        lines.append("no invariant was violated")
    if kept:
        lines += _where_to_look(result)
    return "\n".join(lines)


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "none"


def _violations(violations: Sequence[Violation]) -> list[str]:
    """Each invariant once, with its first violation: a node that ends at every start has many."""
    first = {one.invariant: one.details for one in reversed(violations)}
    times = Counter(one.invariant for one in violations)
    lines = []
    for invariant in times:
        more = times[invariant] - 1
        again = f" (and {more} more of this in result.json)" if more else ""
        lines.append(f"VIOLATED: {invariant}: {first[invariant]}{again}")
    return lines


def _where_to_look(result: NemesisResult) -> list[str]:
    directory = shlex.quote(str(result.options.directory))
    return [
        f"All files are in {directory}:",
        "  result.json     this report, with every violation",
        "  history.jsonl   the clients' operations, one per line",
        "  faults.jsonl    the faults, with their times",
        "  */node.log      the log of each node",
        f"  quorate dump-log --files {directory}/NODE/data/__cluster_metadata-0/*.log",
    ]
