"""`quorate sim nemesis`: real processes, killed, stopped, cut off, on disks that lose and fail.

Exit codes: 0 every promise was kept, 1 one was broken, 2 bad input, 130 interrupted.
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
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, NumberRange, json_option

if TYPE_CHECKING:
    from quorate.nemesis.checks import Broken
    from quorate.nemesis.run import Options, Result, Workload

_JARS: Final = Path(".kafka/libs")
_MIXED_PACE: Final = 3.0
"""A JVM takes seconds to start."""


class Misused(QuorateError):
    exit_code = 2


@click.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim nemesis --seconds 60
  quorate sim nemesis --seconds 600 --members 5 --seed 7 --keep last-run
  quorate sim nemesis --mixed --seconds 120 --kafka-libs .kafka/libs
  quorate sim nemesis --plant forget --only power     a bug that must be caught""",
)
@click.option(
    "--seconds", type=NumberRange(1, 86_400), default=30.0, help="For how long.  [default: 30]"
)
@click.option("--seed", type=click.IntRange(0), help="Of deeds and clients.  [default: any]")
@click.option(
    "--members", type=click.Choice(["3", "5"]), default="3", help="How many.  [default: 3]"
)
@click.option("--only", metavar="KIND,...", help="Do nothing but these; `--only help` lists them.")
@click.option("--plant", metavar="BUG", default="none", help="Plant a bug; `help` lists them.")
@click.option("--mixed", is_flag=True, help="Two controllers of ours and one or more of Kafka's.")
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
    help="Keep everything in this new directory, not only when a promise was broken.",
)
@json_option
def nemesis(as_json: bool, keep: Path | None, **given: Any) -> int:
    """Torment a quorum of real processes on loopback, and hold it to its promises.

    Clients put, get and cas all the while. At the end all is healed; then the quorum must work,
    the clients' history must be linearizable, every acknowledged write must be on every disk, and
    all logs and states must be the same.
    """
    if listed := _listed(given):
        click.echo(listed)
        return 0
    options, workload = _plan(given, keep)
    from quorate.nemesis.run import run

    told = _Told(_ignore if as_json or not sys.stderr.isatty() else _show)
    try:
        result = run(workload, options, told)
    except KeyboardInterrupt:
        if keep is None:
            shutil.rmtree(options.directory, ignore_errors=True)
        click.echo(_ended_early(options, told, given, keep), err=as_json)
        return INTERRUPTED
    except OSError as error:
        raise Misused(f"{options.directory}: {error.strerror or error}") from None
    kept = keep is not None or bool(result.broken)
    if not kept:
        shutil.rmtree(options.directory)
    click.echo(json.dumps(result.facts()) if as_json else _text(result, kept))
    return 1 if result.broken else 0


