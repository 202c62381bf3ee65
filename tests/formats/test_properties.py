"""Java's properties, case by case; what Java itself says: tests/interop/test_properties_agree.py"""

import pytest

from quorate.formats.properties import PropertiesError, Property, load_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("node.id=1\nlistener.names : A,B\nlog.dirs /d\n", ("1", "A,B", "/d")),
        ("a=1\ra=2\r\na=3", ("3",)),
        ("#:: Server Basics ::\n!: x\n  #: C:\\users\nnode.id=1", ("1",)),
        ("\\\n#x\nnode.id=1", ("1",)),
        ("a=1,\\\n  2,\\\n\t3\nb=4", ("1,2,3", "4")),
        ("a=1\\\n\nb=2", ("1", "2")),
        ("a=1\\\\\nb=2", ("1\\", "2")),
        ("a=1\\", ("1",)),
        ("a\n\nb=\n", ("", "")),
        (r"a\ b\=c\:=\ d\u00e9\t\q", (" dé\tq",)),
        (r"a=\uD83D\uDE00 \ud83d", ("😀 \ufffd",)),
        ("a = = b ", ("= b ",)),
        ("", ()),
    ],
)
def test_a_text_means_what_it_means_to_java(text, values):
    found = load_properties(text.encode("latin-1"))
    assert tuple(one.value for one in found.values()) == values


def test_every_property_knows_its_line():
    text = b"# x\r\n\r\na=1,\\\r\n  2\r\nb=3\na=4\n"
    assert load_properties(text) == {"a": Property("4", 6), "b": Property("3", 5)}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b"\\u00z=1\n", 1, 1),
        (b"a=1\n  b = c\\u12\n", 2, 8),
        (b"b=x\\\n \\u00z\n", 2, 2),
        (b"b=\\u0041x\\\r\n\\\r\n\t\ty\\u", 3, 4),
        (b"# \\u\n\nk\\ \\u:v\n", 3, 4),
    ],
)
def test_an_escape_without_its_digits_is_refused_with_its_place(text, line, column):
    with pytest.raises(PropertiesError, match="Malformed") as refused:
        load_properties(text)
    assert (refused.value.line, refused.value.column) == (line, column)
