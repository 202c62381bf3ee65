"""Subcommands about features that need no cluster, shared by `storage` and `features`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import click

from quorate.cli.options import CONTEXT, ToolCommand, json_option
from quorate.formats.versions import (
    DEFAULT,
    FEATURES,
    METADATA_VERSION,
    MINIMUM,
    Feature,
    FeatureError,
    metadata_version_of,
    parse_metadata_version,
)

_SHORT: Final = range(-(2**15), 2**15)


def name_and_level(text: str) -> tuple[str, int]:
    """Parse `name=level`. Raises FeatureError."""
    name, equals, level = (part.strip() for part in text.partition("="))
    if not equals:
        raise FeatureError(f"Can't parse feature=level string {text}: equals sign not found.")
    number = _short(level)
    if number is None:
        raise FeatureError(
            f"Can't parse feature=level string {text}: unable to parse {level} as a short."
        )
    return name, number


def _short(text: str) -> int | None:
    try:
        number = int(text) if text.lstrip("+-").isdecimal() else None
    except ValueError:
        return None
    return number if number in _SHORT else None


@click.command("version-mapping", cls=ToolCommand, context_settings=CONTEXT)
@click.option(
    "--release-version",
    "-r",
    metavar="VERSION",
    help=f"The release to look up; at least {MINIMUM}, default {DEFAULT}.",
)
@json_option
def version_mapping(release_version: str | None, as_json: bool) -> None:
    """Show the feature levels of a release."""
    text = release_version or str(DEFAULT)
    version = parse_metadata_version(text, unstable=True)
    levels = {name: feature.default_level(version) for name, feature in FEATURES.items()}
    if as_json:
        click.echo(json.dumps({METADATA_VERSION: int(version)} | levels, indent=2))
        return
    click.echo(f"{METADATA_VERSION}={version:d} ({text})")
    for name, level in levels.items():
        click.echo(f"{name}={level}")


@click.command("feature-dependencies", cls=ToolCommand, context_settings=CONTEXT)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    required=True,
    metavar="NAME=LEVEL",
    help="A feature and its level, e.g. metadata.version=30. May be repeated.",
)
@json_option
def feature_dependencies(features: Sequence[str], as_json: bool) -> None:
    """Show the other features that a feature level requires."""
    facts = []
    for text in features:
        name, level, needs = _dependencies(text)
        facts.append({"feature": name, "level": level, "requires": needs})
        if as_json:
            continue
        shown = f"{name}={level}"
        if name == METADATA_VERSION:
            shown += f" ({metadata_version_of(level)})"
        click.echo(f"{shown} requires:" if needs else f"{shown} has no dependencies.")
        for other, needed in needs.items():
            release = f" ({metadata_version_of(needed)})" if other == METADATA_VERSION else ""
            click.echo(f"    {other}={needed}{release}")
    if as_json:
        click.echo(json.dumps(facts, indent=2))


def _dependencies(text: str) -> tuple[str, int, dict[str, int]]:
    name, equals, level_text = (part.strip() for part in text.partition("="))
    if not equals:
        raise FeatureError(
            f"Invalid feature format: {text}. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')"
        )
    level = _short(level_text)
    if level is None:
        raise FeatureError(f"Invalid version format: {level_text} for feature {name}")
    if name == METADATA_VERSION:
        try:
            metadata_version_of(level)
        except FeatureError:
            raise FeatureError(f"Unknown {METADATA_VERSION} {level}") from None
        return name, level, {}
    feature: Feature | None = FEATURES.get(name)
    if feature is None:
        raise FeatureError(f"Unknown feature: {name}")
    if not 0 <= level <= feature.max_level:
        raise FeatureError(f"Feature level {level} is not supported for feature {name}")
    return (
        name,
        level,
        {other: int(needed) for other, needed in feature.dependencies[level].items()},
    )
