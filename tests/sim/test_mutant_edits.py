"""How a mutant's pattern finds its one place in the code."""

from __future__ import annotations

import ast

import pytest

from mutants.edit import (
    Edit,
    StaleMutantError,
    begin_with,
    drop,
    insert_after,
    insert_before,
    replace,
    within,
)

CODE = """
def count(self, rows):
    total = 0
    for row in rows:
        if row.end >= self.least:
            total += row.size
    if total > self.most:
        self.warn(total, why="too much")
        return self.most
    return total
"""


def edited(edit: Edit, code: str = CODE) -> str:
    tree = ast.parse(code)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    edit(function)
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (replace("row.end >= self.least", "True"), "row.end >= self.least", "True"),
        (replace("row.end >= _1", "row.end > _1"), "row.end >=", "row.end >"),
        (replace("return self.most", "return 0"), "return self.most", "return 0"),
        (
            replace("self.warn(...)", "self.stop()"),
            "self.warn(total, why='too much')",
            "self.stop()",
        ),
        (
            replace("self.warn(_1, ...)", "self.stop(_1)"),
            "warn(total, why='too much')",
            "stop(total)",
        ),
        (drop("total += _"), "total += row.size", "pass"),
        (drop("return _", followed_by="return total"), None, None),
        (insert_before("total = 0", "x = 1"), "total = 0", "x = 1\n    total = 0"),
        (insert_after("total = 0", "x = 1"), "total = 0", "total = 0\n    x = 1"),
        (begin_with("return 7"), "total = 0", "return 7\n    total = 0"),
        (within("for _ in _: ...", replace("total", "all")), "total += row", "all += row"),
    ],
)
def test_an_edit(edit: Edit, before: str | None, after: str | None) -> None:
    if before is None or after is None:
        with pytest.raises(StaleMutantError, match="0 places"):
            edited(edit)
        return
    assert edited(edit) == ast.unparse(ast.parse(CODE)).replace(before, after)


@pytest.mark.parametrize("old", ["row", "total", "rows"])
def test_a_renamed_local_breaks_no_pattern(old: str) -> None:
    edit = replace("if row.end >= self.least: total += row.size", "total -= row.size")
    renamed = CODE.replace(f"{old} ", "other ").replace(f"{old}.", "other.")
    assert (
        "other -= " in edited(edit, renamed)
        or "-= other.size" in edited(edit, renamed)
        or (old == "rows")
    )


@pytest.mark.parametrize(
    ("pattern", "count"), [("no.such", 0), ("return _", 2), ("self.end >= self.least", 0)]
)
def test_a_pattern_that_is_not_there_once_is_stale(pattern: str, count: int) -> None:
    with pytest.raises(StaleMutantError, match=f"count has {count} places that match"):
        edited(replace(pattern, "pass" if pattern.startswith("return") else "True"))
