"""What all sessions run by one process share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from holdfast.base.clock import Clock, system_clock
from holdfast.model.entry import Entry
from holdfast.model.usage import UsageMetrics
from holdfast.orchestrator.drivers.protocol import Driver
from holdfast.orchestrator.watch import Watch
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core

Listener = Callable[[str, Entry | UsageMetrics | str], None]
"""Called with the workflow's id and what just happened: for whoever watches, after it is recorded."""


def _nobody(_workflow_id: str, _what: Entry | UsageMetrics | str) -> None:
    pass


@dataclass
class Surroundings:
    """What all sessions run by one process share."""

    core: Core
    settings: Settings
    drivers: Callable[[str], Driver]
    claim: Callable[[], str]
    takes_over: bool = False
    """Whether it goes on with sessions that others left behind."""
    listener: Listener = _nobody
    clock: Clock = system_clock
    watch: Watch = field(default_factory=Watch)
    quit: threading.Event = field(default_factory=threading.Event)
    """Set where the process itself must end: nothing is waited for any more."""
    leaving: threading.Event = field(default_factory=threading.Event)
    """Set where the process is to end at the next boundary and leave its sessions to others."""
    active: set[str] = field(default_factory=set[str])
    """Runs this process works on now."""
