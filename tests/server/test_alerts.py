"""The alerting rules: each fires and clears on samples, and has its entry in docs/operations.md."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from quorate.server.metrics import ALL_METRICS

DOCS = Path(__file__).parents[2] / "docs"
RULES = yaml.safe_load((DOCS / "alerts.yml").read_text())["groups"][0]["rules"]
EXPRESSION = re.compile(
    r"(?:(?P<open>\()?(?P<total>sum|max|min)\((?P<gauge>\w+)\)(?P<zero> or vector\(0\))?(?(open)\))"
    r"|increase\((?P<counter>\w+)\[(?P<range>\d+)m\]\))"
    r" (?P<operator>[<>]) (?P<bound>\d+)"
)
SECONDS = {"s": 1, "m": 60}
TOTALS: dict[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "min": min}
STALE_S = 300
"""Prometheus looks back this long for the newest sample of a series."""


class Alert:
    """Evaluates one rule over series of samples: (s, value) of each node, as Prometheus does."""

    def __init__(self, rule):
        parts = EXPRESSION.fullmatch(rule["expr"])
        assert parts, f"{rule['expr']}: this evaluator knows no such expression"
        self.parts = parts
        lasting = re.fullmatch(r"(\d+)([sm])", rule["for"])
        assert lasting, rule["for"]
        number, unit = lasting.groups()
        self.for_s = int(number) * SECONDS[unit]
        self.since = None

    @property
    def metric(self):
        return self.parts["gauge"] or self.parts["counter"]

    def fires(self, now_s, series):
        """Call it with ascending times."""
        parts = self.parts
        past_s = STALE_S if parts["gauge"] else int(parts["range"]) * 60
        within = [[v for at, v in one if now_s - past_s <= at <= now_s] for one in series]
        present = [values for values in within if values]
        if parts["counter"]:
            values = [values[-1] - values[0] for values in present]
        else:
            newest = [values[-1] for values in present]
            total = TOTALS[parts["total"]]
            values = [total(newest)] if newest else [0.0] if parts["zero"] else []
        bound = float(parts["bound"])
        holds = any(v < bound if parts["operator"] == "<" else v > bound for v in values)
        if not holds:
            self.since = None
            return False
        self.since = now_s if self.since is None else self.since
        return now_s - self.since >= self.for_s


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_fires_and_clears(rule):
    alert = Alert(rule)
    bound = float(alert.parts["bound"])
    is_counter = alert.parts["counter"] is not None
    bad = bound - 1 if alert.parts["operator"] == "<" else bound + 1
    good = bound if alert.parts["operator"] == "<" else 0.0
    begin, end, stop = 600, 1_200, 2_400

    def value(at):
        if is_counter:  # it rises once, and stays
            return 5.0 if at < begin else 5.0 + bad
        return bad if begin <= at < end else good

    other = 7.0 if is_counter else good if alert.parts["total"] == "min" else 0.0
    nodes = [
        [(at, value(at)) for at in range(0, stop, 5)],
        [(at, other) for at in range(0, stop, 5)],
    ]
    fired = [at for at in range(0, stop, 5) if alert.fires(at, nodes)]
    assert fired, "it never fires"
    assert fired[0] == begin + alert.for_s
    last = begin + int(alert.parts["range"]) * 60 if is_counter else end
    assert fired[-1] < last + 5 and fired[-1] < stop - 5, "it clears"


def test_that_no_controller_answers_is_an_alert_too():
    """A sum over no series is empty, and what is empty is never below a bound."""
    rule = next(rule for rule in RULES if rule["alert"] == "QuorateNoActiveController")
    alert = Alert(rule)
    last = 600
    nodes = [[(at, value) for at in range(0, last, 5)] for value in (1.0, 0.0, 0.0)]
    fired = [at for at in range(0, 2_000, 5) if alert.fires(at, nodes)]
    assert fired and fired[0] <= last + STALE_S + alert.for_s + 5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_names_a_metric_of_ours_and_its_runbook(rule):
    kinds = {definition.name: definition.kind for definition in ALL_METRICS}
    alert = Alert(rule)
    assert kinds[alert.metric] == ("counter" if alert.parts["counter"] else "gauge")
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert page == "docs/operations.md"
    assert anchor == rule["alert"].lower()
    headings = re.findall(r"^## (.+)$", (DOCS / "operations.md").read_text(), re.M)
    assert rule["alert"] in headings
    assert rule["labels"]["severity"] in ("critical", "warning")
