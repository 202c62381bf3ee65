"""The notebook in examples/ runs from top to bottom, and prints its answers."""

from __future__ import annotations

import importlib
import re
import runpy
import sys
from pathlib import Path
from xml.etree import ElementTree

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fleet_history.py"


def test_the_notebook_runs_and_answers(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.import_module("quorate.spark"), "session", lambda *_: spark)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(tmp_path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    out = capsys.readouterr().out
    assert "GE6zr551RxiE7UFxeHzOVQ: 338 records" in out
    assert re.search(r"GE6zr551RxiE7UFxeHzOVQ\|2026-11-21 06:14:26.603\|3 +\|1 +\|2 ", out)
    assert "leader left the ISR" in out
    assert "the committed log has offset 307 from epoch 6, not 4" in out
    picture = ElementTree.parse(tmp_path / "leaders.svg").getroot()
    assert picture.tag.endswith("svg") and len(picture.findall(".//{*}rect")) > 10


def test_it_is_a_notebook():
    text = EXAMPLE.read_text()
    cells = re.split(r"^# %%", text, flags=re.M)[1:]
    assert len(cells) > 10 and text.startswith("# %% [markdown]\n# # ")
    for cell in cells:
        if cell.startswith(" [markdown]"):
            assert all(line.startswith("#") for line in cell.splitlines()[1:] if line)
