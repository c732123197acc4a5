"""Tells a failure when it happens, not only at the end: a run that will fail can be stopped early."""

from __future__ import annotations

import pytest


class EarlyFailures:
    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of a worker's test, too: its report comes to the process that started the workers."""
        if not report.failed:
            return
        self._terminal.ensure_newline()
        self._terminal.section(f"{report.when}: {report.nodeid}", sep="_", red=True, bold=True)
        self._terminal.line(report.longreprtext)
        self._terminal.section("the run goes on", sep="_")
        self._terminal.flush()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Workers have no terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(EarlyFailures(terminal), "early_failures_reporter")
