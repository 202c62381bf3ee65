"""The measures of what a node does inside: the codec, a step and the image."""

from __future__ import annotations

from bench import codec, image, steps
from bench.report import Goal, Report

IMAGE_MB, LOAD_SECONDS, SHELL_SECONDS = 400, 8, 5


def codec_rates(quick: bool) -> Report:
    """Messages per second of processor time, beside kafka-clients."""
    report = Report()
    seconds = 0.3 if quick else 1.0
    ours, theirs = codec.in_c(seconds), codec.in_java(seconds)
    for name in ours:
        report.add(name, "quorate", ours[name], "1/s")
        report.add(name, "kafka", theirs[name], "1/s")
        report.hold_ratio(f"{name}, over Java's", name, "kafka", 1.0, at_most=False)
    return report


def step_costs(quick: bool) -> Report:
    """Processor time of a commit on all three nodes, without sockets and disks."""
    report = Report()
    trio = steps.Trio()
    for count in (1, 16, 128):
        cost = steps.cost_us(trio, count, 0.5 if quick else 2.0)
        report.add(f"steps of a commit, {count} at once, three nodes", "quorate", cost, "us")
    return report


def image_sizes(quick: bool) -> Report:
    """Load, memory, the cost of one change and metadata-shell by the number of partitions."""
    report = Report()
    sizes = (1_000, 100_000) if quick else image.SIZES
    found = image.run(sizes)
    for row in found:
        about = f"{row['partitions']:,.0f} partitions"
        report.add(f"load, {about}", "quorate", row["load_s"], "s")
        report.add(f"image, {about}", "quorate", row["memory_mb"], "MB")
        report.add(f"one change, {about}", "quorate", row["change_us"], "us")
        report.add(f"metadata-shell, {about}", "quorate", row["shell_s"], "s")
    largest = found[-1]
    report.goals.append(Goal("image of the largest size, MB", largest["memory_mb"], IMAGE_MB))
    report.goals.append(Goal("load of the largest size, s", largest["load_s"], LOAD_SECONDS))
    report.goals.append(
        Goal("metadata-shell of the largest size, s", largest["shell_s"], SHELL_SECONDS)
    )
    return report
