"""Staging for tests, demo and bench: throwaway clusters and the host's huge pages, always given back.

Works without pytest: put `tests/` on sys.path and `from harness.stage import Stage`.
Whatever changes the host (pools, cgroups, transparent huge pages) is a context manager that holds the host lock.
"""

import os

# The server's user, and others, read what is made here, whatever the umask of whoever runs it.
os.umask(0o022)
