"""The build hook of the wheel: compiled parts go into it, where a C compiler is there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import build_native


def _compiles() -> bool:
    """Whether this build compiles: `QUORATE_PURE_PYTHON=1` asks for a wheel without."""
    return not os.environ.get("QUORATE_PURE_PYTHON") and build_native.has_compiler()


class NativeHook(BuildHookInterface):
    """Makes a wheel for this platform, or a pure one where nothing can be compiled."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the front end (pip, uv, build) gets for the build: mypyc, where it can run."""
        return ["mypy[mypyc]>=1.15", "setuptools>=75"] if _compiles() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile what is out of date and put it into the wheel; an editable one uses what is."""
        if version == "editable" or not _compiles():
            return
        build_native.main([])
        found = build_native.extensions()
        if found:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
        for file in found:
            build_data["force_include"][str(file)] = str(file.relative_to(build_native.SOURCE))
