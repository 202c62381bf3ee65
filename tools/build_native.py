"""Build the compiled parts in place, where there is a C compiler: `python tools/build_native.py`.

They are the codec in C (`quorate.wire.build`) and, where mypyc is installed, the modules of
COMPILED. Without them the same source runs in the interpreter, and nothing is lost but speed.
Nothing is done while the manifest says that what is there was made from these very sources.
"""

from __future__ import annotations

import hashlib
import json
import runpy
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src"
PACKAGE: Final = SOURCE / "quorate"
MANIFEST: Final = PACKAGE / "_native.json"
COMPILED: Final = ("formats/batch_records.py", "formats/varint.py")
"""What mypyc makes faster; docs/decisions/0006 has the figures, also of what it does not."""
BUILD: Final = runpy.run_path(str(PACKAGE / "wire" / "build.py"))
CODEC: Final = ("wire/_native.c", "wire/native_c/*", "wire/build.py")


def sources() -> dict[str, str]:
    """SHA-256 of everything that the compiled parts are made from, by name."""
    files = [PACKAGE / name for name in COMPILED]
    files += [file for pattern in CODEC for file in sorted(PACKAGE.glob(pattern))]
    return {
        str(file.relative_to(PACKAGE)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def wanted() -> dict[str, Any]:
    """The manifest of what this interpreter would build now."""
    return {
        "python": sysconfig.get_config_var("EXT_SUFFIX"),
        "sources": sources(),
        "mypyc": find_spec("mypyc") is not None and find_spec("setuptools") is not None,
    }


def extensions() -> list[Path]:
    """The compiled parts that are there now."""
    return [*PACKAGE.rglob("*.so"), *SOURCE.glob("quorate__mypyc*.so")]


def problem() -> str | None:
    """Why what is compiled must not be used; None where it may, or nothing is compiled."""
    if not extensions():
        return None
    if not MANIFEST.exists():
        return "compiled parts without a manifest"
    made = json.loads(MANIFEST.read_text())
    changed = [name for name, digest in sources().items() if made["sources"].get(name) != digest]
    return f"changed since it was compiled: {', '.join(changed)}" if changed else None


def build() -> list[str]:
    """Build what is out of date; the modules that were compiled.

    Raises OSError or CalledProcessError where nothing can be.
    """
    manifest = wanted()
    if MANIFEST.exists() and json.loads(MANIFEST.read_text()) == manifest:
        return []
    MANIFEST.unlink(missing_ok=True)
    for file in extensions():
        file.unlink()
    BUILD["build"](PACKAGE / "wire")
    made = ["wire/_native.c"]
    if manifest["mypyc"]:
        command = [sys.executable, __file__, "mypyc"]
        subprocess.run(command, check=True, cwd=SOURCE, capture_output=True, text=True)
        made += COMPILED
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")
    return made


def compile_modules() -> None:
    """Run mypyc; in a process of its own, for it prints and changes global state."""
    from mypyc.build import mypycify
    from setuptools import setup

    with tempfile.TemporaryDirectory(prefix="quorate-build-") as folder:
        made = mypycify(
            ["--strict", *(f"quorate/{name}" for name in COMPILED)],
            group_name="quorate",
            target_dir=folder,
            debug_level="0",
        )
        setup(
            name="quorate-native",
            packages=[],
            ext_modules=made,
            script_args=["-q", "build", "--build-base", folder, "build_ext", "--inplace"],
        )


def main(arguments: list[str]) -> None:
    if arguments == ["mypyc"]:
        compile_modules()
        return
    try:
        made = build()
    except (OSError, subprocess.CalledProcessError) as error:
        for file in extensions():
            file.unlink()
        print(f"{BUILD['explain'](error)}: everything runs in the interpreter.", file=sys.stderr)
        return
    if made:
        print(f"Compiled: {', '.join(made)}.", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
