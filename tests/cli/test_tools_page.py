"""docs/tools.md is what the tools' help says, and docs/migrating.md names every tool."""

import subprocess
import sys
from pathlib import Path

from quorate.cli.main import TOOLS

ROOT = Path(__file__).resolve().parents[2]
PAGE = "import runpy; print(runpy.run_path('tools/list_tools.py')['page'](), end='')"


def test_the_page_of_the_tools_is_current():
    """In a process of its own: click keeps the help option of a command that has run."""
    run = subprocess.run([sys.executable, "-c", PAGE], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run
    text = (ROOT / "docs/tools.md").read_text()
    assert text == run.stdout, "run: python tools/list_tools.py"


def test_every_tool_of_kafka_is_mapped():
    text = (ROOT / "docs/migrating.md").read_text()
    ours = {name for name, tool in TOOLS.items() if tool.place.startswith("quorate.cli.tools.")}
    assert {name for name in ours if f"`quorate {name}`" not in text} == set()
