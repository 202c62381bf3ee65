"""Plants a mutant into this process: the module's source is changed on its way into memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

import quorate
from quorate._pure import prefer_sources
from quorate.sim.mutants.mutant import Mutant, StaleMutant

_ROOT = Path(quorate.__file__).parent


def path_of(mutant: Mutant) -> Path:
    """The source file that the mutant changes; the module below `quorate`, as `raft.election`."""
    return _ROOT.joinpath(*mutant.module.split(".")).with_suffix(".py")


def mutated(mutant: Mutant, source: str) -> str:
    """The module's source with the bug in it. Raises StaleMutant: the text is not there once."""
    count = source.count(mutant.old)
    if count != 1:
        raise StaleMutant(
            f"mutant {mutant.name}: the text to replace is {count} times in {mutant.module}, "
            "expected once: the code has changed, write the mutant anew"
        )
    return source.replace(mutant.old, mutant.new)


def plant(mutant: Mutant) -> None:
    """From now on an import of the mutant's module gives the mutated one.

    Raises StaleMutant; QuorateError too when the module is in memory already.
    """
    name = f"quorate.{mutant.module}"
    if name in sys.modules:
        raise StaleMutant(f"mutant {mutant.name}: {name} is imported already: too late to plant it")
    mutated(mutant, path_of(mutant).read_text(encoding="utf-8"))
    # Compiled modules call each other past what is imported.
    prefer_sources(kept="quorate.wire._native")
    sys.meta_path.insert(0, _Finder(name, mutant))


class _Loader(SourceFileLoader):
    """Compiles the mutated source; no cached bytecode is read or written."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        super().__init__(name, str(path_of(mutant)))
        self._mutant = mutant

    def get_code(self, fullname: str) -> CodeType:
        source = path_of(self._mutant).read_text(encoding="utf-8")
        return compile(mutated(self._mutant, source), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """Stands before the others."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        self._name = name
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Loader(fullname, self._mutant)
        return spec_from_file_location(fullname, loader.path, loader=loader)
