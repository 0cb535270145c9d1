"""One thread for each worker: the tests are many and small, and pytest-xdist runs several at once."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
