"""Every text of a properties file means what it means to Java."""

import json
import random
import subprocess
from pathlib import Path

import pytest

from quorate.formats.properties import PropertiesError, load_properties

pytestmark = pytest.mark.interop

PIECES = (
    *("a", "node.id", "=", ":", " ", "\t", "\f", "\n", "\r", "\r\n", "\\", "\\\n", "\\\r\n", "#"),
    *("!", "\\u0041", "\\u00e9", "\\uD83D\\uDE00", "\\u12", "\\n", "\\t", "\\f", "\\:", "\\ "),
    *("\\q", "\\\\", "\x00", "\x0b", "\xa0", "\x85", "\x1c", "\xe9", "//"),
)


def drawn(count: int) -> list[bytes]:
    """Random texts; none ends in a backslash, of which alone Java makes an empty key."""
    draw = random.Random(29)
    texts: list[bytes] = []
    while len(texts) < count:
        text = "".join(draw.choices(PIECES, k=draw.randint(1, 12)))
        if not text.rstrip("\r\n").endswith("\\"):
            texts.append(text.encode("latin-1"))
    return texts


def whole(texts: dict[str, str]) -> dict[str, str]:
    """A half of a surrogate pair is no character outside Java."""
    units = json.dumps(texts, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(units.decode("utf-16", "replace"))


def test_random_properties_mean_what_they_mean_to_java():
    texts = drawn(20_000)
    source = Path(__file__).with_name("LoadProperties.java")
    frames = [len(text).to_bytes(4) + text for text in texts]
    lines = subprocess.run(
        ["java", str(source)],
        input=len(texts).to_bytes(4) + b"".join(frames),
        capture_output=True,
        check=True,
    ).stdout.splitlines()
    for text, line in zip(texts, lines, strict=True):
        try:
            ours = {key: found.value for key, found in load_properties(text).items()}
        except PropertiesError:
            ours = None
        theirs = json.loads(line, object_hook=whole)
        assert ours == theirs, text
