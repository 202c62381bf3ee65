"""The verdicts on Kafka's own tests."""

from kafka_suite.manifest import Manifest, load
from kafka_suite.suite import Invocation


def result(outcome, reason=""):
    return [Invocation("a.SomeTest", "testPath()", outcome, 1.0, reason, "uid")]


def test_each_failure_has_a_cause():
    assert load().unexplained() == []


def test_a_failure_is_unexplained_until_its_cause_is_named():
    manifest = Manifest()
    manifest.record("quorate", result("failed", "expected 1"))
    assert manifest.unexplained() == ["a.SomeTest.testPath()"]
    manifest.rows["a.SomeTest"]["testPath()"]["why"] = "the metric is in another process"
    manifest.record("java", result("failed", "expected 1"))
    assert manifest.unexplained() == []


def test_a_pass_ends_the_cause():
    manifest = Manifest()
    manifest.record("quorate", result("failed", "expected 1"))
    row = manifest.rows["a.SomeTest"]["testPath()"]
    row["why"] = "a defect"
    manifest.record("quorate", result("passed"))
    assert "why" not in row and manifest.unexplained() == []
