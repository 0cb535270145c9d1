"""One thread for each worker: the tests are many and small, and pytest-xdist runs several at once."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")

# What CI says of a commit must not change from run to run; at a desk, every run looks at new examples.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
