"""A plugin of pytest in a guest: a line of JSON for each scenario that has ended, for tests/lab/run.py to read."""

import json
from typing import Any

import pytest

MARK = "lab-scenario "


def pytest_configure(config: pytest.Config) -> None:
    """The terminal is the way to the host."""
    config.pluginmanager.register(Reporter(config))


class Reporter:
    """Writes a line when a test has run, was skipped, or could not be prepared or tidied up."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A passed setup or teardown says nothing by itself."""
        if report.when != "call" and report.passed:
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else _message(report)
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        terminal.ensure_newline()
        terminal.write_line(MARK + json.dumps({"node": report.nodeid.partition("[")[0], "outcome": report.outcome,
                                               "reason": reason, "seconds": round(report.duration, 1)}))


def _message(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message).splitlines()[0] if crash else ""
