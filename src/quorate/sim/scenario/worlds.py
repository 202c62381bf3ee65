"""Worlds as scenarios: a plan in place of commands, and under `----` the outcome.

The outcome is `all checks passed`, or the violated check with its time and message. A plan as `sim
plan` prints it has no `----` and expects the first. A failing world that `shrink` has made small
becomes a regression test: fix the code and rewrite the outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.plural import pluralize
from quorate.sim.plan.plan import FORMAT, Plan, PlanError
from quorate.sim.plan.text import HEAD, parse_plan, plan_text
from quorate.sim.run.kafka_scenarios import check_scenario
from quorate.sim.run.run import WorldOutcome, checked, run_plan
from quorate.sim.scenario.errors import ScenarioError
from quorate.sim.scenario.rewrite import Difference, ScenarioRun

RULE: Final = "----"
PASSED: Final = "all checks passed"
_FORMERLY: Final = {"no promise was broken": PASSED}
"""Outcomes as earlier versions wrote them."""


@dataclass(frozen=True, slots=True)
class WorldScenario:
    """`head`: the comment and plan lines unchanged; the first setting is on `line`."""

    head: tuple[str, ...]
    line: int
    plan: Plan
    outcome: tuple[str, ...]


def is_world(text: str) -> bool:
    """Whether the first word is a setting of a plan. Other scenarios begin with a command."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            return words[0] in HEAD and words[0] != "voters"  # which is a command, too
    return False


def parse_world(text: str, name: str) -> WorldScenario:
    """Parse a world; raises ScenarioError(name, line, reason) where the plan or the file does not
    parse."""
    lines = [line.rstrip() for line in text.splitlines()]
    rules = [place for place, line in enumerate(lines) if line == RULE]
    if len(rules) > 1:
        raise ScenarioError(name, rules[1] + 1, f"a second {RULE}: a world has one outcome")
    end = rules[0] if rules else len(lines)
    head = lines[:end]
    while head and not head[-1]:
        head.pop()
    first = next(n for n, line in enumerate(head, 1) if line.partition("#")[0].strip())
    if head[first - 1].split()[0] != "format":
        said = f"a world begins with the format of its plan, as in 'format {FORMAT}'"
        raise ScenarioError(name, first, said)
    try:
        plan = parse_plan("\n".join(head))
        if plan.scenario:
            check_scenario(plan)
    except PlanError as error:
        raise ScenarioError(name, error.line or _line_of("scenario", head), error.reason) from None
    written = (_FORMERLY.get(line, line) for line in lines[end + 1 :] if line)
    outcome = tuple(written) if rules else (PASSED,)
    return WorldScenario(tuple(head), first, plan, outcome)


def world_text(outcome: WorldOutcome, comment: str = "") -> str:
    """The file of a world that was run; settings with default values are left out."""
    comments = [f"# {line}".rstrip() for line in comment.splitlines()]
    head = plan_text(outcome.plan, short=True).splitlines()
    return "\n".join([*comments, *head, RULE, *outcome_lines(outcome)]) + "\n"


def outcome_lines(outcome: WorldOutcome) -> list[str]:
    """The outcome of a world, in lines."""
    failure = outcome.failure
    if failure is None:
        return [PASSED]
    said = " ".join(failure.message.split())
    return [f"broken at {failure.at_ms} ms: {failure.check}", said]


def _line_of(setting: str, head: list[str]) -> int:
    """The line of a setting; 0: it is not set."""
    words = (line.partition("#")[0].split() for line in head)
    return next((n for n, found in enumerate(words, 1) if found[:1] == [setting]), 0)


def run_world(text: str, name: str) -> ScenarioRun:
    """Run a world; raises ScenarioError where the file does not parse."""
    scenario = parse_world(text, name)
    found = tuple(outcome_lines(run_plan(scenario.plan, checked())))
    rewritten = "\n".join([*scenario.head, RULE, *found]) + "\n"
    if found == scenario.outcome:
        return ScenarioRun(rewritten, ())
    plan = scenario.plan
    fault_events = pluralize(len(plan.fault_events), "fault event")
    commands = (f"a world of {pluralize(plan.voters, 'voter')} and {fault_events}",)
    return ScenarioRun(rewritten, (Difference(scenario.line, commands, scenario.outcome, found),))
