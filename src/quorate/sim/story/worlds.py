"""Worlds as stories: a plan in place of commands, and under `----` what comes of it.

What comes of it is `no promise was broken`, or the check that failed, when, and what it says; of a
plan as `sim plan` prints it, without `----`, the first is expected. So a
world in which a promise broke, made small by `shrink`, becomes a regression test: mend the code
and write the outcome anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quorate.base.words import many
from quorate.sim.plan import FORMAT, Plan, PlanError
from quorate.sim.plan_text import HEAD, parse_plan, plan_text
from quorate.sim.run import Outcome, checked, run_plan
from quorate.sim.scenarios import check_scenario
from quorate.sim.story.errors import StoryError
from quorate.sim.story.told import Difference, Told

RULE: Final = "----"
FINE: Final = "no promise was broken"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`head`: the lines of comments and plan as they are; the first command is on `line`."""

    head: tuple[str, ...]
    line: int
    plan: Plan
    outcome: tuple[str, ...]


def is_world(text: str) -> bool:
    """Is a setting of a plan the first that it says? Other stories begin with a command."""
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            return words[0] in HEAD and words[0] != "voters"  # which is a command, too
    return False


def parse_world(text: str, name: str) -> Scenario:
    """Raises StoryError(name, line, reason) where the plan or the file does not parse."""
    lines = [line.rstrip() for line in text.splitlines()]
    rules = [place for place, line in enumerate(lines) if line == RULE]
    if len(rules) > 1:
        raise StoryError(name, rules[1] + 1, f"a second {RULE}: a world has one outcome")
    end = rules[0] if rules else len(lines)
    head = lines[:end]
    while head and not head[-1]:
        head.pop()
    first = next(n for n, line in enumerate(head, 1) if line.partition("#")[0].strip())
    if head[first - 1].split()[0] != "format":
        said = f"a world says first which format its plan is of, as in 'format {FORMAT}'"
        raise StoryError(name, first, said)
    try:
        plan = parse_plan("\n".join(head))
        if plan.scenario:
            check_scenario(plan)
    except PlanError as error:
        raise StoryError(name, error.line or _line_of("scenario", head), error.reason) from None
    outcome = tuple(line for line in lines[end + 1 :] if line) if rules else (FINE,)
    return Scenario(tuple(head), first, plan, outcome)


def world_text(outcome: Outcome, comment: str = "") -> str:
    """The file of a world that was run; settings that are as by default are left out."""
    told = [f"# {line}".rstrip() for line in comment.splitlines()]
    head = plan_text(outcome.plan, short=True).splitlines()
    return "\n".join([*told, *head, RULE, *outcome_lines(outcome)]) + "\n"


def outcome_lines(outcome: Outcome) -> list[str]:
    """What came of a world, in lines."""
    failure = outcome.failure
    if failure is None:
        return [FINE]
    said = " ".join(failure.message.split())
    return [f"broken at {failure.at_ms} ms: {failure.check}", said]


def _line_of(setting: str, head: list[str]) -> int:
    """Where it is set; 0: nowhere."""
    words = (line.partition("#")[0].split() for line in head)
    return next((n for n, found in enumerate(words, 1) if found[:1] == [setting]), 0)


def tell_world(text: str, name: str) -> Told:
    """Run a world; raises StoryError where the file does not parse."""
    scenario = parse_world(text, name)
    found = tuple(outcome_lines(run_plan(scenario.plan, checked())))
    told = "\n".join([*scenario.head, RULE, *found]) + "\n"
    if found == scenario.outcome:
        return Told(told, ())
    plan = scenario.plan
    commands = (f"a world of {many(plan.voters, 'voter')} and {many(len(plan.deeds), 'deed')}",)
    return Told(told, (Difference(scenario.line, commands, scenario.outcome, found),))
