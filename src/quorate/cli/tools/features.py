"""`quorate features`: show and change feature levels, as Kafka's kafka-features does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.columns import fit
from quorate.cli.options import (
    CONTEXT,
    INT32,
    OrderedGroup,
    connection_options,
    json_option,
    open_admin,
    timeout_option,
)
from quorate.cli.tools.feature_facts import feature_dependencies, name_and_level, version_mapping
from quorate.formats.versions import (
    FEATURES,
    METADATA_VERSION,
    FeatureError,
    metadata_version_of,
    parse_metadata_version,
)

_NAMES: Final = (
    "Feature",
    "SupportedMinVersion",
    "SupportedMaxVersion",
    "FinalizedVersionLevel",
    "Epoch",
)
_WIDTHS: Final = (40, 15, 15, 15, 0)
"""Of Kafka's columns; the last one has none."""


class FeatureToolError(QuorateError):
    """The command is refused, or some of its changes failed."""


@click.group(
    cls=OrderedGroup,
    context_settings=CONTEXT,
    epilog="""\b
Examples (TOOL is: quorate features --bootstrap-controller localhost:9093):
  TOOL describe
  TOOL upgrade --release-version 4.3
  TOOL upgrade --feature kraft.version=1 --dry-run
  quorate features version-mapping --release-version 4.0""",
)
@timeout_option
@connection_options("Client properties file.")
@click.pass_context
def features(ctx: click.Context, /, **options: Any) -> None:
    """Show and change a cluster's feature levels (Kafka's kafka-features)."""
    ctx.obj = options


@features.command(context_settings=CONTEXT)
@click.option("--node-id", type=INT32, help="Ask this node instead of any.")
@json_option
@click.pass_obj
def describe(options: dict[str, Any], node_id: int | None, as_json: bool) -> None:
    """Show supported and finalized levels."""
    if node_id is not None and node_id < 0:
        raise FeatureToolError(f"Invalid node id {node_id}: must be non-negative.")
    with open_admin(options)[0] as admin:
        found = admin.describe_features(node_id)
    rows: list[dict[str, Any]] = [
        {
            "feature": name,
            "supportedMinVersion": low,
            "supportedMaxVersion": high,
            "finalizedVersionLevel": found.finalized.get(name, 0),
        }
        for name, (low, high) in sorted(found.supported.items())
    ]
    epoch = None if found.epoch < 0 else found.epoch
    if as_json:
        click.echo(json.dumps({"epoch": epoch, "features": rows}, indent=2))
        return
    shown = "-" if epoch is None else str(epoch)
    cells = [
        (name, *(_level(name, number) for number in levels), shown)
        for name, *levels in (row.values() for row in rows)
    ]
    lines = [
        "  ".join(
            f"{name}: {cell.ljust(width)}"
            for name, cell, width in zip(_NAMES, row, _WIDTHS, strict=True)
        )
        for row in cells
    ]
    for line in fit(lines, _NAMES, cells):
        click.echo(line)


def _level(name: str, level: int) -> str:
    if name != METADATA_VERSION:
        return str(level)
    try:
        return str(metadata_version_of(level))
    except FeatureError:
        return f"UNKNOWN {level}"


def _change_options(unsafe: bool) -> Callable[[Any], Any]:
    def add(command: Any) -> Any:
        if unsafe:
            command = click.option(
                "--unsafe", is_flag=True, help="Allow a change that may lose metadata."
            )(command)
        command = click.option(
            "--dry-run", is_flag=True, help="Check the change without making it."
        )(command)
        command = click.option(
            "--feature",
            "named",
            multiple=True,
            metavar="NAME=LEVEL",
            help="A feature and its level. May be repeated.",
        )(command)
        command = click.option(
            "--release-version",
            "--release-software",
            metavar="VERSION",
            help="Set the feature levels of this release.",
        )(command)
        return click.option(
            "--metadata", metavar="VERSION", help="Deprecated: the level of metadata.version."
        )(command)

    return add


