"""What holds for every test: how long an example takes says how busy the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("heald", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("heald")
