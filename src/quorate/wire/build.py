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

    Raises OSError when there is no compiler, subprocess.CalledProcessError when it refuses.
    """
    target = directory / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    fresh = target.with_name(f".{target.name}.new")
    subprocess.run([*_compiler(), str(SOURCE), "-o", str(fresh)], check=True)
    fresh.replace(target)
    return target


def _compiler() -> list[str]:
    shared = (
        ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    )
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_paths()["include"]
    return [*compiler, "-O3", "-DNDEBUG", "-fPIC", "-fwrapv", *shared, f"-I{include}"]


def main(arguments: list[str]) -> int:
    try:
        print(build(*map(Path, arguments[:1])))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"no codec in C, the one in Python stays in use: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
