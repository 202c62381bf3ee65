"""The verdicts on Kafka's own tests."""

from kafka_suite.manifest import Manifest, load
from kafka_suite.suite import Invocation, best


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


def test_what_differs_by_design_is_no_defect():
    manifest = Manifest()
    manifest.record("quorate", result("failed", "expected 31"))
    manifest.record("java", result("passed"))
    row = manifest.rows["a.SomeTest"]["testPath()"]
    assert manifest.verdict(row) == "fails here"
    row.update(why="a later level", by_design=True)
    assert manifest.verdict(row) == "differs by design"
    manifest.record("quorate", result("passed"))
    assert manifest.verdict(row) == "passes" and "by_design" not in row


def test_of_several_runs_the_best_counts():
    failed, passed = result("failed", "timed out"), result("passed")
    for runs in ((failed, passed), (passed, failed)):
        found: dict[str, Invocation] = {}
        for run in runs:
            found = best(found, run)
        assert list(found.values()) == passed


def test_every_failure_has_a_verdict():
    """Neither a defect of ours nor a failure whose outcome on Java controllers is not recorded is left."""
    manifest = load()
    left = [
        f"{name}.{invocation}"
        for name, rows in manifest.rows.items()
        for invocation, row in rows.items()
        if manifest.verdict(row) in ("fails here", "unknown")
    ]
    assert left == []
