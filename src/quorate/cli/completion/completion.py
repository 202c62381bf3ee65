"""`quorate completion`: prints the completion file of a shell.

`python tools/write_completion.py` makes the files beside this module from the tools' commands and
options, so that a shell completes without starting Python.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

import click

from quorate.cli.options import CONTEXT, ToolCommand

SHELLS: Final = ("bash", "zsh", "fish")
_EPILOG: Final = """\
\b
Examples:
  quorate completion bash > ~/.local/share/bash-completion/completions/quorate
  quorate completion zsh > ~/.zfunc/_quorate      # with fpath+=~/.zfunc before compinit
  quorate completion fish > ~/.config/fish/completions/quorate.fish
"""


@click.command(cls=ToolCommand, context_settings=CONTEXT, epilog=_EPILOG)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the completion file of a shell: bash, zsh or fish.

    The file completes tools, commands, options and their fixed values without starting Python.
    """
    click.echo(
        files("quorate.cli.completion").joinpath(f"quorate.{shell}").read_text("utf-8"), nl=False
    )
    return 0
