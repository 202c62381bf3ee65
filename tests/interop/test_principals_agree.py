"""Every subject of a certificate, and every mapping rule, gives the principal that it gives in Java."""

import random
import subprocess
from pathlib import Path

import pytest

from interop.java import java_command
from quorate.base.errors import QuorateError
from quorate.security.principal import SslPrincipalMapper
from quorate.security.tls.names import subject_of

pytestmark = pytest.mark.interop

OIDS = (
    *("2.5.4.3", "2.5.4.6", "2.5.4.7", "2.5.4.8", "2.5.4.9", "2.5.4.10", "2.5.4.11"),
    *("0.9.2342.19200300.100.1.25", "0.9.2342.19200300.100.1.1"),
    # Java knows these, but RFC 2253 has no keyword of them.
    *("1.2.840.113549.1.9.1", "2.5.4.5", "2.5.4.12", "2.5.4.4", "2.5.4.42", "2.5.4.46", "2.5.4.44"),
    *("1.3.6.1.4.1.99999.1.2.3", "2.999.4294967296", "2.5.4.17", "0.0", "2.47.1"),
)
UTF8, PRINTABLE, T61, IA5, GENERAL, BMP = 0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E
TAGS = (UTF8,) * 6 + (PRINTABLE,) * 4 + (T61, IA5, GENERAL, BMP, 0x1C, 0x12, 0x04, 0x02, 0x1A)
PIECES = (
    *(
        "a",
        "B",
        "7",
        " ",
        "  ",
        ",",
        "=",
        "+",
        "<",
        ">",
        "#",
        ";",
        '"',
        "\\",
        "\0",
        "\r",
        "\n",
        "\t",
    ),
    *(
        "é",
        "ß",
        "中",
        "\U0001f511",
        "e\u0301",
        "\u202e",
        "'",
        "(",
        ")",
        "-",
        ".",
        "/",
        ":",
        "?",
        "*",
    ),
    *("CN=x", "kafka", "host.example.org", "$1", "İ", "ſ", "ﬁ", "\x7f", "\x85", "\xa0"),
)
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
    "RULE:^CN=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT",
    "RULE:^(.*)$/$1/U",
    "RULE:^(.*)$/$1/L",
    "RULE:^CN=(.*?),(OU|O)=(.*?)$/$1@$3-$2/U,RULE:.*O=(\\\\w+).*/$1/L,DEFAULT",
    "RULE:(\\\\w+=)(.*)/$2$12$3/,DEFAULT",
    "RULE:CN=(?<who>[^,]*).*/${who}/",
    "RULE:^.*CN=(\\S+?).*$/\\$1_$1/",
    " RULE:^[A-Z]+=\\s*(.*)$/$1/ , DEFAULT ",
    "RULE:[^x]*/x/,RULE:.*/$0/",
    "RULE:.+?(?i:kafka).*/k/U,DEFAULT",
    "RULE:(?s)^.*$/all/U,DEFAULT",
    "RULE:^[A-Z0-9.]+=([.a-z]*)\\.?.*$/$1/,DEFAULT",
)


def der(tag, content):
    size = len(content)
    if size < 128:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 128 + len(length))) + length + content


def oid(dotted):
    first, second, *rest = map(int, dotted.split("."))
    out = bytearray()
    for number in (40 * first + second, *rest):
        groups = [number & 127]
        while number := number >> 7:
            groups.insert(0, number & 127 | 128)
        out += bytes(groups)
    return der(6, bytes(out))


def drawn_subject(draw):
    """A name: up to four relative names, each a set of up to three pairs, in any order."""
    relatives = []
    for _ in range(draw.randint(0, 4)):
        pairs = []
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            tag = draw.choice(TAGS)
            text = "".join(draw.choices(PIECES, k=draw.randint(0, 6)))
            encoding = {BMP: "utf-16-be", 0x1C: "utf-32-be", T61: "latin-1", PRINTABLE: "ascii"}
            if draw.random() < 0.05:
                content = draw.randbytes(draw.randint(1, 9))
            else:
                content = text.encode(encoding.get(tag, "utf-8"), "ignore")
            pairs.append(der(0x30, oid(draw.choice(OIDS)) + der(tag, content)))
        relatives.append(der(0x31, b"".join(pairs)))
    return der(0x30, b"".join(relatives))


def certificate_of(subject):
    """As much of a certificate as a subject needs around it."""
    empty = der(0x30, b"")
    version, serial = der(0xA0, der(2, b"\2")), der(2, b"\1")
    return der(
        0x30, der(0x30, version + serial + empty * 3 + subject + empty) + empty + der(3, b"\0")
    )


def java_names(cases):
    source = Path(__file__).with_name("PrincipalNames.java")
    frames = [
        len(part).to_bytes(4) + part
        for subject, rules in cases
        for part in (subject, rules.encode())
    ]
    run = subprocess.run(
        java_command(str(source)),
        input=len(cases).to_bytes(4) + b"".join(frames),
        capture_output=True,
        check=True,
    )
    for line in run.stdout.decode().splitlines():
        yield [None if h == "-" else bytes.fromhex(h[1:]).decode("utf-16-be", "surrogatepass")
               for h in line.split(" ")]  # fmt: skip


def ours(subject, rules):
    try:
        name = subject_of(certificate_of(subject))
    except QuorateError:
        return [None, None]
    try:
        return [name, SslPrincipalMapper(rules).name_of(name)]
    except QuorateError:
        return [name, None]


def test_random_subjects_and_rules_give_the_principals_of_java():
    draw = random.Random(26)
    cases = [(drawn_subject(draw), draw.choice(RULES)) for _ in range(20_000)]
    different = []
    refused = 0
    for (subject, rules), theirs in zip(cases, java_names(cases), strict=True):
        if theirs[0] is None:
            refused += 1  # Java refuses the whole certificate: nobody depends on its name
        elif ours(subject, rules) != theirs:
            different.append((subject.hex(), rules, ours(subject, rules), theirs))
    assert refused < len(cases) // 5
    assert different == [], f"{len(different)} of {len(cases)}"
