"""Directories in the layout of Kafka 4.4: either tool formats, either program leads first."""

import pytest

from interop.checks import dump
from interop.kafka import Quorum

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SCRAM = (
    'SCRAM-SHA-512=[name=bob,saltedpassword="mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=",'
    'salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=",iterations=8192]'
)
REQUESTS = {
    "4.4": ("-r", "4.4-IV1", "--feature", "group.version=0", "--add-scram", SCRAM),
    "old": ("-r", "4.1", "--feature", "group.version=0", "--add-scram", SCRAM),
}


def first_records(root, formatter, leader, static, words):
    """The data records at the begin of the log, until the bootstrap transaction ends."""
    with Quorum(root, {1: formatter}, static=static) as quorum:
        quorum.format(*words)
        quorum.swap(1, leader)
        quorum.start()
        quorum.leader()
        quorum.wait_until(lambda v: v.high_watermark > 9, "the bootstrap records")
        quorum.stop()
        texts = [text for _, text in dump(quorum.nodes[1]).log.values() if "payload: " in text]
    found = [text.partition("payload: ")[2] for text in texts]
    end = next(i for i, text in enumerate(found) if "END_TRANSACTION" in text)
    return found[: end + 1]


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("request_name", REQUESTS)
def test_what_the_format_asked_for_is_in_the_log_whichever_program_leads_first(
    tmp_path, static, request_name
):
    """Kafka 4.4's tool writes its layout for old levels too; ours writes that of the release."""
    words = REQUESTS[request_name]
    expected = first_records(tmp_path / "java", "java-4.4", "java-4.4", static, words)
    assert any("USER_SCRAM" in text for text in expected)
    for formatter, leader in (("java-4.4", "quorate"), ("quorate", "java-4.4")):
        found = first_records(tmp_path / formatter, formatter, leader, static, words)
        assert found == expected, (formatter, leader)
