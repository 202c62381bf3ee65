"""The structure of the code base: layers, sizes, names, and words that must not return."""

import ast
import builtins
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from narrow import not_none

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 470
"""Of a source file; the aim is 400."""
MAX_PRIVATE_ACCESS = 129
"""In the tests, of names of others."""
PAGE_WIDTH = 120
RETIRED_WORDS = {
    "deeds?": "fault event, operation or action",
    "doubts": "anomalies",
    "errands?": "task",
    "exam": "oversize probe",
    "goodbyes?": "epoch notification, or EndQuorumEpoch",
    "grumpy|picky": "failing",
    "harvest": "disk contents",
    "hostile": "with faults, or malicious",
    "by_chance|by chance|(?:source|moment) of chance": "random, at random or rng",
    "company": "other submissions, or a batching delay",
    "glances?": "read or look",
    "healing": "liveness phase or recovery",
    "hung_up": "closed",
    "judges?|judged|judging": "check",
    "laws?": "invariant",
    "ledger": "fault budget",
    "legal[_ ]moves": "legal transitions",
    "luck": "rng",
    "mend|mends|mended|mending": "fix or repair",
    "news": "what changed, as its own term",
    "obeys?|obeyed": "apply or accept",
    "patient": "long-running",
    "reigns?": "leadership or epoch",
    "rests": "backs off, waits, or depends",
    "rotten": "damaged",
    "second_looks?": "retry",
    "shrugs?": "ignore",
    "spoil|spoils|spoiled": "damage",
    "story|stories": "scenario",
    "strangers?": "foreign cluster, or unknown replica",
    "stretch(?:es)?": "range of offsets",
    "tells|told": "reports, reported or received",
    "thereof": "of it",
    "torment": "fault injection",
    "twins?": "reference model",
    "whoever": "the component that is meant",
    "write_whole": "write_atomically",
}
"""Private vocabulary that left the code base (patterns), and the term that took its place."""
PERSISTED_NAMES = (
    '"law"',
    '"patient"',
    '"stranger"',
    '"told"',
    "a follower heard its leader's goodbye",
    "a static voter told its leader its directory",
    "a voter ran because the leader said goodbye",
    "fault: stranger",
    "healing_ms",
    "remove-stranger",
    "stranger from=",
)
"""Keys of JSON, coverage points, streams of the prng, and words of plan and scenario files."""
SWEPT = {".html", ".md", ".plan", ".py", ".toml", ".txt"}
"""Suffixes of the files in which retired words must not return."""
PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace"}
"""Of os and of NamedTuple: public in spite of the underscore."""
OF_LIBRARIES = {
    *("_activeSession", "_ensure_initialized", "_expected_crc", "_gateway"),
    *("_jsc", "_jsparkSession", "_jvm"),
}
"""Of PySpark and zipfile, which have no public name for it."""
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|farm)/")


def tracked_text_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    return [f for f in files if f.is_file() and "tests/data" not in f.as_posix()]


@pytest.mark.slow  # the inner loop asks the linter itself
def test_imports_only_go_down():
    linter = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def modules() -> dict[str, Path]:
    """Every module of the package, by its full name."""
    names = (path.relative_to(ROOT / "src").with_suffix("").parts for path in SOURCES)
    return dict(
        zip((".".join(one).removesuffix(".__init__") for one in names), SOURCES, strict=True)
    )


@cache
def parsed() -> dict[str, ast.Module]:
    """The syntax tree of every module of the package, by its full name."""
    return {name: ast.parse(path.read_text()) for name, path in modules().items()}


