"""Build the compiled parts in place, where there is a C compiler: `python tools/build_native.py`.

They are the codec in C (`quorate.wire.build`) and, where mypyc is installed, the modules of
COMPILED. Without them the same source runs in the interpreter, and nothing is lost but speed.
Nothing is done while the manifest says that what is there was made from these very sources; with
`--codec`, while it says so of the codec, for a developer who has just changed a module and does not wait.
"""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "src"
PACKAGE: Final = SOURCE / "quorate"
MANIFEST: Final = PACKAGE / "_native.json"
_HOT: Final = {
    "base": "check java_order turns",
    "controller": "context event_durations head mutation_quotas quotas rates request_quotas",
    "embed": "node outstanding",
    "formats": "batch batch_records batch_view files records snapshot varint",
    "node": "answers api_row apis authorizations client_quotas controller_node describe envelope long_answers"
    " metadata_machine node_io old_versions own_writes raft_rpc_inbound raft_rpc_outbound queued_write"
    " record_parts record_writer registration request_limits requests waiting_writes write_queue"
    " write_results",
    "raft": "*",
    "replica": "applier disk_jobs disk_worker log_reads proposals replica"
    " snapshot_policy state_machine tail",
    "server": "collector connection_count connections disk driver large_requests listener"
    " peer_connection peers",
    "sim": "prng",
    "sim/checks": "*",
    "sim/coverage": "*",
    "sim/run": "liveness",
    "sim/world": "brokers client_loop client_op clients cluster controller controller_calls"
    " controller_clients controller_process security_requests topic_requests"
    " crash_points disk disk_operations dispatch durable_state fault_budget faults fingerprint kernel"
    " network observable observer operators process state_machine trace wire world",
    "storage": "api disk disk_storage log memory recovery scan segment snapshots",
    "verify": "*",
    "wire": "frame header registry",
}
_OPEN: Final = ("raft/", "sim/world/observer.py")
"""The explorer of `sim` freezes and thaws whole cores; observers subclass Observer."""
COMPILED: Final = tuple(
    str(file.relative_to(PACKAGE))
    for folder, names in _HOT.items()
    for name in names.split()
    for file in sorted(PACKAGE.glob(f"{folder}/{name}.py"))
    if file.name != "__init__.py"
)
"""What mypyc makes faster; docs/decisions/0006 has the figures, also of what it does not."""
_FROM_O2: Final = (
    *("-finline-small-functions", "-foptimize-sibling-calls", "-fexpensive-optimizations"),
    *("-freorder-blocks-and-partition", "-freorder-functions", "-fcse-follow-jumps"),
    *("-fschedule-insns2", "-fpeephole2", "-fipa-ra", "-fcaller-saves", "-fstrict-aliasing"),
    *("-ftree-vrp", "-fno-semantic-interposition", "-fno-plt"),
)
"""What GCC adds to -O1: of the speed of -O2 most, for a quarter of its time."""
BUILD: Final = runpy.run_path(str(PACKAGE / "wire" / "build.py"))
RECIPE: Final = (Path(__file__), Path(__file__).with_name("native_classes.py"))
CODEC: Final = ("wire/_native.c", "wire/native_c/*", "wire/build.py")


