"""Build the codec in C in place: `python -m quorate.wire.build [directory]`.

Needs a C compiler; where there is none the codec in Python is used and nothing is lost but speed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).with_name("_native.c")


def build(directory: Path = SOURCE.parent) -> Path:
    """Compile `_native` into `directory`; the path of the extension module.

    Raises OSError when there is no compiler, subprocess.CalledProcessError when it refuses;
    `explain` puts either into words.
    """
    target = directory / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    fresh = target.with_name(f".{target.name}.new")
    command = [*compiler(), str(SOURCE), "-o", str(fresh)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    fresh.replace(target)
    return target


def explain(error: OSError | subprocess.CalledProcessError) -> str:
    """Why nothing was made: one line without a path, and without a full stop."""
    if isinstance(error, FileNotFoundError):
        return "No C compiler found"
    if isinstance(error, OSError):
        return f"Nothing can be compiled ({error.strerror})"
    said = f"{error.stderr or ''}\n{error.stdout or ''}"  # mypyc complains on its stdout
    lines = [line for line in said.splitlines() if "error: " in line]
    found = lines[0].partition("error: ")[2] if lines else f"exit code {error.returncode}"
    return f"The compiler failed ({found})"


def compiler() -> list[str]:
    """The command that makes a shared library of C for this interpreter."""
    shared = (
        ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    )
    named = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    return [*named, "-O3", "-DNDEBUG", "-fPIC", "-fwrapv", *shared, f"-I{include}"]


def main(arguments: list[str]) -> int:
    try:
        print(build(*map(Path, arguments[:1])))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{explain(error)}: the codec in Python stays in use.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
