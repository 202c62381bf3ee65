"""What the quickstarts that end by themselves share: a quorum to show, and the text of a step."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click

from quorate.cli.quickstart.quorum_client import open_quorum
from quorate.cli.quickstart.supervisor import Supervisor

_WIDTH: Final = 160


@contextmanager
def running_quorum(
    data: Path | None, controllers: int | None, name: str, *, secure: bool = False
) -> Iterator[Supervisor]:
    """The controllers of `data` as separate processes, which stop at the end.

    Without `data` they live in a temporary directory, which is removed; `name` is part of its name.
    Raises QuorateError when they cannot be formatted or started.
    """
    with ExitStack() as stack:
        if data is None:
            data = Path(tempfile.mkdtemp(prefix=f"quorate-{name}-"))
            stack.callback(shutil.rmtree, data, ignore_errors=True)
        quorum = stack.enter_context(Supervisor(data))
        show_step("Start the controllers as separate processes")
        open_quorum(quorum, controllers, secure=secure)
        quorum.start_all()
        yield quorum


def show_step(text: str) -> None:
    """Print the heading of a step."""
    click.secho(f"\n== {text}", bold=True)


def show_line(line: str) -> None:
    """Print a line that belongs to a step; a long one is cut."""
    click.echo(f"   {line if len(line) <= _WIDTH else line[:_WIDTH] + ' ...'}")
