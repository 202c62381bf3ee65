"""The comparison of versions: speed, failing seeds, changed traces and coverage."""

from __future__ import annotations

import json

import pytest

from quorate.campaign.compare import compare_versions
from quorate.campaign.page import page
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS
from quorate.sim.run.campaign import CampaignError, Code
from spark.campaign.results import CODE, pretend

NEXT = Code("1.1<b>", "bbbb", 2)
MISSED_BEFORE, MISSED_NOW = "fault: kill", "everything healed"


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """Of the next version's seeds 90 are common; 2 of them newly fail, 1 no longer does."""
    home = tmp_path_factory.mktemp("versions")
    old = pretend(home / "old", range(100), failing=(20, 21), missed=(MISSED_BEFORE,), earlier=True)
    new = pretend(home / "new", range(10, 40), NEXT, failing=(20, 30, 31), missed=(MISSED_NOW,))
    pretend(new, range(40, 110), NEXT, missed=(MISSED_NOW,), trace="cd")
    return str(old), str(new)


@pytest.mark.slow
def test_all_versions_are_compared_with_the_first(spark, versions):
    old, new = compare_versions(spark, versions)
    assert old.change is None and not old.is_worse
    totals = old.totals
    assert (totals.code, totals.seeds, totals.events, totals.failed) == (CODE, 100, 10_000, 2)
    assert (totals.events_per_cpu_s, totals.cpu_us_per_event) == (200.0, 5000.0)
    assert totals.recovery_ms == (49.5, 89.1, 98.0, 99.0)
    assert totals.checks == {"liveness": 2} and totals.not_reached == [MISSED_BEFORE]
    assert totals.coverage[MISSED_NOW].seeds == 100 and totals.coverage[MISSED_NOW].times == 200
    change = new.change
    assert change is not None and new.is_worse
    assert (change.common, change.traces) == (90, 60)
    assert (change.broken, change.broken_seeds, change.fixed) == (2, [30, 31], 1)
    assert (change.gained, change.lost) == ([MISSED_BEFORE], [MISSED_NOW])


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_a_page(pipeline, versions, tmp_path):
    html = tmp_path / "versions.html"
    code, out, _ = pipeline("campaign-report", *versions, "--html", html)
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith("results ") and lines[2].startswith(versions[0])
    assert "60 of 90 common seeds have another trace" in out
    assert "2 seeds fail that did not: 30, 31" in out and "1 seeds no longer fail" in out
    assert f"NO LONGER covered: {MISSED_NOW}" in out
    text = html.read_text()
    assert "1.1&lt;b&gt;" in text and "<b>" not in text, "text from results is escaped"
    assert all(mark in text for mark in ("2 seeds fail that did not", "fault: pause", "<svg"))
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")

    code, out, _ = pipeline("campaign-report", *reversed(versions), "--json")
    back = json.loads(out)
    assert code == 1 and back[0]["change"] is None
    assert back[1]["change"]["fixed"] == 2 and back[1]["recovery_ms"]["p50"] == 49.5


@pytest.mark.slow
def test_one_version_gives_its_summary(pipeline, versions, tmp_path):
    code, out, _ = pipeline("campaign-report", versions[0])
    assert code == 0
    assert (
        f"{len(ALL_COVERAGE_POINTS) - 1} of {len(ALL_COVERAGE_POINTS)}" in out
        and f"not reached: {MISSED_BEFORE}" in out
    )
    code, _, err = pipeline("campaign-report", versions[0], "--html", tmp_path / "no" / "x.html")
    assert code == 2 and "cannot be written" in err


@pytest.mark.slow
def test_results_that_cannot_be_compared(pipeline, spark, versions, tmp_path):
    code, _, err = pipeline("campaign-report", tmp_path)
    assert code == 2 and "there are no results of a campaign here" in err
    pretend(tmp_path, range(2))
    pretend(tmp_path, range(2, 4), NEXT)
    with pytest.raises(CampaignError, match="a part of it was made by version"):
        compare_versions(spark, [str(tmp_path)])


@pytest.mark.slow
def test_other_plan_formats_and_seeds_are_reported(spark, versions, tmp_path):
    other = pretend(tmp_path, range(500, 510), Code("2.0", "cccc", 3))
    versions_ = compare_versions(spark, [versions[0], str(other)])
    text = page(versions_)
    assert "its plans are of format 3, not 2" in text and "no seed was run by both" in text
