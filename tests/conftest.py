"""For all tests: examples of property tests may take what a loaded machine makes them take."""

from hypothesis import HealthCheck, settings

settings.register_profile("quorate", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quorate")
