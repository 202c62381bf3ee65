"""Plain English in pages and docstrings: short sentences, and whole ones."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25
"""Of a sentence. Code in backticks counts as one word, and so does a link's text as it reads."""
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
PACKAGES = sorted(
    path.name if path.is_dir() else path.stem
    for path in (ROOT / "src/quorate").iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
)
FRAGMENT = re.compile(
    r"(?:Also|As|At|Behind|Below|Beside|By|For|From|In|None|Of|On|Raises|See|To|With|Where)\b"
    r"|`[^`]*`(?:[.,:;]|$)"
)
"""How a docstring begins that leaves out what the function does."""


DEFINITION = r"\n *(?=\S+(?:, \S+)*  +\S)"
"""Where an item of a list of terms begins: the term and, two spaces or more behind it, the text."""


def sentences(text: str) -> Iterator[str]:
    """The sentences of Markdown or of a docstring; an item of a list and a cell begin a new one."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.split(
        r"\n\s*\n|\n\s*(?=[-*] |\d+\. |[A-Z]\d+\. )|\n(?=\||#)|" + DEFINITION, text
    ):
        row = block.strip()
        for cell in row.strip("|").split("|") if row.startswith("|") else [row]:
            plain = re.sub(r"`[^`]*`", "X", re.sub(r"\]\([^)]*\)", "]", cell))
            yield from re.split(r"(?<=[.!?:;])\s+", " ".join(plain.split()))


def long_sentences(text: str) -> list[str]:
    return [one for one in sentences(text) if len(re.findall(r"[\w'’-]+", one)) > MOST_WORDS]


def docstrings(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Every docstring, also of a constant or a field, and what it is in."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(ast.Constant(str(text))):
                    yield text, node


def fragments(tree: ast.AST) -> list[str]:
    return [
        f"{node.name}: {text}"
        for text, node in docstrings(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and FRAGMENT.match(text)
        and ast.get_docstring(node, clean=False) == text
    ]


def parsed(package: str) -> list[ast.Module]:
    path = ROOT / "src/quorate" / package
    files = sorted(path.rglob("*.py")) or [path.with_suffix(".py")]
    return [ast.parse(file.read_text()) for file in files]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("word " * 25, 0),
        ("word " * 26, 1),
        ("word " * 20 + "end. " + "word " * 20, 0),
        ("- " + "word " * 20 + "\n- " + "word " * 20, 0),
        ("one  " + "word " * 20 + "\ntwo  " + "word " * 20, 0),
        ("one " + "word " * 20 + "\ntwo " + "word " * 20, 1),
        ("S1. " + "word " * 20 + "\nS2. " + "word " * 20, 0),
        ("| " + "word " * 20 + "| " + "word " * 20 + "|", 0),
        ("| " + "word " * 26 + "| a |", 1),
        ("word " * 24 + "`a b c`", 0),
        ("```\n" + "word " * 30 + "\n```", 0),
    ],
)
def test_how_sentences_are_counted(text: str, count: int) -> None:
    assert len(long_sentences(text)) == count


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("As `fetch`, without waiting.", True),
        ("`KafkaRaftClient.handleFetchRequest`.", True),
        ("`offset` is not below the start.", False),
        ("Return the offset.", False),
        ("None where it cannot be read.", True),
    ],
)
def test_how_fragments_are_found(text: str, is_one: bool) -> None:
    tree = ast.parse(f'def f():\n    """{text}"""\n')
    assert bool(fragments(tree)) == is_one


@pytest.mark.parametrize("place", PAGES)
def test_pages_have_short_sentences(place: str) -> None:
    page = ROOT / place
    files = sorted(page.rglob("*.md")) if page.is_dir() else [page]
    assert files
    assert [one for file in files for one in long_sentences(file.read_text())] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_have_short_sentences(package: str) -> None:
    found = [
        one
        for tree in parsed(package)
        for text, _ in docstrings(tree)
        for one in long_sentences(text)
    ]
    assert found == []


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_sentences(package: str) -> None:
    assert [one for tree in parsed(package) for one in fragments(tree)] == []
