"""Write values out as plain classes, of which mypyc makes native ones: `native_source(text)`.

mypyc leaves a dataclass with slots to the interpreter. What is compiled is therefore a copy of the
source in which `__init__`, `==` and hash of each such class stand written out, as `dataclasses`
would make them, and what is frozen is `Final`. Every other line keeps its number, for
tracebacks: the methods take the lines of the decorator, of the docstring and of the fields.
"""

from __future__ import annotations

import ast
from typing import Final

FROZEN, IDENTITY = "frozen", "identity"
_IMPORTS: Final = (
    "from __future__ import annotations; "
    "from typing import Any as _Any, ClassVar as _ClassVar, Final as _Final; "
    "from quorate.base.native import as_dataclass, mypyc_attr"
)
_KEPT: Final = "__dataclass_fields__: _ClassVar[dict[str, _Any]]"
"""So that mypy lets `dataclasses.replace` have it; `as_dataclass` fills it."""
_REUSED: Final = "@mypyc_attr(free_list_len=1)"
"""Most values are gone before the next of their kind is made: it takes the place of the last."""


def native_source(text: str, *, copied: bool = False) -> str:
    """The module to compile in this one's place, as long as it or longer at its very end.

    `copied`: its other classes can be pickled and copied too (which costs them a little).
    Raises ValueError where a class has no room for its methods, or has what this does not know.
    """
    tree = ast.parse(text)
    lines = _with_tuples(tree, text).split("\n")
    values: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.bases:
            traits = _traits(node)
            if traits is not None:
                first, last = _room(node, lines)
                lines[first:last] = _written_out(node, traits, last - first)
                values.append(f"as_dataclass({node.name}, {tuple(map(_name, _fields(node)))!r})")
            elif copied and not node.decorator_list:
                # Else nothing can be made without its __init__. mypyc 2.4 has `serializable` for
                # this, but leaves such an object empty when it is made in the ordinary way.
                lines[node.lineno - 2] = "@mypyc_attr(allow_interpreted_subclasses=True)"
    lines[lines.index("from __future__ import annotations")] = _IMPORTS
    return "\n".join([*lines, *values, ""])


def _traits(node: ast.ClassDef) -> set[str] | None:
    """What kind of a value: FROZEN, IDENTITY (compared by it); None: it is none."""
    if len(node.decorator_list) != 1:
        return None
    decorator = node.decorator_list[0]
    if isinstance(decorator, ast.Name) and decorator.id == "frozen":
        return {FROZEN}
    if not isinstance(decorator, ast.Call) or ast.unparse(decorator.func) != "dataclass":
        return None
    said = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
    if unknown := said.keys() - {"slots", "frozen", "eq"}:
        raise ValueError(f"class {node.name}: cannot write out dataclass({', '.join(unknown)})")
    traits = {FROZEN} if said.get("frozen") else set()
    return traits if said.get("eq", True) else traits | {IDENTITY}


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [item for item in node.body if isinstance(item, ast.AnnAssign)]


def _name(field: ast.AnnAssign) -> str:
    return ast.unparse(field.target)


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [item for item in node.body if isinstance(item, ast.FunctionDef)]


def _room(node: ast.ClassDef, lines: list[str]) -> tuple[int, int]:
    """Lines from the decorator to the first method, or to the next thing in the module."""
    first = node.decorator_list[0].lineno - 1
    if methods := _methods(node):
        method = methods[0]
        return first, min(d.lineno for d in [*method.decorator_list, method]) - 1
    assert node.end_lineno is not None
    last = node.end_lineno
    while last < len(lines) and not lines[last]:
        last += 1
    return first, last


def _written_out(node: ast.ClassDef, traits: set[str], room: int) -> list[str]:
    """The head of the class in `room` lines."""
    names = [_name(field) for field in _fields(node)]
    there = {method.name for method in _methods(node)}
    made = [f"class {node.name}:", "    " + "; ".join([*_declared(node, traits), _KEPT])]
    made.append(_init(node))
    if IDENTITY not in traits:
        same = "".join(f" and self.{name} == other.{name}" for name in names)
        made.append(
            "    def __eq__(self, other: object) -> bool: "
            f"return other.__class__ is {node.name} and isinstance(other, {node.name}){same}"
        )
        if FROZEN in traits and "__hash__" not in there:
            values = "".join(f"self.{name}, " for name in names)
            made.append(f"    def __hash__(self) -> int: return hash(({values}))")
    if len(made) > room:
        raise ValueError(f"class {node.name}: {len(made) - room} lines short: say what it is")
    if len(made) < room:
        made.insert(0, _REUSED)
    return made + [""] * (room - len(made))


def _declared(node: ast.ClassDef, traits: set[str]) -> list[str]:
    kind = "_Final[{}]" if FROZEN in traits else "{}"
    return [f"{_name(f)}: {kind.format(ast.unparse(f.annotation))}" for f in _fields(node)]


def _init(node: ast.ClassDef) -> str:
    parameters, settings = ["self"], []
    for field in _fields(node):
        name, kind, value = _name(field), ast.unparse(field.annotation), field.value
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
            (factory,) = value.keywords
            if factory.arg != "default_factory":
                raise ValueError(f"class {node.name}: cannot write out field({factory.arg})")
            parameters.append(f"{name}: {kind} | None = None")
            fresh = _made(factory.value)
            settings.append(f"self.{name} = {name} if {name} is not None else {fresh}")
        else:
            default = "" if value is None else f" = {ast.unparse(value)}"
            parameters.append(f"{name}: {kind}{default}")
            settings.append(f"self.{name} = {name}")
    return f"    def __init__({', '.join(parameters)}) -> None: {'; '.join(settings) or 'pass'}"


def _with_tuples(tree: ast.Module, text: str) -> str:
    """`isinstance(x, A | B)` as `isinstance(x, (A, B))`: mypyc compares the classes of a tuple, but
    makes the union anew at every call."""
    lines = text.encode().split(b"\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "isinstance":
            continue
        kinds = node.args[1]
        if not isinstance(kinds, ast.BinOp) or kinds.lineno != kinds.end_lineno:
            continue
        line = lines[kinds.lineno - 1]
        said = ast.unparse(kinds).replace(" | ", ", ")
        lines[kinds.lineno - 1] = (
            line[: kinds.col_offset] + f"({said})".encode() + line[kinds.end_col_offset :]
        )
    return b"\n".join(lines).decode()


def _made(factory: ast.expr) -> str:
    """What a call of the factory says; of a lambda its body."""
    if isinstance(factory, ast.Lambda):
        return ast.unparse(factory.body)
    return f"{ast.unparse(factory)}()"
