"""Plain English in pages and docstrings: short sentences, and whole ones. The counts only fall."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 25
"""Of a sentence. Code in backticks counts as one word, and so does a link's text as it reads."""
LONG_SENTENCES = {"src/quorate/controller": 2}
"""Page, folder of pages or package -> sentences that are longer; absent: none. Lower it, never raise it."""
FRAGMENTS = {"src/quorate/controller": 19, "src/quorate/node": 1}
"""Package -> docstrings of functions that are no sentence; absent: none. Lower it, never raise it."""
PAGES = (
    *("README.md", "CONTRIBUTING.md", "docs/apis.md", "docs/architecture.md", "docs/benchmarks.md"),
    *("docs/decisions", "docs/known-bugs.md", "docs/metrics.md", "docs/spark.md", "docs/states.md"),
    "docs/testing.md",
)
PACKAGES = (
    *(
        "broker",
        "config_definitions",
        "controller",
        "embed",
        "log_dirs",
        "metadata",
        "node",
        "raft",
    ),
    *("replica", "shell", "storage"),
)
FRAGMENT = re.compile(
    r"(?:Also|As|At|Behind|Below|Beside|By|For|From|In|None|Of|On|Raises|See|To|With|Where)\b"
    r"|`[^`]*`(?:[.,:;]|$)"
)
"""How a docstring begins that leaves out what the function does."""


def sentences(text: str) -> Iterator[str]:
    """The sentences of Markdown or of a docstring; an item of a list and a cell begin a new one."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n\s*(?=[-*] |\d+\. |[A-Z]\d+\. )|\n(?=\||#)", text):
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
    files = sorted((ROOT / "src/quorate" / package).rglob("*.py"))
    return [ast.parse(file.read_text()) for file in files]


def check(found: list[str], known: int) -> None:
    listed = "\n".join(found)
    assert len(found) <= known, (
        f"{len(found)}, not {known}; write shorter, whole sentences:\n{listed}"
    )
    assert len(found) == known, (
        f"only {len(found)} are left: lower the number in tests/test_prose.py"
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("word " * 25, 0),
        ("word " * 26, 1),
        ("word " * 20 + "end. " + "word " * 20, 0),
        ("- " + "word " * 20 + "\n- " + "word " * 20, 0),
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
    files = sorted(page.glob("*.md")) if page.is_dir() else [page]
    assert files
    found = [one for file in files for one in long_sentences(file.read_text())]
    check(found, LONG_SENTENCES.get(place, 0))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_have_short_sentences(package: str) -> None:
    found = [
        one
        for tree in parsed(package)
        for text, _ in docstrings(tree)
        for one in long_sentences(text)
    ]
    check(found, LONG_SENTENCES.get(f"src/quorate/{package}", 0))


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_are_sentences(package: str) -> None:
    found = [one for tree in parsed(package) for one in fragments(tree)]
    check(found, FRAGMENTS.get(f"src/quorate/{package}", 0))
