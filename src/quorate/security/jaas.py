"""Parse the JAAS text of `sasl.jaas.config`: `MODULE FLAG KEY="VALUE" ... ;`.

Syntax: `JaasConfig` of Kafka, which has one login module per text. Of an option that is given twice the
last value counts. No message has the value of an option.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn

from quorate.base.errors import QuorateError

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_PUNCTUATION: Final = "=;"
_QUOTES: Final = "\"'"
_ESCAPES: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_SLASH: Final = "/"
_COMMENT_ENDS: Final[Mapping[str, str]] = {"//": "\n", "/*": "*/"}
_NAMES: Final = ("username", "password", "tokenauth")
_OCTAL: Final = re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?")
_WORD: Final = re.compile(r"[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9._$\xa0-\U0010ffff-]*")
"""What `StreamTokenizer` reads as a word: it takes digits and a dot at the start for a number."""
_LAST_BLANK: Final = " "
"""Java's blanks are this character and all before it."""
_NO_WORD: Final = (
    "a text must be in quotes unless it begins with a letter, _ or $ and holds only letters, digits "
    "and . - _ $"
)
_PACKAGE: Final = "org.apache.kafka.common.security."
PLAIN_MODULE: Final = f"{_PACKAGE}plain.PlainLoginModule"
SCRAM_MODULE: Final = f"{_PACKAGE}scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule"
MODULES: Final = (PLAIN_MODULE, SCRAM_MODULE, OAUTHBEARER_MODULE)
MODULE_OF: Final[Mapping[str, str]] = {
    "PLAIN": PLAIN_MODULE,
    "SCRAM-SHA-256": SCRAM_MODULE,
    "SCRAM-SHA-512": SCRAM_MODULE,
    "OAUTHBEARER": OAUTHBEARER_MODULE,
}
"""Mechanism -> its login module."""


class JaasError(QuorateError):
    """A JAAS text that cannot be used; the message names its place and never a secret."""


class JaasText(NamedTuple):
    """The text of one key, and where it stands."""

    key: str
    text: str
    where: str
    """File and line of the key."""

    def __repr__(self) -> str:
        return f"JaasText({self.key}, {self.where})"


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module with its options. Its `repr` has no option's value."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


class _Token(NamedTuple):
    text: str
    is_quoted: bool
    at: int


def parse_jaas(jaas: JaasText, mechanism: str | None = None) -> LoginModule:
    """Parse the text of one login module. Raises JaasError.

    `mechanism`: the module must be the one of this SASL mechanism.
    """
    parser = _JaasParser(jaas)
    module = parser.module()
    if module.name not in MODULES:
        parser.refuse(
            0, f"the login module {module.name} is not supported; use one of {', '.join(MODULES)}"
        )
    if mechanism is not None and module.name != MODULE_OF[mechanism]:
        parser.refuse(
            0, f"{mechanism} needs the login module {MODULE_OF[mechanism]}, not {module.name}"
        )
    return module


class _JaasParser:
    def __init__(self, jaas: JaasText) -> None:
        self._jaas = jaas
        self._text = jaas.text
        self._pos = 0

    def refuse(self, at: int, why: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        jaas = self._jaas
        raise JaasError(
            f"Invalid value for configuration {jaas.key}: {why} "
            f"({jaas.where}; line {line}, column {column} of the value)"
        )

    def module(self) -> LoginModule:
        name = self._word("the class of a login module")
        flag = self._word(f"a control flag, one of {', '.join(_FLAGS)}")
        if flag.text.lower() not in _FLAGS:
            self.refuse(flag.at, f"the control flag must be one of {', '.join(_FLAGS)}")
        options: dict[str, str] = {}
        while True:
            token = self._next()
            if token is None:
                self.refuse(len(self._text), "the login module must end with ;")
            if token.text == ";" and not token.is_quoted:
                break
            if token.text == "=" and not token.is_quoted:
                self.refuse(token.at, "an option needs a name before =")
            equals = self._next()
            if equals is None or equals.is_quoted or equals.text != "=":
                at = len(self._text) if equals is None else equals.at
                self.refuse(at, "an option must have the form name=value: = is missing")
            value = self._next()
            if value is None or (not value.is_quoted and value.text in _PUNCTUATION):
                at = len(self._text) if value is None else value.at
                self.refuse(at, f"{_shown(token)} has no value")
            options[token.text] = value.text
        more = self._next()
        if more is not None:
            self.refuse(more.at, "one login module is allowed, and something follows its ;")
        return LoginModule(name.text, flag.text.lower(), options)

    def _word(self, what: str) -> _Token:
        token = self._next()
        if token is None:
            self.refuse(len(self._text), f"{what} is missing")
        if not token.is_quoted and token.text in _PUNCTUATION:
            self.refuse(token.at, f"expected {what}")
        return token

    def _next(self) -> _Token | None:
        text = self._text
        start = self._skip()
        if start >= len(text):
            return None
        if text[start] in _PUNCTUATION:
            self._pos += 1
            return _Token(text[start], False, start)
        if text[start] in _QUOTES:
            return self._quoted(start)
        word = _WORD.match(text, start)
        if word is None:
            self.refuse(start, _NO_WORD)
        self._pos = word.end()
        return _Token(word[0], False, start)

    def _skip(self) -> int:
        """Go past blanks and comments (`StreamTokenizer`); the position of what follows.

        A single slash outside of quotes begins a comment in Java, which would cut a value off: it is refused.
        """
        text = self._text
        while self._pos < len(text):
            two = text[self._pos : self._pos + 2]
            if two[0] <= _LAST_BLANK:
                self._pos += 1
            elif two in _COMMENT_ENDS:
                end = text.find(_COMMENT_ENDS[two], self._pos + 2)
                self._pos = len(text) if end < 0 else end + len(_COMMENT_ENDS[two])
            elif two[0] == _SLASH:
                self.refuse(self._pos, "a text with / must be in quotes")
            else:
                break
        return self._pos

    def _quoted(self, start: int) -> _Token:
        text, quote = self._text, self._text[start]
        parts: list[str] = []
        pos = start + 1
        while pos < len(text) and text[pos] != quote:
            char = text[pos]
            if char in "\r\n":
                break
            if char == "\\" and pos + 1 < len(text):
                pos += 1
                octal = _OCTAL.match(text, pos)
                if octal is not None:
                    parts.append(chr(int(octal[0], 8)))
                    pos = octal.end()
                    continue
                char = _ESCAPES.get(text[pos], text[pos])
            parts.append(char)
            pos += 1
        if pos >= len(text) or text[pos] != quote:
            self.refuse(start, f"the value that begins with {quote} does not end with {quote}")
        self._pos = pos + 1
        return _Token("".join(parts), True, start)


def _shown(token: _Token) -> str:
    """The option; an unknown name may be a part of a password without quotes."""
    is_known = token.text in _NAMES and not token.is_quoted
    return f"the option {token.text}" if is_known else "an option"
