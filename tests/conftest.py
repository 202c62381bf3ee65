"""For all tests: values are really frozen, and property tests take what a loaded machine takes."""

from quorate.base import frozen

frozen.held_at_run_time = True  # before any module that has such values is imported

from hypothesis import HealthCheck, settings  # noqa: E402

from effort import examples  # noqa: E402

settings.register_profile(
    "quorate",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("quorate")
