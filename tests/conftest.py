"""Settings of all tests: one thread each, no window, sixty digits for oracles, the same random examples every time."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import mpmath
from hypothesis import HealthCheck, settings

mpmath.mp.dps = 60

settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")
