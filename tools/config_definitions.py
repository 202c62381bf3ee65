"""Write the table of Kafka's configs from Kafka's jars: `python tools/config_definitions.py`.

Needs Java and `make .kafka/libs.stamp`. The interop tests compare the table with the jars.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
MODULE: Final = ROOT / "src/quorate/config_definitions/table.py"
PROBE: Final = ROOT / "tests/interop/ConfigDefinitions.java"
sys.path.insert(0, str(ROOT / "tests"))

from interop.java import libs  # noqa: E402 - found by the line above
from interop.process import run_tool  # noqa: E402

_HEAD: Final = '''"""The configs of Kafka 4.3.1, in its order: made by `python tools/config_definitions.py`.

A line has the name, the type, the default, a column that depends on the resource, the visibility and
the allowed values. The default is a text in quotes, `null`, or `required` where there is none. The
fourth column of a topic or group names the configs of a broker in its place, with what their value is
multiplied by. That of a broker says how the config changes.
"""
# ruff: noqa: E501

from __future__ import annotations

from typing import Final
'''


def module() -> str:
    """The text of the module, from the jars."""
    run = run_tool(["java", "-cp", f"{libs()}/*", str(PROBE)], timeout=120)
    assert run.returncode == 0, run
    parts = [_HEAD]
    for section in run.stdout.removeprefix("= ").split("\n= "):
        name, _, lines = section.partition("\n")
        parts.append(f'\n{name}: Final = """\\\n{lines.strip()}\n"""\n')
    return "".join(parts)


if __name__ == "__main__":
    MODULE.write_text(module())
