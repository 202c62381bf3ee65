"""For all tests: examples of property tests may take what a loaded machine makes them take."""

from hypothesis import HealthCheck, settings

from effort import examples

settings.register_profile(
    "quorate",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("quorate")