@features.command(context_settings=CONTEXT)
@_change_options(unsafe=False)
@json_option
@click.pass_obj
def upgrade(options: dict[str, Any], /, dry_run: bool, as_json: bool, **words: Any) -> None:
    """Raise feature levels."""
    from quorate.client.admin.quorum import UPGRADE

    _update(
        options,
        "upgrade",
        _levels({**words, "as_json": as_json}, with_zeros=False),
        UPGRADE,
        dry_run,
        as_json,
    )


@features.command(context_settings=CONTEXT)
@_change_options(unsafe=True)
@json_option
@click.pass_obj
def downgrade(
    options: dict[str, Any], /, dry_run: bool, unsafe: bool, as_json: bool, **words: Any
) -> None:
    """Lower feature levels."""
    from quorate.client.admin.quorum import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE

    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    _update(
        options,
        "downgrade",
        _levels({**words, "as_json": as_json}, with_zeros=True),
        kind,
        dry_run,
        as_json,
    )


@features.command(context_settings=CONTEXT)
@click.option(
    "--feature", "named", multiple=True, metavar="NAME", help="A feature. May be repeated."
)
@click.option("--unsafe", is_flag=True, help="Allow a change that may lose metadata.")
@click.option("--dry-run", is_flag=True, help="Check the change without making it.")
@json_option
@click.pass_obj
def disable(
    options: dict[str, Any], named: Sequence[str], unsafe: bool, dry_run: bool, as_json: bool
) -> None:
    """Lower features to level 0."""
    from quorate.client.admin.quorum import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE

    levels: dict[str, int] = {}
    for name in named:
        _put(levels, name, 0)
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    _update(options, "disable", levels, kind, dry_run, as_json)


def _levels(words: Mapping[str, Any], with_zeros: bool) -> dict[str, int]:
    """The levels that the options name. `with_zeros` includes a release's features at level 0."""
    release, metadata, named = words["release_version"], words["metadata"], words["named"]
    if release is not None:
        if metadata is not None or named:
            raise FeatureToolError("Can not specify `release-version` with other feature flags.")
        version = parse_metadata_version(release, unstable=True)
        defaults = {name: item.default_level(version) for name, item in FEATURES.items()}
        wanted = {name: level for name, level in defaults.items() if level or with_zeros}
        return {METADATA_VERSION: int(version)} | wanted
    levels: dict[str, int] = {}
    if metadata is not None:
        click.echo(
            " `metadata` flag is deprecated and may be removed in a future release.",
            err=words["as_json"],
        )
        levels[METADATA_VERSION] = int(parse_metadata_version(metadata, unstable=True))
    for text in named:
        _put(levels, *name_and_level(text))
    return levels


def _put(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise FeatureToolError(f"Feature {name} was specified more than once.")
    levels[name] = level


def _update(
    options: Mapping[str, Any],
    verb: str,
    levels: dict[str, int],
    kind: int,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Send the levels and print each result. Raises FeatureToolError if any failed."""
    from quorate.client import RequestFailedError

    with open_admin(options)[0] as admin:
        if not levels:
            raise FeatureToolError(f"You must specify at least one feature to {verb}")
        try:
            outcome = admin.update_features(levels, kind, dry_run)
        except RequestFailedError as error:
            outcome = dict.fromkeys(levels, error)
    if as_json:
        rows = [
            {"feature": name, "level": levels[name], "error": failure and failure.text}
            for name, failure in sorted(outcome.items())
        ]
        click.echo(json.dumps({"dryRun": dry_run, "features": rows}, indent=2))
    failures = 0
    for name, failure in sorted(outcome.items()):
        level = levels[name]
        if failure is None:
            past = "disabled." if verb == "disable" else f"{verb}d to {level}."
            if not as_json:
                click.echo(f"{name} {'can be' if dry_run else 'was'} {past}")
        else:
            failures += 1
            what = f"disable {name}" if verb == "disable" else f"{verb} {name} to {level}"
            click.echo(f"{'Can' if dry_run else 'Could'} not {what}. {failure.text}", err=as_json)
    if failures:
        raise FeatureToolError(f"{failures} out of {len(levels)} operation(s) failed.")


features.add_command(version_mapping)
features.add_command(feature_dependencies)
