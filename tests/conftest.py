"""Settings and fixtures that all tests share."""

import os

os.environ.setdefault("MPLBACKEND", "agg")
