"""What of a command was done, and what was not: a failure in the middle lists both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click

from quorate.base.errors import QuorateError
from quorate.client.connection import NoResponseError


class Steps:
    """Keeps the steps of a command in order. `on_failure` is printed after the two lists."""

    def __init__(self, steps: Iterable[str], on_failure: str | None = None) -> None:
        self._left = dict.fromkeys(steps)
        self._done: list[str] = []
        self._on_failure = on_failure

    def done(self, step: str) -> None:
        """Note that a step was made."""
        self._left.pop(step, None)
        self._done.append(step)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Print on stderr what was done and what was not, when an error or an interruption ends the body."""
        try:
            yield
        except (QuorateError, KeyboardInterrupt) as error:
            if self._done:
                click.echo(f"Done: {', '.join(self._done)}", err=True)
            else:
                click.echo("Done: nothing", err=True)
            if self._left:
                unsure = isinstance(error, NoResponseError | KeyboardInterrupt)
                head = "Not done, or not known" if unsure else "Not done"
                click.echo(f"{head}: {', '.join(self._left)}", err=True)
            if self._done and self._on_failure is not None:
                click.echo(self._on_failure, err=True)
            raise