def sources(modules: Sequence[str]) -> dict[str, str]:
    """SHA-256 of everything that the compiled parts are made from, by name."""
    files = [PACKAGE / name for name in modules if (PACKAGE / name).exists()]
    files += [file for pattern in CODEC for file in sorted(PACKAGE.glob(pattern))]
    return {
        str(file.relative_to(PACKAGE)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def wanted(modules: Sequence[str]) -> dict[str, Any]:
    """The manifest of what this interpreter would build now."""
    return {
        "python": sysconfig.get_config_var("EXT_SUFFIX"),
        "recipe": [hashlib.sha256(file.read_bytes()).hexdigest() for file in RECIPE],
        "modules": list(modules),
        "sources": sources(modules),
        "mypyc": find_spec("mypyc") is not None and find_spec("setuptools") is not None,
    }


def extensions() -> list[Path]:
    """The compiled parts that are there now."""
    return [*PACKAGE.rglob("*.so"), *SOURCE.glob("quorate__mypyc*.so")]


def has_compiler() -> bool:
    """Whether the C compiler that this interpreter names is there."""
    return shutil.which(BUILD["compiler"]()[0]) is not None


def flags() -> tuple[str, ...]:
    """The options of the C compiler besides -O1; clang has an -O1 of its own."""
    command = [*BUILD["compiler"](), *_FROM_O2, "-fsyntax-only", "-x", "c", os.devnull]
    taken = subprocess.run([*command, "-Werror"], capture_output=True).returncode == 0
    return _FROM_O2 if taken else ()


def problem() -> str | None:
    """Why what is compiled must not be used; None where it may, or nothing is compiled."""
    if not extensions():
        return None
    if not MANIFEST.exists():
        return "compiled parts without a manifest"
    made = json.loads(MANIFEST.read_text())
    present = sources(made["modules"])
    changed = [name for name in made["modules"] if name not in present]
    changed += [name for name in present if made["sources"].get(name) != present[name]]
    return f"changed since it was compiled: {', '.join(changed)}" if changed else None


def codec_is_current() -> bool:
    """Whether the codec in C was made from the sources that are there."""
    if not MANIFEST.exists():
        return False
    made = json.loads(MANIFEST.read_text())["sources"]
    return all(made.get(name) == digest for name, digest in sources(()).items())


def build(modules: Sequence[str]) -> list[str]:
    """Build what is out of date; the modules that were compiled.

    Raises OSError or CalledProcessError where nothing can be.
    """
    began_ns = time.time_ns()
    manifest = wanted(modules)
    if MANIFEST.exists() and json.loads(MANIFEST.read_text()) == manifest:
        # Every start of the command reads what is newer than the manifest.
        os.utime(MANIFEST, ns=(began_ns, began_ns))
        return []
    made = ["wire/_native.c"]
    with tempfile.TemporaryDirectory(prefix="quorate-build-") as folder:
        if modules and manifest["mypyc"]:
            command = [sys.executable, __file__, "mypyc", folder, *modules]
            subprocess.run(command, check=True, capture_output=True, text=True)
            made += modules
        remove()
        BUILD["build"](PACKAGE / "wire")
        copy = Path(folder, "src")
        for file in copy.rglob("*.so"):
            shutil.move(file, SOURCE / file.relative_to(copy))
    MANIFEST.write_text(json.dumps(manifest, indent=1) + "\n")
    os.utime(MANIFEST, ns=(began_ns, began_ns))  # what changed meanwhile is newer: stale
    return made


def remove() -> None:
    """Leave nothing compiled behind."""
    MANIFEST.unlink(missing_ok=True)
    for file in extensions():
        file.unlink()


def compile_modules(folder: str, modules: Sequence[str]) -> None:
    """Run mypyc over a copy in `folder`/src: a process of its own, for it changes global state."""
    from mypyc.build import mypycify
    from native_classes import native_source
    from setuptools import setup

    copy = Path(folder, "src")
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=ignored)
    for name in modules:
        file = copy / PACKAGE.name / name
        file.write_text(native_source(file.read_text(), copied=name.startswith(_OPEN)))
    os.environ["CFLAGS"] = " ".join([*flags(), os.environ.get("CFLAGS", "")])
    os.chdir(copy)
    made = mypycify(
        ["--strict", *(f"{PACKAGE.name}/{name}" for name in modules)],
        group_name="quorate",
        target_dir=folder,
        opt_level="1",  # 2 takes three quarters longer
        debug_level="0",
        multi_file=True,
    )
    cores = ("--parallel", str(os.cpu_count()))  # all are in one library, but for a shim of each
    setup(
        name="quorate-native",
        packages=[],
        ext_modules=made,
        script_args=["-q", "build", "--build-base", folder, "build_ext", "--inplace", *cores],
    )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["mypyc"]:
        compile_modules(arguments[1], arguments[2:])
        return
    if arguments not in ([], ["--codec"]):
        sys.exit(f"unknown arguments: {' '.join(arguments)}; known is --codec")
    if arguments and codec_is_current():
        return
    try:
        made = build(() if arguments else COMPILED)
    except (OSError, subprocess.CalledProcessError) as error:
        remove()
        print(f"{BUILD['explain'](error)}: everything runs in the interpreter.", file=sys.stderr)
        return
    if made:
        modules = f" and {len(made) - 1} modules" if made[1:] else ""
        print(f"Compiled: {made[0]}{modules}.", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
