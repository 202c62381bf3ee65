"""Random texts of sasl.jaas.config: what Kafka reads of them, and what this side does."""

import random
import subprocess
from pathlib import Path

import pytest

from interop.kafka import java_command
from quorate.security.jaas import MODULES, JaasError, JaasText, parse_jaas

pytestmark = pytest.mark.interop

PIECES = (
    *(
        "a",
        "username",
        "password",
        "x.y",
        "a-b",
        "_z",
        "$",
        "ü",
        "\u20ac",
        "\U0001f511",
        "7",
        "-3",
        ".5",
    ),
    *(
        '"',
        "'",
        "=",
        "=",
        "=",
        ";",
        " ",
        " ",
        " ",
        "\t",
        "\n",
        "\r",
        "\x1c",
        "\x7f",
        "\x85",
        "\xa0",
    ),
    *('"b c"', "'d\\'e'", '"\\u00fc\\101\\8"', "/* c */", "// c\n", "/", ",", "@", "#", "\\", "!"),
    *("user=b", ' p="q"', " r = 's' "),
)
STARTS = (f"{MODULES[0]} required ", f'"{MODULES[0]}" Required ', f"{MODULES[0]}\noptional ", "")


def drawn(draw):
    pieces = "".join(draw.choices(PIECES, k=draw.randint(0, 7)))
    return draw.choice(STARTS) + pieces + draw.choice((";", " ;", "; // end", "", "; x"))


def java_readings(texts):
    frames = [len(data := text.encode()).to_bytes(4) + data for text in texts]
    run = subprocess.run(
        java_command(str(Path(__file__).with_name("JaasTexts.java"))),
        input=len(texts).to_bytes(4) + b"".join(frames),
        capture_output=True,
        check=True,
    )
    for line in run.stdout.decode().splitlines():
        yield [bytes.fromhex(word[1:]).decode("utf-16-be", "surrogatepass") for word in line.split()
               if word != "-"]  # fmt: skip


def reading(text):
    try:
        module = parse_jaas(JaasText("sasl.jaas.config", text, "test"))
    except JaasError as refusal:
        return str(refusal)
    options = sorted(module.options.items(), key=lambda one: one[0].encode("utf-16-be"))
    return [
        module.name,
        f"LoginModuleControlFlag: {module.flag}",
        *(word for option in options for word in option),
    ]


STRICTER = (
    "does not end with",  # Kafka ends a text in quotes with its line
    "a text with / must be in quotes",  # the rest of the line is a comment in Java
)
"""What this side refuses though Kafka may take it: each time Kafka reads something else than was written."""


def test_random_texts_are_read_as_kafka_reads_them():
    draw = random.Random(26)
    texts = [drawn(draw) for _ in range(20_000)]
    different, taken = [], 0
    for text, theirs in zip(texts, java_readings(texts), strict=True):
        found = reading(text)
        taken += isinstance(found, list)
        is_same = (
            found == theirs
            if isinstance(found, list)
            else not theirs or any(why in found for why in STRICTER)
        )
        if not is_same:
            different.append((text, found, theirs))
    assert taken > len(texts) // 20
    assert different == [], f"{len(different)} of {len(texts)}: {different[:5]}"
