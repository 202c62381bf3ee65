"""What the tools' command lines share."""

from __future__ import annotations

from typing import Any, Final

import click

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class OrderedGroup(click.Group):
    """A group of commands, listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


def json_option(command: Any) -> Any:
    """Add `--json`, passed on as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