def imported(node: ast.AST, known: Collection[str], *, types: bool) -> Iterator[str]:
    """The modules that a file imports, in functions too; `types`: also under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names):
                yield from (alias.name for alias in names if alias.name in known)
            case ast.ImportFrom(str(origin), names):
                parts = (f"{origin}.{alias.name}" for alias in names)
                found = {part if part in known else origin for part in parts}
                yield from found.intersection(known)
            case ast.Call(func, [ast.Constant(str(name))]) if is_import(func):
                yield from {name}.intersection(known)
            case ast.If(test=ast.Name("TYPE_CHECKING")) if not types:
                yield from imported(ast.Module(child.orelse, []), known, types=types)
                continue
        yield from imported(child, known, types=types)


def is_import(function: ast.expr) -> bool:
    """Of `import_module(NAME)`, however it was imported itself."""
    return ast.unparse(function).rpartition(".")[2] in ("import_module", "__import__")


def imports(*, types: bool) -> dict[str, set[str]]:
    """The imports of each module within the package."""
    trees = parsed()
    return {name: {*imported(tree, trees, types=types)} - {name} for name, tree in trees.items()}


@pytest.mark.parametrize("types", [False, True])
def test_imports_do_not_go_in_circles(types):
    """`types`: not for the type checker either."""
    TopologicalSorter(imports(types=types)).prepare()  # a CycleError names the circle


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f():\n    import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("import_module('a.b')", {"a.b"}),
        ("importlib.import_module('a.b')", {"a.b"}),
        ("if TYPE_CHECKING:\n    import a.b", set()),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import a.b", {"a.b"}),
    ],
)
def test_every_kind_of_import_counts(source, found):
    assert set(imported(ast.parse(source), {"a", "a.b"}, types=False)) == found


def test_no_file_is_longer_than_a_reader_can_hold():
    assert SOURCES
    lengths = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in SOURCES}
    long = {path: lines for path, lines in lengths.items() if lines > MAX_LINES}
    assert long == {}, "split them by duty"


def test_no_file_names_a_machine_path():
    found = []
    for path in tracked_text_files():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {m.group()}" for m in MACHINE_PATH.finditer(text)]
    assert found == []


def anchors(page: str) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def test_links_in_the_pages_lead_somewhere():
    broken = []
    for page in (path for path in tracked_text_files() if path.suffix == ".md"):
        for target in re.findall(r"\]\(([^)\s]+)", page.read_text()):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            found = page.parent / file if file else page
            if not found.exists() or (anchor and anchor not in anchors(found.read_text())):
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert broken == []


CODE_NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)+)(?:\([^`\n]*\))?`")
"""A dotted name in backticks, perhaps with a call."""
FILE_NAME = re.compile(r"\.(c|cfg|gz|json|jsonl|lock|pem|plan|properties|tla|toml|txt)$")
OF_OTHER_CODE = {
    "DeltaTable.delete",
    "clusters.unknown",
    "d.count",
    "d.where",
    "file.encoding",
    "kafka.request.logger",
    "org.apache.kafka.raft",
    "spark.read.format",
    "spark.read.parquet",
    "spark.sql.python.filterPushdown.enabled",
    "sys.exit",
    "uuid.UUID",
}
"""Dotted names of the pages that belong to Python, Spark or Kafka, or to a column of a table."""


def members(body: Collection[ast.stmt]) -> set[str]:
    """The names that a module or class defines, also as attributes of `self`."""
    found: set[str] = set()
    for node in (inner for statement in body for inner in ast.walk(statement)):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                found.add(name)
            case ast.Name(name, ast.Store()) | ast.Attribute(ast.Name("self"), name, ast.Store()):
                found.add(name)
            case ast.alias(name, alias):
                found.add(alias or name)
    return found


def resolves(name: str, trees: dict[str, ast.Module]) -> bool:
    """Whether this is a module (or the end of its name), a class, or a member of one of them."""
    if any(f".{module}".endswith(f".{name}") for module in trees):
        return True
    owner, _, member = name.rpartition(".")
    for module, tree in trees.items():
        if f".{module}".endswith(f".{owner}") and member in members(tree.body):
            return True
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
        bodies = (one.body for one in classes if f".{module}.{one.name}".endswith(f".{owner}"))
        if any(member in members(body) for body in bodies):
            return True
    return False


def unresolved(page: str, trees: dict[str, ast.Module], known: Collection[str]) -> list[str]:
    """The dotted names of a page that nothing in the project has."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    names = set(CODE_NAME.findall(text)) - OF_OTHER_CODE - set(known)
    names = {name for name in names if not FILE_NAME.search(name) and not has_placeholder(name)}
    return sorted(name for name in names if not resolves(name, trees))


