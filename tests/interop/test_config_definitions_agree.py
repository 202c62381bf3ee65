"""Our table of configs is that of Kafka's jars."""

import importlib.util
from pathlib import Path

import pytest

from narrow import not_none

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.interop, pytest.mark.slow]


def test_the_table_of_configs_is_kafkas():
    """Names, types, defaults, allowed values, synonyms and how a broker's configs change."""
    path = ROOT / "tools/config_definitions.py"
    spec = not_none(importlib.util.spec_from_file_location("tool", path))
    tool = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(tool)
    assert tool.MODULE.read_text() == tool.module(), "run: python tools/config_definitions.py"
