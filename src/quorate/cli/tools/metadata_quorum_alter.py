"""`quorate metadata-quorum alter`: reach another voter set by single safe steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from quorate.base.ids import ReplicaKey, uuid_to_text
from quorate.cli.options import CONTEXT, ToolCommand, json_option, open_admin

if TYPE_CHECKING:
    from quorate.client import Admin, QuorumInfo
    from quorate.client.alter import Targets


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Example: replace controller 1 by 4, and the lost disk of controller 3 by a new directory:
  quorate metadata-quorum --bootstrap-controller a:9093 alter \\
    --target 2,3@c:9093:$NEW_DIR3,4@d:9093:$DIR4""",
)
@click.option(
    "--target",
    required=True,
    metavar="VOTERS",
    help="The whole target voter set: id@host:port:directory-id for a new voter, the id alone for a "
    "voter that stays; separated by commas.",
)
@click.option("--dry-run", is_flag=True, help="Print the steps without taking them.")
@json_option
@click.pass_obj
def alter(options: dict[str, Any], target: str, dry_run: bool, as_json: bool) -> None:
    """Reach another voter set by single safe steps, each committed before the next.

    A new voter must already run as an observer; otherwise no step is taken. After Ctrl-C, the
    same command continues with the remaining steps. A removed controller with
    controller.quorum.auto.join.enable=true joins again by itself: stop it first.

    --json prints a line for each step, with state "committed", or "planned" with --dry-run. It
    prints one line with state "unchanged" when no step is needed.
    """
    from quorate.client.alter import QuorumView, steps_to
    from quorate.client.alter import alter as carry_out

    with open_admin(options)[0] as admin:
        view = QuorumView(admin)
        quorum = view.look()
        targets = _targets(target, quorum)
        progress = _StepPrinter(targets, as_json)
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
        click.echo("The voter set is already the target.")
    elif not dry_run:
        ids = ", ".join(str(voter.key.id) for voter in quorum.voters)
        click.echo(f"The voters are now {ids}.")


def _warn_of_lost_bootstrap(admin: Admin, quorum: QuorumInfo, targets: Targets) -> None:
    from quorate.client.alter import new_bootstrap_addresses

    found = new_bootstrap_addresses(admin.config.bootstrap, quorum, targets)
    if found:
        given = ", ".join(map(str, admin.config.bootstrap))
        click.echo(
            f"Warning: no voter will be at {given} afterwards. Then use one of "
            f"{', '.join(map(str, found))} for --bootstrap-controller, and in the nodes' "
            "controller.quorum.bootstrap.servers before their next start.",
            err=True,
        )


def _warn_of_unheard(quorum: QuorumInfo, steps: Any, targets: Targets) -> None:
    from quorate.client.alter import no_fetch_message, steps_without_fetches

    for step in steps_without_fetches(quorum, steps):
        click.echo(
            f"Warning: this step would fail now. {no_fetch_message(step, targets)}.", err=True
        )


class _StepPrinter:
    """Prints the steps, as text or JSON."""

    def __init__(self, targets: Targets, as_json: bool) -> None:
        self._targets = targets
        self._as_json = as_json
        self.steps_taken = 0
        self._began = 0.0

    def begin(self, step: Any, following: int) -> None:
        """A step starts; `following` more are planned after it."""
        from time import monotonic

        self._began = monotonic()
        if not self._as_json:
            total = self.steps_taken + 1 + following
            click.echo(f"Step {self.steps_taken + 1} of {total}: {self._text(step)} ... ", nl=False)

    def end(self, step: Any) -> None:
        """The step is committed."""
        from time import monotonic

        self.steps_taken += 1
        if self._as_json:
            self.show("committed", step)
        else:
            click.echo(f"committed in {round((monotonic() - self._began) * 1000)} ms")

    def stop(self) -> None:
        """The user interrupted the command."""
        click.echo(
            f"\nStopped after {self.steps_taken} committed steps; the current step may still be "
            "committed. Run the same command again to continue.",
            err=True,
        )

    def planned(self, step: Any, what: str) -> None:
        """A step of a dry run."""
        if self._as_json:
            self.show("planned", step)
        else:
            click.echo(f"{what}: {self._text(step)}")

    def show(self, state: str, step: Any = None) -> None:
        """Print a line of JSON."""
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


def _targets(text: str, quorum: QuorumInfo) -> Targets:
    """Parse `--target`; an id alone stands for the current voter of that id. Raises VoterError."""
    from quorate.config.dynamic_voters import VoterError, parse_voter

    voters = {str(voter.key.id): voter.key for voter in quorum.voters}
    found: dict[ReplicaKey, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        if part.isdecimal() and part not in voters:
            raise VoterError(
                f"Controller {part} is not a voter: write it as id@host:port:directory-id"
            )
        key, address = (voters[part], None) if part.isdecimal() else parse_voter(part)[:2]
        if key.id in {other.id for other in found}:
            raise VoterError(f"Node id {key.id} was specified more than once.")
        found[key] = address
    if not found:
        raise VoterError("No voters given.")
    return found
