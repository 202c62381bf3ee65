"""The JAAS text: what is accepted, and where a mistake stands."""

import pytest

from quorate.security.jaas import MODULES, JaasError, JaasText, parse_jaas

PLAIN, SCRAM, _ = MODULES


def parsed(text, mechanism=None):
    return parse_jaas(JaasText("sasl.jaas.config", text, "a.properties, line 3"), mechanism)


def test_a_module_with_its_options():
    module = parsed(f'{PLAIN} required username="a b" password=\'c;"=\' user_x=y;', "PLAIN")
    assert module.name == PLAIN
    assert module.flag == "required"
    assert module.options == {"username": "a b", "password": 'c;"=', "user_x": "y"}


def test_escapes_and_several_lines():
    assert parsed(f'{SCRAM} OPTIONAL\n  password="a\\"b\\\\" ;\n').options == {"password": 'a"b\\'}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"\a\b\f\n\r\t\v", "\a\b\f\n\r\t\v"),
        (r"\7-\70-\070-\377", "\7-8-8-\xff"),
        (r"\400-\78-\8-\0719", " 0-\x078-8-99"),
        (r"\q\\\"", 'q\\"'),
    ],
)
def test_escapes_are_those_of_javas_tokenizer(written, value):
    """`StreamTokenizer`: a password with a backslash is the same here as in Java."""
    assert parsed(f'{PLAIN} required password="{written}";').options == {"password": value}


@pytest.mark.parametrize(
    "text",
    [
        f'/* a; */{PLAIN} /* b */ required // c = "\n  a="/*d*/";',
        f'// a\n{PLAIN}/**/required a/* = */="/*d*/"/* \n */;// end',
        f'{PLAIN} required a="/*d*/"; /* does not end ;',
    ],
)
def test_comments_are_those_of_kafkas_parser(text):
    """`JaasConfig` sets `slashSlashComments` and `slashStarComments`; a quoted text has no comment."""
    assert parsed(text).options == {"a": "/*d*/"}


def test_the_last_of_an_option_counts():
    assert parsed(f"{PLAIN} required a=b c=d a=e;").options == {"a": "e", "c": "d"}


def test_what_needs_no_quotes_and_what_may_have_them():
    text = f'"{PLAIN}" \'required\' a=b-1.c_$ "b c"=\xfcx\x1f;'
    module = parsed(text)
    assert (module.name, module.flag) == (PLAIN, "required")
    assert module.options == {"a": "b-1.c_$", "b c": "\xfcx"}


def test_options_are_not_in_the_representation():
    assert "topsecret" not in repr(parsed(f'{PLAIN} required password="topsecret";'))


@pytest.mark.parametrize(
    ("text", "why", "line", "column"),
    [
        ("", "the class of a login module is missing", 1, 1),
        (f"{PLAIN}", "a control flag", 1, len(PLAIN) + 1),
        (f"{PLAIN} often;", "the control flag must be one of", 1, len(PLAIN) + 2),
        (f"{PLAIN} required\n a=topsecret", "must end with ;", 2, 13),
        (f"{PLAIN} required\n a;", "= is missing", 2, 3),
        (f"{PLAIN} required\n a=;", "an option has no value", 2, 4),
        (f'{PLAIN} required\n a="topsecret;', "does not end with", 2, 4),
        (f"{PLAIN} required; {PLAIN} required;", "one login module is allowed", 1, len(PLAIN) + 12),
        ("com.sun.Krb5LoginModule required;", "com.sun.Krb5LoginModule is not supported", 1, 1),
        (f"{PLAIN} required\n password=;", "the option password has no value", 2, 11),
        (f"{PLAIN} required\n password=a topsecret=;", "an option has no value", 2, 23),
        (f"{PLAIN} required\n password=12topsecret;", "must be in quotes", 2, 11),
        (f"{PLAIN} required\n password=-topsecret;", "must be in quotes", 2, 11),
        (f"{PLAIN} required\n password=.topsecret;", "must be in quotes", 2, 11),
        (f"{PLAIN} required\n password=top@secret;", "must be in quotes", 2, 14),
        (f"{PLAIN} required\n password=top#secret;", "must be in quotes", 2, 14),
        (f"{PLAIN} required\n username=a, password=b;", "must be in quotes", 2, 12),
        (f"{PLAIN} required\n 1=topsecret;", "must be in quotes", 2, 2),
        (f"{PLAIN} required\n password=\x7ftopsecret;", "must be in quotes", 2, 11),
        (f"{PLAIN} required\n password=a topsecret;", "= is missing", 2, 22),
        (f"{PLAIN} required\n password=top/secret;", "must be in quotes", 2, 14),
        (f'{PLAIN} required = "topsecret";', "needs a name before =", 1, len(PLAIN) + 11),
    ],
)
def test_a_mistake_names_its_place_and_no_secret(text, why, line, column):
    with pytest.raises(JaasError) as error:
        parsed(text)
    assert why in str(error.value)
    place = f"(a.properties, line 3; line {line}, column {column} of the value)"
    assert str(error.value).endswith(place)
    assert "topsecret" not in str(error.value)


def test_the_module_must_be_that_of_the_mechanism():
    with pytest.raises(
        JaasError, match=r"SCRAM-SHA-256 needs the login module \S+ScramLoginModule"
    ):
        parsed(f"{PLAIN} required;", "SCRAM-SHA-256")
