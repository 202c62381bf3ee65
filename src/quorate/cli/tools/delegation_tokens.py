"""`quorate delegation-tokens`: create, renew, expire and describe tokens, as kafka-delegation-tokens."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.flat_options import (
    FlatToolError,
    flat_command,
    given_options,
    open_tool,
    print_json,
    refuse_with,
    require,
)
from quorate.cli.options import INT64

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.client.admin.security import DelegationTokenInfo, Principal

ACTIONS: Final = ("create", "renew", "expire", "describe")
_COLUMNS: Final = (15, 30, 15, 15, 25, 15, 15, 15)
_HEADS: Final = (
    *("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS"),
    *("ISSUEDATE", "EXPIRYDATE", "MAXDATE"),
)


@flat_command(
    "delegation-tokens",
    """\
TOOL is: quorate delegation-tokens --bootstrap-server localhost:9092 --command-config client.properties
TOOL --create --max-life-time-period -1 --renewer-principal User:alice
TOOL --renew --renew-time-period -1 --hmac HMAC
TOOL --describe --owner-principal User:alice --json""",
    "Client properties file; tokens need an authenticated connection.",
)
@click.option("--create", is_flag=True, help="Create a token.")
@click.option("--renew", is_flag=True, help="Let a token live longer.")
@click.option("--expire", is_flag=True, help="Let a token end sooner.")
@click.option("--describe", is_flag=True, help="Describe the tokens of --owner-principal.")
@click.option("--owner-principal", multiple=True, metavar="TYPE:NAME", help="Whose tokens.")
@click.option("--renewer-principal", multiple=True, metavar="TYPE:NAME", help="Who may renew it.")
@click.option("--max-life-time-period", type=INT64, metavar="MS", help="-1: as long as allowed.")
@click.option("--renew-time-period", type=INT64, metavar="MS", help="-1: the cluster's default.")
@click.option("--expiry-time-period", type=INT64, metavar="MS", help="-1: the token ends now.")
@click.option("--hmac", metavar="BASE64", help="The token's HMAC.")
def delegation_tokens(ctx: click.Context, /, **options: Any) -> None:
    """Create, renew, expire and describe delegation tokens (Kafka's kafka-delegation-tokens)."""
    action = check_options(given_options(ctx))
    with open_tool(options) as admin:
        _PERFORM[action](admin, options)


def check_options(given: Collection[str]) -> str:
    """The action. Raises UsageError (`DelegationTokenCommandOptions.checkArgs`)."""
    actions = [name for name in ACTIONS if name in given]
    if len(actions) != 1:
        raise click.UsageError(
            "Command must include exactly one action: --create, --renew, --expire or --describe"
        )
    [action] = actions
    if "bootstrap-controller" not in given:
        require(given, "bootstrap-server")
    require(given, "command-config")
    require(given, *_REQUIRED[action])
    refuse_with(given, action, _REFUSED[action])
    return action


_REQUIRED: Final[Mapping[str, Sequence[str]]] = {
    "create": ("max-life-time-period",),
    "renew": ("hmac", "renew-time-period"),
    "expire": ("hmac", "expiry-time-period"),
    "describe": (),
}
_REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "create": ("hmac", "renew-time-period", "expiry-time-period"),
    "renew": (
        *("renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal"),
    ),
    "expire": ("renew", "max-life-time-period", "renew-time-period", "owner-principal"),
    "describe": ("renew-time-period", "max-life-time-period", "hmac", "expiry-time-period"),
}


# -- actions -------------------------------------------------------------------------------------
def _create(admin: Admin, options: Mapping[str, Any]) -> None:
    renewers, owners = _principals(options, "renewer"), _principals(options, "owner")
    lifetime_ms = options["max_life_time_period"]
    if not options["as_json"]:
        click.echo(
            f"Calling create token operation with renewers :{_list(renewers)} , max-life-time-period "
            f":{lifetime_ms}"
        )
    token = admin.create_delegation_token(renewers, owners[0] if owners else None, lifetime_ms)
    if options["as_json"]:
        print_json(_json(token))
        return
    click.echo(f"Created delegation token with tokenId : {token.token_id}")
    _print_tokens([token])


