"""Draw what a command prints in a terminal as SVG: `python tools/screenshot.py OUT.svg TITLE COMMAND...`.

The command runs in a pseudo-terminal, so that it prints colours. docs/quickstart.svg is made by

    python tools/screenshot.py docs/quickstart.svg "make quickstart ARGS=--tour" quorate quickstart --tour
"""

from __future__ import annotations

import os
import pty
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 108


def run_in_terminal(command: list[str]) -> bytes:
    """Everything that the command prints. Raises SystemExit if it fails."""
    printed = bytearray()

    def read(descriptor: int) -> bytes:
        data = os.read(descriptor, 65536)
        printed.extend(data)
        return data

    os.environ.update(COLUMNS=str(COLUMNS), TERM="xterm-256color")
    status = pty.spawn(command, read)
    if code := os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{command[0]} ended with exit code {code}")
    return bytes(printed)


def main() -> None:
    out, title, *command = sys.argv[1:]
    text = run_in_terminal(command).decode().replace("\r\n", "\n").strip("\n")
    with open(os.devnull, "w") as nowhere:
        console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(text))
        drawing = console.export_svg(title=title)
    # The page must not load fonts from elsewhere.
    drawing = re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL)
    drawing = drawing.replace("Fira Code, monospace", "monospace")
    Path(out).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main()
