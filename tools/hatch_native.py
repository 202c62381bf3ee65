"""The build hook of the wheel: compiled parts go into it, where a C compiler is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import build_native


class NativeHook(BuildHookInterface):
    """Makes a wheel for this platform, or a pure one where nothing could be compiled.

    mypyc takes part when it is installed where the wheel is built: see `make wheel`.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        build_native.main([])
        found = build_native.extensions()
        if found:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
        for file in found:
            build_data["force_include"][str(file)] = str(file.relative_to(build_native.SOURCE))
