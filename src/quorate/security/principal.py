"""Who asks: Kafka's principals, and the rules that shorten the name of a certificate to one.

Source: `KafkaPrincipal`, `SslPrincipalMapper` (KIP-371).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quorate.base.errors import QuorateError
from quorate.security.java_patterns import PatternError, compiled

USER: Final = "User"
DEFAULT_RULES: Final = "DEFAULT"
_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_REFERENCE: Final = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|(\$)", re.DOTALL)


class PrincipalError(QuorateError):
    """A rule that cannot be read, or a name that no rule matches."""


@dataclass(frozen=True, slots=True)
class KafkaPrincipal:
    """A principal; its text is `type:name`.

    `token_authenticated`: a delegation token authenticated it.
    """

    type: str
    name: str
    token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = f"{USER}:ANONYMOUS"
"""The principal of a connection without authentication, as `type:name`."""


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """What `quorate.principal.builder` may decide by, once a connection is authenticated."""

    listener: str
    """The name of the listener, in upper case."""
    security_protocol: str
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    host: str
    """The IP address of the client."""
    principal: str
    """The principal that Kafka's default builder gives, as `type:name`."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One rule; without a pattern, it is DEFAULT and keeps the name."""

    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        found = self.pattern.sub(self._expand, name)
        if self.case == "L":
            return found.lower()
        return found.upper() if self.case == "U" else found

    def _expand(self, match: re.Match[str]) -> str:
        """Java's replacement: `$1`, `${name}`, and a backslash before a literal character."""
        groups = match.re.groups

        def one(found: re.Match[str]) -> str:
            escaped, number, name, _ = found.groups()
            if escaped is not None:
                return str(escaped)
            if name is not None:
                return match[name] or ""
            if number is None:
                return "$"
            index, digits = int(number), str(number)
            while index > groups and len(digits) > 1:
                digits = digits[:-1]
                index = int(digits)
            if index > groups:
                return f"${number}"
            return (match[index] or "") + str(number)[len(digits) :]

        return _REFERENCE.sub(one, self.replacement)


class SslPrincipalMapper:
    """Maps the distinguished name of a certificate to the name of a principal.

    The first rule that matches the whole name decides. Raises PrincipalError for a rule that cannot
    be read.
    """

    def __init__(self, rules: str | None = DEFAULT_RULES) -> None:
        self._text = DEFAULT_RULES if rules is None else rules
        self._rules: Sequence[_Rule] = tuple(_rules(self._text.strip()))

    def name_of(self, distinguished_name: str) -> str:
        """The name of the principal. Raises PrincipalError when no rule matches."""
        for rule in self._rules:
            name = rule.apply(distinguished_name)
            if name is not None:
                return name
        raise PrincipalError(
            f"No rules apply to {distinguished_name}, rules {self._text}: add DEFAULT as the last rule "
            "of ssl.principal.mapping.rules to keep such names whole"
        )


def _rules(text: str) -> list[_Rule]:
    found = []
    for split in _SPLITTER.finditer(text):
        rule = split[1]
        match = _PARSER.match(rule)
        if match is None:
            raise PrincipalError(f"Invalid rule: {rule}")
        if match.end() != len(rule):
            rest = rule[match.end() :]
            raise PrincipalError(f"Invalid rule: `{rule}`, unmatched substring: `{rest}`")
        if match[1] is not None:
            found.append(_Rule())
        elif match[2] is not None:
            pattern = _compiled(match[2])
            _check_names(pattern, match[3])
            found.append(_Rule(pattern, match[3], match[4]))
    return found


def _check_names(pattern: re.Pattern[str], replacement: str) -> None:
    """Java refuses each name of a client where the replacement names no group: here at once."""
    for reference in _REFERENCE.finditer(replacement):
        name = reference[3]
        if name is not None and name not in pattern.groupindex:
            raise PrincipalError(
                f"Invalid rule: the pattern `{pattern.pattern}` has no group {name}"
            )


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return compiled(pattern)
    except PatternError as error:
        raise PrincipalError(f"Invalid rule: the pattern `{pattern}`: {error}") from None
