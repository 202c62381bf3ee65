"""`quorate sim scenario`: play stories and say where they go another way than written.

Exit codes: 0 all as written (or written anew), 1 something differs, 2 bad input.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.base.whole import write_whole
from quorate.cli.options import CONTEXT
from quorate.cli.sim_given import plant_option

if TYPE_CHECKING:
    from quorate.sim.story.told import Difference


@click.command(context_settings=CONTEXT)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--rewrite", is_flag=True, help="Write the outcomes of now into the files.")
@plant_option
@click.pass_context
def scenario(
    context: click.Context, files: tuple[str, ...], rewrite: bool, bug: str | None
) -> None:
    """Play cluster stories: commands, and what is written to come of them; '-' is one on stdin.

    Prints the outcomes that differ. Exit codes: 0 none, 1 some, 2 a file that cannot be played.
    """
    from quorate.sim.story.file import STDIN, read_story, tell

    if rewrite and STDIN in files:
        raise click.UsageError("--rewrite writes into files, and '-' is none")
    same = True
    for file in files:
        text = read_story(file)
        told = tell(text, file)
        if rewrite:
            if told.text != text:
                write_whole(Path(file), told.text)
            click.echo(f"{file}: {len(told.differences)} outcomes written anew")
            continue
        same = same and not told.differences
        for difference in told.differences:
            _show(file, difference)
        if not told.differences:
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
