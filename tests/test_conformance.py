"""docs/conformance.md: every scenario of the listed tests of Kafka 4.3.1 once, with a test or a reason.

A checksum pins the names of the scenarios: none can be dropped for another.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES_SHA256 = "634f05954ea3331140ef885015489ae47bf5bbb5868262012038edee78d6177f"
SCENARIOS = 1060
AT_LEAST_MAPPED = 0.95
LEAST_REASON = 40

_spec = importlib.util.spec_from_file_location("conformance_page", ROOT / "tools/conformance.py")
assert _spec is not None and _spec.loader is not None
generator = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generator)


def test_the_names_are_those_of_kafka() -> None:
    names = sorted(
        f"{kafka_class}.{name}"
        for kafka_class, found in generator.scenarios().items()
        for name in found
    )
    assert len(names) == SCENARIOS
    assert hashlib.sha256("\n".join(names).encode()).hexdigest() == NAMES_SHA256


def test_the_page_is_generated_from_todays_markers() -> None:
    """The generator itself refuses a scenario without a test and a marker without a scenario."""
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), (
        "run: python tools/conformance.py"
    )


def test_what_does_not_apply_has_a_reason() -> None:
    reasons = [
        (f"{kafka_class}.{name}", reason)
        for kafka_class, found in generator.scenarios().items()
        for name, reason in found.items()
        if reason
    ]
    assert [name for name, reason in reasons if len(reason) < LEAST_REASON] == []
    assert len(reasons) <= (1 - AT_LEAST_MAPPED) * SCENARIOS
