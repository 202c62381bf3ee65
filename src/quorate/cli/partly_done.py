"""The JSON of a command that fails in the middle: what was done, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from quorate.base.errors import QuorateError
from quorate.cli.flat_options import print_json


@contextmanager
def parts_reported(*, as_json: bool, text: Callable[[Any], str] = str) -> Iterator[None]:
    """Print what of a call in several requests was done, when it ends the body with PartlyDoneError.

    text: the name of an item
    """
    try:
        yield
    except QuorateError as error:
        if as_json:
            print_parts(error, text)
        raise


def print_parts(error: QuorateError, text: Callable[[Any], str] = str) -> None:
    """Print the items of a PartlyDoneError; nothing for another error."""
    from quorate.client.admin.outcomes import PartlyDoneError

    if isinstance(error, PartlyDoneError):
        answered = [
            (text(item), None if failed is None else failed.text) for item, failed in error.answered
        ]
        print_partly_done(error, answered, map(text, error.unknown), map(text, error.not_done))


def print_partly_done(
    error: BaseException,
    answered: Iterable[tuple[str, str | None]],
    unknown: Iterable[str],
    not_done: Iterable[str],
) -> None:
    """Print the document `partly-done` of the schema.

    answered: items with their errors, None where they were changed
    unknown: items that may have been changed
    """
    print_json(
        {
            "error": str(error) or type(error).__name__,
            "answered": [{"item": item, "error": reason} for item, reason in answered],
            "unknown": list(unknown),
            "notDone": list(not_done),
        }
    )
