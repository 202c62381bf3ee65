"""`quorate metadata-quorum alter`: any voter set, by single safe steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.ids import ReplicaKey, uuid_to_text
from quorate.cli.options import CONTEXT, Tool, json_option, open_admin

if TYPE_CHECKING:
    from quorate.client.admin import Admin, Quorum
    from quorate.client.alter import Targets


@click.command(
    cls=Tool,
    context_settings=CONTEXT,
    epilog="""\b
Example: replace controller 1 by 4, and give 3, whose disk was lost, its new directory:
  quorate metadata-quorum --bootstrap-controller a:9093 alter \\
    --target 2,3@c:9093:$NEW_DIR3,4@d:9093:$DIR4""",
)
@click.option(
    "--target",
    required=True,
    metavar="VOTERS",
    help="All voters that shall be: id@host:port:directory-id of new ones, the id alone of those "
    "that stay as they are; separated by commas.",
)
@click.option("--dry-run", is_flag=True, help="Print the steps, but do not take them.")
@json_option
@click.pass_obj
def alter(options: dict[str, Any], target: str, dry_run: bool, as_json: bool) -> None:
    """Reach any voter set by single safe steps, each committed before the next.

    A voter that is added must run already, as an observer; else no step is taken. Ctrl-C ends it
    between two steps or within one; the same command goes on where it stopped. A controller with
    controller.quorum.auto.join.enable=true that is taken away comes back by itself: stop it first.

    --json prints a line for each step, its "state" committed (planned with --dry-run), and one
    whose state is unchanged where there is nothing to do.
    """
    from quorate.client.alter import View, steps_to
    from quorate.client.alter import alter as carry_out

    with open_admin(options)[0] as admin:
        view = View(admin)
        quorum = view.look()
        targets = _targets(target, quorum)
        progress = _Progress(targets, as_json)
        steps = steps_to(quorum, targets)
        if steps and admin.config.controllers:
            _warn_of_lost_bootstrap(admin, quorum, targets)
        if dry_run:
            for number, step in enumerate(steps, 1):
                progress.planned(step, f"DRY RUN of step {number} of {len(steps)}")
            _warn_of_unheard(quorum, steps, targets)
        else:
            try:
                quorum = carry_out(view, targets, progress.begin, progress.end)
            except KeyboardInterrupt:
                progress.stop()
                raise
    nothing_to_do = not (steps if dry_run else progress.steps_taken)
    if as_json:
        if nothing_to_do:
            progress.show("unchanged")
    elif nothing_to_do:
        click.echo("The voters are as wanted already.")
    elif not dry_run:
        ids = ", ".join(str(voter.key.id) for voter in quorum.voters)
        click.echo(f"The voters are now {ids}.")


def _warn_of_lost_bootstrap(admin: Admin, quorum: Quorum, targets: Targets) -> None:
    from quorate.client.alter import addresses_to_know

    found = addresses_to_know(admin.config.bootstrap, quorum, targets)
    if found:
        given = ", ".join(map(str, admin.config.bootstrap))
        click.echo(
            f"Warning: no voter will be at {given} after this. Give --bootstrap-controller one of "
            f"{', '.join(map(str, found))} from then on, and see that the nodes' "
            "controller.quorum.bootstrap.servers names one of them before one starts anew.",
            err=True,
        )


def _warn_of_unheard(quorum: Quorum, steps: Any, targets: Targets) -> None:
    from quorate.client.alter import unheard, why_unheard

    for step in unheard(quorum, steps):
        click.echo(f"Warning: as it is now this fails. {why_unheard(step, targets)}.", err=True)


class _Progress:
    """Tells of the steps as they are taken."""

    def __init__(self, targets: Targets, as_json: bool) -> None:
        self._targets = targets
        self._as_json = as_json
        self.steps_taken = 0
        self._began = 0.0

    def begin(self, step: Any, following: int) -> None:
        from time import monotonic

        self._began = monotonic()
        if not self._as_json:
            total = self.steps_taken + 1 + following
            click.echo(f"Step {self.steps_taken + 1} of {total}: {self._text(step)} ... ", nl=False)

    def end(self, step: Any) -> None:
        from time import monotonic

        self.steps_taken += 1
        if self._as_json:
            self.show("committed", step)
        else:
            click.echo(f"committed in {round((monotonic() - self._began) * 1000)} ms")

    def stop(self) -> None:
        click.echo(
            f"\nStopped after {self.steps_taken} committed steps; one that was under way may still "
            "commit. Run the same command again to go on.",
            err=True,
        )

    def planned(self, step: Any, what: str) -> None:
        if self._as_json:
            self.show("planned", step)
        else:
            click.echo(f"{what}: {self._text(step)}")

    def show(self, state: str, step: Any = None) -> None:
        """A line of JSON."""
        import json

        facts: dict[str, Any] = {"state": state}
        if step is not None:
            action = self._text(step).partition(" ")[0]
            directory_id = uuid_to_text(step.voter.directory_id)
            facts |= {"action": action, "id": step.voter.id, "directoryId": directory_id}
        click.echo(json.dumps(facts))

    def _text(self, step: Any) -> str:
        from quorate.client.alter import step_text

        return step_text(step, self._targets)


def _targets(text: str, quorum: Quorum) -> Targets:
    """The voters of `--target`; an id alone stands for the voter of that id."""
    from quorate.node.dynamic_voters import VoterError, parse_voter

    voters = {str(voter.key.id): voter.key for voter in quorum.voters}
    found: dict[ReplicaKey, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part.isdecimal() and part not in voters:
            raise VoterError(
                f"Controller {part} is no voter now: give it as id@host:port:directory-id"
            )
        key, address = (voters[part], None) if part.isdecimal() else parse_voter(part)[:2]
        if key.id in {other.id for other in found}:
            raise VoterError(f"Node id {key.id} was specified more than once.")
        found[key] = address
    if not found:
        raise VoterError("No voters given.")
    return found