def _renew(admin: Admin, options: Mapping[str, Any]) -> None:
    period_ms = options["renew_time_period"]
    if not options["as_json"]:
        click.echo(
            f"Calling renew token operation with hmac :{options['hmac']} , renew-time-period "
            f":{period_ms}"
        )
    _print_expiry("renew", admin.renew_delegation_token(_hmac(options), period_ms), options)


def _expire(admin: Admin, options: Mapping[str, Any]) -> None:
    period_ms = options["expiry_time_period"]
    if not options["as_json"]:
        click.echo(
            f"Calling expire token operation with hmac :{options['hmac']} , expire-time-period "
            f":{period_ms}"
        )
    _print_expiry("expire", admin.expire_delegation_token(_hmac(options), period_ms), options)


def _describe(admin: Admin, options: Mapping[str, Any]) -> None:
    owners = _principals(options, "owner")
    if not options["as_json"]:
        if owners:
            click.echo(f"Calling describe token operation for owners: {_list(owners)}")
        else:
            click.echo("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_tokens(owners or None)
    if options["as_json"]:
        print_json(list(map(_json, tokens)))
        return
    click.echo(f"Total number of tokens : {len(tokens)}", nl=False)
    _print_tokens(tokens)


_PERFORM: Final = {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}


# -- values --------------------------------------------------------------------------------------
def _principals(options: Mapping[str, Any], role: str) -> list[Principal]:
    from quorate.client.admin.security import Principal

    found = []
    for text in options[f"{role}_principal"]:
        kind, _, name = text.strip().partition(":")
        if not kind or not name:
            raise FlatToolError(
                f"expected a string in format principalType:principalName but got {text.strip()}"
            )
        found.append(Principal(kind, name))
    return found


def _hmac(options: Mapping[str, Any]) -> bytes:
    try:
        return b64decode(options["hmac"], validate=True)
    except ValueError:
        raise FlatToolError("--hmac: the value is not base64, as --describe shows it") from None


def _list(principals: Sequence[Principal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _print_expiry(verb: str, expires_ms: int, options: Mapping[str, Any]) -> None:
    if options["as_json"]:
        print_json({"expiryTimestamp": expires_ms})
    else:
        date = _date(expires_ms)
        click.echo(f"Completed {verb} operation. New expiry date : {date}", nl=False)


def _print_tokens(tokens: Sequence[DelegationTokenInfo]) -> None:
    rows = [
        (
            token.token_id,
            b64encode(token.hmac).decode(),
            str(token.owner),
            str(token.requester),
            _list(token.renewers),
            _date(token.issued_ms),
            _date(token.expires_ms),
            _date(token.max_ms),
        )
        for token in tokens
    ]
    from quorate.cli.columns import fit

    lines = [
        line
        for row in (_HEADS, *rows)
        for line in ("", " ".join(f"{c:<{width}}" for c, width in zip(row, _COLUMNS, strict=True)))
    ]
    click.echo(lines[0])  # ends a message that Kafka's tool prints without a line end
    for line in fit(lines[1:], _HEADS, rows):
        click.echo(line)


def _date(time_ms: int) -> str:
    """Minutes of the local time, as Kafka's tool prints it."""
    from datetime import datetime

    return datetime.fromtimestamp(time_ms / 1000).strftime("%Y-%m-%dT%H:%M")


def _json(token: DelegationTokenInfo) -> dict[str, Any]:
    return {
        "tokenId": token.token_id,
        "hmac": b64encode(token.hmac).decode(),
        "owner": str(token.owner),
        "requester": str(token.requester),
        "renewers": list(map(str, token.renewers)),
        "issueTimestamp": token.issued_ms,
        "expiryTimestamp": token.expires_ms,
        "maxTimestamp": token.max_ms,
    }