def has_placeholder(name: str) -> bool:
    """Whether a part is in capitals, as NAME in `listener.name.NAME.sasl.jaas.config`."""
    return any(len(part) > 1 and part.isupper() for part in name.split("."))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`raft.core`", []),
        ("`quorate.raft.core`", []),
        ("`core.f`", []),
        ("`core.f()`", []),
        ("`core.Core`", []),
        ("`core.Core.g`, `Core.g(1)`, `Core.h`", []),
        ("`core.gone`", ["core.gone"]),
        ("`moved.f`", ["moved.f"]),
        ("`Core.gone()`", ["Core.gone"]),
        ("`quorate.gone`", ["quorate.gone"]),
        ("`node.id`", []),
        ("`listener.name.NAME.port`", []),
        ("`run.tla`", []),
        ("```\n`moved.f`\n```", []),
    ],
)
def test_every_kind_of_code_name_counts(text, found):
    source = "def f(): ...\nclass Core:\n    def g(self): self.h = 1\n"
    assert unresolved(text, {"quorate.raft.core": ast.parse(source)}, {"node.id"}) == found


def test_the_pages_name_code_that_exists():
    """A dotted name is code, a word of the sources' strings (a setting, a logger) or a file."""
    trees = parsed()
    known = {path.name for path in tracked_text_files()}
    settings = members(trees["quorate.config.node_config"].body)
    known |= {name.replace("_", ".") for name in settings}
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            known.update(re.findall(r"[\w]+(?:\.\w+)+", node.value))
    pages = [path for path in tracked_text_files() if path.suffix == ".md"]
    found = {
        page.relative_to(ROOT).as_posix(): names
        for page in pages
        if page.name != "CHANGELOG.md" and (names := unresolved(page.read_text(), trees, known))
    }
    assert found == {}


def test_the_drawing_of_the_roles_is_current():
    path = ROOT / "tools/draw_states.py"
    spec = not_none(importlib.util.spec_from_file_location("draw_states", path))
    drawing = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(drawing)
    assert drawing.PAGE.read_text() == drawing.page(), "run: python tools/draw_states.py"


BUILT_IN = {
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, BaseException)
    and not issubclass(value, Warning)
}
OF_OTHERS = ("Abort", "Empty", "Error", "Exception", "Exit", "Full", "Interrupt")
"""How the names of exceptions end, in libraries too."""


