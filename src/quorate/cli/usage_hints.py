"""What to say of a wrong word on the command line: what is expected, and the nearest right form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import click

_EXTRA: Final = re.compile(r"Got unexpected extra arguments? \(([^\s)]+)")
_ALIKE: Final = 0.8
"""For a word without dashes, which need not mean an option at all."""


def missing_value(name: str, option: click.Option, following: str | None) -> click.UsageError:
    """The error about an option that needs a value, where another option or nothing follows."""
    but = "" if following is None else f", but {following!r} follows"
    text = f"Option {name!r} requires an argument{but}: {name} {_value_name(option)}"
    return click.BadOptionUsage(name, text)


def _value_name(option: click.Option) -> str:
    """What stands for the option's value in help texts."""
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.metavar or option.type.name.upper().removesuffix(" RANGE")


@contextmanager
def with_hints(ctx: click.Context, command: click.Command) -> Iterator[None]:
    """Complete click's errors about words of a command, and let each name the command."""
    try:
        yield
    except click.NoSuchOption as error:
        name = error.option_name
        message = error.message + _place_of_option(ctx, command, name)
        raise click.NoSuchOption(name, message, error.possibilities, ctx) from None
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        extra = _EXTRA.match(error.message)
        if extra is None:
            raise
        raise click.UsageError(error.message + _option_for_word(command, extra[1]), ctx) from None


def no_such_command(ctx: click.Context, group: click.Group, name: str) -> click.UsageError:
    """The error about a word that is no command of a group: what is meant, or all of them."""
    close = _closest(name, group.commands, 0.6)
    known = f"Did you mean {close!r}?" if close else f"Use one of {', '.join(group.commands)}."
    return click.UsageError(f"No such command {name!r}. {known}", ctx)


def _options(command: click.Command) -> set[str]:
    params = (param for param in command.params if isinstance(param, click.Option))
    return {name for param in params for name in (*param.opts, *param.secondary_opts)}


def _place_of_option(ctx: click.Context, command: click.Command, name: str) -> str:
    """Say where an option belongs that this command does not have; nothing where it is unknown."""
    parent = ctx.parent
    if parent is not None and name in _options(parent.command):
        return f" It stands before the command: {parent.command_path} {name} ... {ctx.info_name}."
    if not isinstance(command, click.Group):
        return ""
    word = name.lstrip("-")
    if word in command.commands:
        return f" Did you mean the command {word!r}?"
    owners = [word for word, one in command.commands.items() if name in _options(one)]
    if not owners:
        return ""
    owner = owners[0] if len(owners) == 1 else "COMMAND"
    return f" It stands after the command: {ctx.command_path} {owner} {name}."


def _option_for_word(command: click.Command, word: str) -> str:
    """The option that a word without dashes means: the verbs of many tools are options."""
    close = _closest(f"--{word}", _options(command), _ALIKE)
    return f". Did you mean {close!r}?" if close else ""


def _closest(word: str, known: Iterable[str], least: float) -> str | None:
    # Imported here: it costs a few milliseconds of every start.
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), 1, least)), None)
