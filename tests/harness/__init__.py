"""Throwaway clusters and settings of the host for tests, demo and bench. Every change is undone at the end.

Works without pytest: put `tests/` on sys.path and `from harness.reserved_host import ReservedHost`.
Each function that changes the host (pools, cgroups, transparent huge pages) is a context manager that holds the host lock.
"""

import os

# The server's user, and others, read what is made here, whatever the umask of whoever runs it.
os.umask(0o022)
