"""A pytest plugin that removes each `raise` of the checks in turn; a test must fail without it.

The plugin reruns every passed test once for each raise that the test reached, without that raise.
A raise whose removal fails no test is printed at the end, and fails the run.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import pytest

_PACKAGE = "quorate.sim.checks"
_HOOK = "_may_raise"
_SURVIVED = "no test fails without"


class RaiseSites:
    """Every raise of the checks by its position, `file:line`."""

    def __init__(self) -> None:
        self.all: set[str] = set()
        self.killed: set[str] = set()
        self.reached: set[str] = set()
        self.without: str | None = None

    def may_raise(self, place: str) -> bool:
        """Called before each raise; False removes it."""
        self.reached.add(place)
        return place != self.without


class _GuardInserter(ast.NodeTransformer):
    """Makes each raise conditional on the hook."""

    def __init__(self, file: str, raises: RaiseSites) -> None:
        self._file = file
        self._raises = raises

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        place = f"{self._file}:{node.lineno}"
        self._raises.all.add(place)
        asked = ast.Call(ast.Name(_HOOK, ast.Load()), [ast.Constant(place)], [])
        guarded = ast.copy_location(ast.If(asked, [node], []), node)
        return ast.fix_missing_locations(guarded)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, raises: RaiseSites) -> None:
        super().__init__(name, path)
        self._raises = raises

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(self.get_data(self.path))
        guarded = _GuardInserter(Path(self.path).name, self._raises).visit(tree)
        return compile(guarded, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _HOOK, self._raises.may_raise)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, folder: Path, raises: RaiseSites) -> None:
        self._folder = folder
        self._raises = raises

    def find_spec(
        self, name: str, path: object, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        file = str(self._folder / f"{module}.py")
        if package != _PACKAGE:
            return None
        return spec_from_file_location(name, file, loader=_Loader(name, file, self._raises))


class RaiseMutation:
    def __init__(self, raises: RaiseSites) -> None:
        self._raises = raises

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        raises = self._raises
        raises.reached.clear()
        yield  # a failure ends it here
        for place in sorted(raises.reached - raises.killed):
            raises.without = place
            try:
                item.runtest()
            except BaseException:  # pytest's own failures are no Exception
                raises.killed.add(place)
            finally:
                raises.without = None

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._raises.all != self._raises.killed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for place in sorted(self._raises.all - self._raises.killed):
            terminalreporter.write_line(f"{_SURVIVED} {place}")


def pytest_configure(config: pytest.Config) -> None:
    raises = RaiseSites()
    package = find_spec(_PACKAGE)
    assert package is not None and package.origin is not None
    assert not any(name.startswith(f"{_PACKAGE}.") for name in sys.modules)
    folder = Path(package.origin).parent
    sys.meta_path.insert(0, _Finder(folder, raises))
    for file in sorted(folder.glob("[!_]*.py")):
        find_spec(f"{_PACKAGE}.{file.stem}").loader.get_code(file.stem)  # type: ignore[union-attr]
    config.pluginmanager.register(RaiseMutation(raises))
