"""The first program of docs/embed.md runs as it is printed."""

import re
import sys
from pathlib import Path

from interop.process import run_tool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embed.md"


def test_the_first_program_of_the_page_runs(tmp_path):
    program = tmp_path / "counter.py"
    program.write_text(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0])
    run = run_tool([sys.executable, str(program)])
    assert (run.stdout, run.returncode) == ("1\n", 0), run.stderr
