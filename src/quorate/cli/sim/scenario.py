"""`quorate sim scenario`: play scenarios and report where their outcomes differ.

Exit codes: 0 all as written (or written anew), 1 something differs, 2 bad input.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.base.atomic_write import write_atomically
from quorate.cli.options import CONTEXT, ToolCommand
from quorate.cli.sim.options import plant_option

if TYPE_CHECKING:
    from quorate.sim.scenario.rewrite import Difference


@click.command(cls=ToolCommand, context_settings=CONTEXT)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--rewrite", is_flag=True, help="Write the outcomes of now into the files.")
@plant_option
@click.pass_context
def scenario(
    context: click.Context, files: tuple[str, ...], rewrite: bool, bug: str | None
) -> None:
    """Play scenarios: commands and their expected outcomes; '-' reads one from stdin.

    Prints the outcomes that differ. Exit codes: 0 none, 1 some, 2 a file that cannot be played.
    """
    from quorate.sim.scenario.file import STDIN, read_scenario, run_scenario

    if rewrite and STDIN in files:
        raise click.UsageError("--rewrite writes into files, and '-' is none")
    same = True
    for file in files:
        text = read_scenario(file)
        played = run_scenario(text, file)
        if rewrite:
            if played.text != text:
                write_atomically(Path(file), played.text)
            click.echo(f"{file}: {len(played.differences)} outcomes written anew")
            continue
        same = same and not played.differences
        for difference in played.differences:
            _show(file, difference)
        if not played.differences:
            click.echo(f"{file}: as written")
    context.exit(0 if same else 1)


def _show(file: str, difference: Difference) -> None:
    click.echo(f"{file}:{difference.line}: {'; '.join(difference.commands)}")
    for written, found in zip_longest(difference.written, difference.found):
        if written == found:
            click.echo(f"    {written}")
            continue
        if written is not None:
            click.echo(f"  - {written}")
        if found is not None:
            click.echo(f"  + {found}")
