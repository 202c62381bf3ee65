"""What of a command was done, and what was not: a failure in the middle lists both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from quorate.base.errors import QuorateError
from quorate.cli.partly_done import print_partly_done


class Steps:
    """Keeps the steps of a command in order, and lists them when it fails in the middle."""

    def __init__(
        self,
        steps: Iterable[str],
        on_failure: str | None = None,
        *,
        as_json: bool,
        verb: str = "done",
    ) -> None:
        """Begin with nothing done.

        on_failure: printed after the lists
        as_json: the lists are printed on stdout, too
        verb: what happens to a step, such as `added`
        """
        self._left = dict.fromkeys(steps)
        self._done: list[str] = []
        self._refused: dict[str, str] = {}
        self._on_failure = on_failure
        self._as_json = as_json
        self._verb = verb

    def done(self, step: str) -> None:
        """Note that a step was made."""
        self._left.pop(step, None)
        self._done.append(step)

    def skip(self, step: str) -> None:
        """Note that a step is not needed."""
        self._left.pop(step, None)

    def refused(self, step: str, reason: str) -> None:
        """Note that the cluster refused a step; it stays one that is not done."""
        self._refused[step] = reason

    @contextmanager
    def in_parts(self, step: Callable[[Any], str]) -> Iterator[None]:
        """Note the steps of a call that fails after some of its requests; `step` is that of an item."""
        try:
            yield
        except QuorateError as error:
            from quorate.client.admin.outcomes import PartlyDoneError

            for item, failed in error.answered if isinstance(error, PartlyDoneError) else ():
                if failed is None:
                    self.done(step(item))
                else:
                    self.refused(step(item), failed.text)
            raise

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Print what was done and what was not, when an error or an interruption ends the body.

        Nothing where nothing was changed.
        """
        try:
            yield
        except (QuorateError, KeyboardInterrupt) as error:
            is_unsure = _is_unsure(error)
            if self._done or is_unsure:
                self._print(is_unsure=is_unsure)
            if self._as_json and (self._done or self._refused or is_unsure):
                self._print_json(error, is_unsure=is_unsure)
            raise

    def _print(self, *, is_unsure: bool) -> None:
        verb = self._verb
        click.echo(f"{verb.capitalize()}: {', '.join(self._done) or 'nothing'}", err=True)
        if self._left:
            head = f"Not {verb}, or not known" if is_unsure else f"Not {verb}"
            click.echo(f"{head}: {', '.join(self._left)}", err=True)
        if self._done and self._on_failure is not None:
            click.echo(self._on_failure, err=True)

    def _print_json(self, error: BaseException, *, is_unsure: bool) -> None:
        open_steps = [step for step in self._left if step not in self._refused]
        print_partly_done(
            error,
            [*((step, None) for step in self._done), *self._refused.items()],
            open_steps if is_unsure else (),
            () if is_unsure else open_steps,
        )


def _is_unsure(error: BaseException) -> bool:
    """Whether steps that are left may have been made."""
    # Imported here: the help of a tool loads no client.
    from quorate.client.admin.outcomes import PartlyDoneError
    from quorate.client.errors import NoResponseError

    if isinstance(error, PartlyDoneError):
        return bool(error.unknown)
    if isinstance(error, NoResponseError):
        return bool(error.note)  # without it the request changes nothing
    return isinstance(error, KeyboardInterrupt)
