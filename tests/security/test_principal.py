"""Principals, and the rules that map the name of a certificate to one."""

import pytest

from quorate.security.principal import (
    ANONYMOUS,
    KafkaPrincipal,
    PrincipalError,
    SslPrincipalMapper,
)

DN = "CN=Alice,OU=Ops,O=Example,C=DE"


def test_a_principal_is_written_as_type_and_name():
    assert str(KafkaPrincipal("User", "CN=a,OU=b")) == "User:CN=a,OU=b"
    assert str(ANONYMOUS) == "User:ANONYMOUS"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        (None, DN),
        ("DEFAULT", DN),
        ("RULE:^CN=(.*?),OU=.*$/$1/", "Alice"),
        ("RULE:^CN=(.*?),OU=.*$/$1/L", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),O=.*$/$1@$2/U", "ALICE@OPS"),
        ("RULE:^CN=x$/x/, RULE:^CN=(.*?),.*$/$1/L, DEFAULT", "alice"),
        ("RULE:^CN=x$/x/,DEFAULT", DN),
        (r"RULE:^CN=(.*?),.*$/$1@$4/", "Alice@$4"),
        (r"RULE:^CN=(.*?),.*$/$12/", "Alice2"),
        (r"RULE:^CN=(?<who>.*?),.*$/${who}\/x/", "Alice/x"),
        (r"RULE:^CN=([A-Z\[\&&]\w+),.*$/$1/", "Alice"),
        (r"RULE:^CN=(\p{Alnum}+),.*\z/$1/", "Alice"),
        (r"RULE:^CN=([\p{Upper}\p{Ll}]+),\P{Digit}*$/$1/", "Alice"),
        (r"RULE:^CN=(\pL+),\H*$/$1/", "Alice"),
        (r"RULE:^\QCN=\E(\x{41}.*?),.*$/$1/", "Alice"),
    ],
)
def test_the_first_rule_that_matches_decides(rules, name):
    assert SslPrincipalMapper(rules).name_of(DN) == name


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("default", "Invalid rule"),
        (r"RULE:^CN=(\p{IsLatin}+)$/$1/", r"the class .p.IsLatin. is not supported"),
        (r"RULE:^CN=(\X+)$/$1/", r"X is not supported"),
        (r"RULE:^CN=([\P{L}]+)$/$1/", r"inside of a class is not supported"),
        (r"RULE:^CN=(?i)(a)$/$1/", r"flags such as \(\?i\) are supported at its beginning only"),
        ("RULE:^CN=(.*?),OU=.*$/$1", "Invalid rule"),
        ("RULE:^CN=((/$1/", "the pattern"),
        ("RULE:^CN=(?<who>.*?),.*$/${whom}/", "has no group whom"),
        ("DEFAULT,RULE:^CN=(.*?),.*$/${x1}/L", "has no group x1"),
        ("RULE:^CN=([a-z&&[^x]]+),.*$/$1/", r"the class \[a-z&&\[\^x\] has another inside"),
        ("RULE:^CN=([a[bc]]+),.*$/$1/", r"the class \[a\[bc\] has another inside"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(rules, message):
    with pytest.raises(PrincipalError, match=message):
        SslPrincipalMapper(rules)


def test_a_name_without_a_rule_is_refused():
    with pytest.raises(PrincipalError, match="No rules apply to CN=Bob"):
        SslPrincipalMapper("RULE:^CN=Alice$/x/").name_of("CN=Bob")


@pytest.mark.parametrize("end", ["\r", "\n", "\x85", "\u2028"])
def test_a_dot_is_no_line_terminator_of_java(end):
    name = f"CN=admin,O=x{end}y"
    assert SslPrincipalMapper("RULE:^CN=(.*?),.*$/$1/,DEFAULT").name_of(name) == name
    assert SslPrincipalMapper("RULE:(?s)^CN=(.*?),.*$/$1/").name_of(name) == "admin"
    assert SslPrincipalMapper(r"RULE:^CN=([.a-z]+),O=[^.]*$/$1/").name_of(name) == "admin"


def test_classes_are_ascii_as_in_java():
    assert SslPrincipalMapper(r"RULE:^CN=(\w+)$/$1/,DEFAULT").name_of("CN=é") == "CN=é"