class _Told:
    """Counts what a run tells on its way, and passes it on."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        self._tell = tell
        self.deeds = 0
        self.seconds = 0.0

    def __call__(self, line: Mapping[str, Any]) -> None:
        self.deeds += line["what"] == "begin"
        self.seconds = line["at_us"] / 1e6
        self._tell(line)


def _ended_early(options: Options, told: _Told, given: dict[str, Any], keep: Path | None) -> str:
    """How far it came, and how to have the same deeds again; a run does not go on in the middle."""
    words = [f"quorate sim nemesis --seed {options.seed} --seconds {options.seconds:g}"]
    words += ["--members", given["members"]]
    words += ["--mixed"] if given["mixed"] else []
    words += [] if given["only"] is None else ["--only", shlex.quote(given["only"])]
    words += [] if given["plant"] == "none" else ["--plant", given["plant"]]
    lines = [
        f"interrupted: {told.deeds} deeds begun, the last step after {told.seconds:.1f} of "
        f"{options.seconds:g} s; nothing was judged"
    ]
    if keep is not None:
        lines.append(f"what happened until now is in {shlex.quote(str(keep))}")
    return "\n".join([*lines, "the same deeds again:", f"  {' '.join(words)}"])


def _show(line: Mapping[str, Any]) -> None:
    victim = line.get("victim", line.get("node"))
    click.echo(
        f"{line['at_us'] / 1e6:7.1f} s  {line['what']:9} {line.get('kind', '')} "
        f"{'' if victim is None else f'node {victim}'} {line.get('words', line.get('error', ''))}",
        err=True,
    )


def _ignore(line: Mapping[str, Any]) -> None:
    """Nobody looks."""


def _listed(given: dict[str, Any]) -> str:
    """The list that `help` in place of a name asks for."""
    from quorate.nemesis.plan import KINDS
    from quorate.nemesis.planted import BUGS

    lists = {"only": KINDS, "plant": BUGS}
    asked = [lists[name] for name in lists if given[name] == "help"]
    return "\n".join(f"{name:34} {text}" for known in asked for name, text in known.items())


def _plan(given: dict[str, Any], keep: Path | None) -> tuple[Options, Workload]:
    import secrets

    from quorate.nemesis.plan import DISK_KINDS, KINDS, draw
    from quorate.nemesis.planted import BUGS
    from quorate.nemesis.run import Options

    if given["plant"] not in BUGS:
        raise Misused(f"no such bug: '{given['plant']}'; `--plant help` lists them")
    mixed, members = given["mixed"], int(given["members"])
    kinds = [kind for kind in KINDS if not (mixed and kind in DISK_KINDS)]
    if given["only"] is not None:
        asked = [kind.strip() for kind in given["only"].split(",")]
        if unknown := [kind for kind in asked if kind not in kinds]:
            raise Misused(f"no such deed: '{unknown[0]}'; there are {', '.join(kinds)}")
        kinds = asked
    if mixed and given["plant"] != "none":
        raise Misused("bugs are planted into the store's members: leave out --mixed")
    seed = secrets.randbits(32) if given["seed"] is None else given["seed"]
    pace = _MIXED_PACE if mixed else 1.0
    deeds = draw(seed, given["seconds"], kinds, pace)
    if not deeds:
        raise Misused(f"there is no deed in the first {pace:g} s: give more --seconds")
    workload: Workload
    if mixed:
        from quorate.nemesis.controllers import ControllerWorkload

        workload = ControllerWorkload(given["kafka_libs"], members)
    else:
        from quorate.nemesis.stores import StoreWorkload

        workload = StoreWorkload(members, plant=given["plant"])
    directory = keep or Path(tempfile.mkdtemp(prefix="quorate-nemesis-"))
    return Options(seed, given["seconds"], deeds, directory.absolute()), workload


def _text(result: Result, kept: bool) -> str:
    operations = ", ".join(f"{number} {what}" for what, number in result.outcomes.items())
    lines = [
        f"seed {result.options.seed}, {result.options.seconds:g} s: "
        f"{sum(result.deeds.values())} deeds, {result.lives} processes",
        f"  deeds        {_counted(result.deeds)}",
        f"  operations   {operations or 'none'}",
        f"  leaders      {', '.join(result.leaders) or 'none'}",
        f"  longest time without an acknowledged write: {result.outage_ms} ms",
    ]
    if result.failed:
        lines.append(f"  failed       {_counted(result.failed)}")
    if result.left_out:
        lines.append(f"  left out     {_counted(result.left_out)}")
    if result.healed_ms >= 0:
        lines.append(f"  whole again {result.healed_ms} ms after the end")
    lines += _broken(result.broken)
    if not result.broken:
        lines.append("no promise was broken")
    if kept:
        lines += _where_to_look(result)
    return "\n".join(lines)


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or "none"


def _broken(broken: Sequence[Broken]) -> list[str]:
    """Each promise once, as it was broken first: a node that dies at every start breaks it again
    and again."""
    first = {one.promise: one.how for one in reversed(broken)}
    times = Counter(one.promise for one in broken)
    lines = []
    for promise in times:
        more = times[promise] - 1
        again = f" (and {more} more of this in result.json)" if more else ""
        lines.append(f"BROKEN: {promise}: {first[promise]}{again}")
    return lines


def _where_to_look(result: Result) -> list[str]:
    directory = shlex.quote(str(result.options.directory))
    return [
        f"Everything is kept in {directory}:",
        "  result.json     what this says, and every broken promise",
        "  history.jsonl   what clients asked and were told, a line each",
        "  deeds.jsonl     what was done to the nodes, and when",
        "  */node.log      what each node said",
        f"  quorate dump-log --files {directory}/NODE/data/__cluster_metadata-0/*.log",
    ]
