"""The tests of the bench import its modules by name, as bench/run.py does."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
