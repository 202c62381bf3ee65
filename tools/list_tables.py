"""Write the texts of docs/tables.md from those of the code: `python tools/list_tables.py`.

It replaces the last cell of each row about a column. A test compares the page with what this
writes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import VALIDITY
from quorate.spark.tables.texts import column_text

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "tables.md"
_ROW: Final = re.compile(r"(\| `(\w+)` \| [^|]+ \|) [^|]+ \|")
_HEAD: Final = re.compile(r"#{2,4} (.+)")


def with_texts(page: str) -> str:
    """The page with the texts of the columns; views and events have their own."""
    lines, table, only = [], "", set[str]()
    for line in page.splitlines():
        head, row = _HEAD.fullmatch(line), _ROW.fullmatch(line)
        if head is not None:
            # the columns that all kinds have come before the first kind
            gold = head[1].startswith("Gold")
            table = next(iter(KINDS)) if gold else head[1]
            only = set(dict(VALIDITY)) if gold else set()
        if row is not None and (not only or row[2] in only):
            with suppress(KeyError):  # a view has texts of its own
                line = f"{row[1]} {column_text(table, row[2])} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(with_texts(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