def exceptions(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """The classes of a module whose base is an exception, also under another name."""
    renamed = {
        alias.asname: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name, bases):
                names = {ast.unparse(base).rpartition(".")[2] for base in bases}
                names = {renamed.get(base, base) for base in names}
                if names & known or any(base.endswith(OF_OTHERS) for base in names):
                    yield name
            case ast.Assign([ast.Name(name)], ast.Name(value)) if value in known:
                yield name


@pytest.mark.parametrize(
    "source",
    [
        "class Gone(KeyboardInterrupt): ...",
        "from a import OwnError as _Base\nclass Gone(_Base): ...",
        "Base = ValueError\nclass Gone(Base): ...",
        "class Gone(click.Abort): ...",
        "class Gone(queue.Empty, Generic[T]): ...",
    ],
)
def test_every_kind_of_exception_counts(source):
    tree, known = ast.parse(source), {*BUILT_IN}
    for _ in range(2):
        known.update(exceptions(tree, known))
    assert "Gone" in known


def test_the_name_of_every_exception_ends_in_error():
    found = {*BUILT_IN}
    trees = parsed().values()
    for _ in range(5):  # a base may stand in a later module
        found.update(name for tree in trees for name in exceptions(tree, found))
    assert {name for name in found - BUILT_IN if not name.endswith("Error")} == set()


def test_class_names_are_unique():
    """One name, one meaning. `wire` has Kafka's message names, which the core uses for its own."""
    seen: dict[str, list[str]] = {}
    for path in SOURCES:
        name = path.relative_to(ROOT / "src/quorate").as_posix()
        if not name.startswith("wire/messages/"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    seen.setdefault(node.name, []).append(name)
    assert {name: paths for name, paths in seen.items() if len(paths) > 1} == {}


def private_names(tree: ast.AST) -> set[str]:
    """What a class defines with an underscore: methods, fields, slots and attributes of `self`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(name)) | ast.Name(name, ast.Store()):
                found.add(name)
            case ast.Attribute(ast.Name("self" | "cls"), name) | ast.Constant(str(name)):
                found.add(name)  # the strings are those of __slots__
    return {name for name in found if is_private(name)}


def is_private(name: str) -> bool:
    return bool(re.match("_[A-Za-z]", name)) and name not in PUBLIC | OF_LIBRARIES


def private_access(tree: ast.Module) -> Iterator[str]:
    """Where a module reads a private name of something that is not its own.

    Its own are `self`, `cls`, the classes of the module, and another object of the class that the
    code stands in.
    """
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    yield from _private_access(tree, {"self", "cls"} | classes, set())


def _private_access(node: ast.AST, own: set[str], of_class: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.ImportFrom(str(origin), names) if origin.split(".")[0] == "quorate":
                yield from (alias.name for alias in names if is_private(alias.name))
            case ast.Attribute(ast.Name(owner), _) if owner in own:
                pass
            case ast.Attribute(_, name) if is_private(name) and name not in of_class:
                yield ast.unparse(child)
            case ast.Call(ast.Name("getattr" | "setattr" | "delattr"), [_, ast.Constant(name), *_]):
                if is_private(str(name)):
                    yield ast.unparse(child)
        inner = private_names(child) if isinstance(child, ast.ClassDef) else of_class
        yield from _private_access(child, own, inner)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def f(x): return x._y", ["x._y"]),
        ("def f(x): return x._Y", ["x._Y"]),
        ("class A:\n    def f(self, x): return self._y + A._z + x._y", []),
        ("class A:\n    def f(self, x): return self.x._y", ["self.x._y"]),
        ("class A:\n    _y = 1\ndef f(x): return x._y", ["x._y"]),
        ("getattr(x, '_y')", ["getattr(x, '_y')"]),
        ("from quorate.a import _y", ["_y"]),
        ("from quorate import a\na._Y", ["a._Y"]),
        ("os._exit(1)", []),
    ],
)
def test_every_kind_of_private_access_counts(source, found):
    assert list(private_access(ast.parse(source))) == found


def test_no_module_reads_the_private_names_of_another():
    found = {
        module: names
        for module, tree in parsed().items()
        if (names := sorted(set(private_access(tree))))
    }
    assert found == {}


def test_the_tests_read_no_more_private_names():
    """A test of what anybody may call survives a restructuring. Lower the number with each that goes."""
    found = sum(len(list(private_access(ast.parse(path.read_text())))) for path in TESTS)
    assert found <= MAX_PRIVATE_ACCESS


def test_retired_words_do_not_return():
    rules = [
        (re.compile(rf"(?<![a-z])(?:{old})(?![a-z])", re.IGNORECASE), new)
        for old, new in RETIRED_WORDS.items()
    ]
    any_of_them = re.compile(rf"(?<![a-z])(?:{'|'.join(RETIRED_WORDS)})(?![a-z])", re.IGNORECASE)
    kept = re.compile("|".join(map(re.escape, PERSISTED_NAMES)))
    found = []
    for path in tracked_text_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in SWEPT or path == Path(__file__).resolve():
            continue
        text = kept.sub("", path.read_text())
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text)  # the parts of a name count, too
        if not any_of_them.search(text):
            continue
        for words, new in rules:
            for match in words.finditer(text):
                number = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{number}: {match[0]}: write {new}")
    assert found == []


def test_pages_wrap_at_120():
    long = []
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.relative_to(ROOT).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            # A table has its rows on a line each, and nothing divides a long address.
            is_indivisible = any(len(word) > PAGE_WIDTH - 2 for word in line.split())
            if len(line) > PAGE_WIDTH and not line.startswith("|") and not is_indivisible:
                long.append(f"{page}:{number}: {len(line)} characters")
    assert long == []


IMPORTED_AS = {"prometheus-client": "prometheus_client"}
IMPORTED_BY_SPARK = {"pandas"}
"""Dependencies that PySpark wants before it runs our functions."""


def test_each_dependency_is_imported():
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    names = {re.split(r"[\[<>=;]", text)[0] for text in wanted} - IMPORTED_BY_SPARK
    sources = "\n".join(path.read_text() for path in SOURCES)
    unused = [
        name
        for name in sorted(names)
        if not re.search(rf"\b(?:import|from) {IMPORTED_AS.get(name, name)}\b", sources)
    ]
    assert unused == []
