"""Pause, snapshot and resume for the work of AI agents.

Names load when they are first used: importing `holdfast` itself costs nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast._version import __version__ as __version__
    from holdfast.base.errors import HoldfastError as HoldfastError
    from holdfast.base.errors import SessionAlreadyRunningError as SessionAlreadyRunningError
    from holdfast.base.errors import SessionNotFoundError as SessionNotFoundError
    from holdfast.capture.files import FileTracker as FileTracker
    from holdfast.findings.by_model import DecisionExtractor as DecisionExtractor
    from holdfast.flow.graph import Flow as Flow
    from holdfast.flow.hub import Hub as Hub
    from holdfast.flow.hub import SessionContext as SessionContext
    from holdfast.flow.step import Step as Step
    from holdfast.journal.log import PauseAction as PauseAction
    from holdfast.journal.usage import ContextUsageTracker as ContextUsageTracker
    from holdfast.model.findings import Decision as Decision
    from holdfast.model.findings import ErrorRecord as ErrorRecord
    from holdfast.model.findings import ReviewerFeedback as ReviewerFeedback
    from holdfast.model.findings import TestState as TestState
    from holdfast.model.flow import SessionState as SessionState
    from holdfast.model.git import GitState as GitState
    from holdfast.model.snapshot import SessionSnapshot as SessionSnapshot
    from holdfast.model.task import Task as Task
    from holdfast.model.task import TaskDAG as TaskDAG
    from holdfast.model.usage import UsageMetadata as UsageMetadata
    from holdfast.model.usage import UsageMetrics as UsageMetrics
    from holdfast.model.workflow import Workflow as Workflow
    from holdfast.resume.snapshots import ResumeContextCompiler as ResumeContextCompiler
    from holdfast.sessions.pause import SessionPauseManager as SessionPauseManager
    from holdfast.sessions.winddown import IncrementalPauseManager as IncrementalPauseManager
    from holdfast.store.item_sessions import SessionStateManager as SessionStateManager
    from holdfast.workflows.service import OrchestratorService as OrchestratorService

_HOME = {
    "ContextUsageTracker": "holdfast.journal.usage",
    "Decision": "holdfast.model.findings",
    "DecisionExtractor": "holdfast.findings.by_model",
    "ErrorRecord": "holdfast.model.findings",
    "FileTracker": "holdfast.capture.files",
    "Flow": "holdfast.flow.graph",
    "GitState": "holdfast.model.git",
    "HoldfastError": "holdfast.base.errors",
    "Hub": "holdfast.flow.hub",
    "IncrementalPauseManager": "holdfast.sessions.winddown",
    "OrchestratorService": "holdfast.workflows.service",
    "PauseAction": "holdfast.journal.log",
    "ResumeContextCompiler": "holdfast.resume.snapshots",
    "ReviewerFeedback": "holdfast.model.findings",
    "SessionAlreadyRunningError": "holdfast.base.errors",
    "SessionContext": "holdfast.flow.hub",
    "SessionNotFoundError": "holdfast.base.errors",
    "SessionPauseManager": "holdfast.sessions.pause",
    "SessionSnapshot": "holdfast.model.snapshot",
    "SessionState": "holdfast.model.flow",
    "SessionStateManager": "holdfast.store.item_sessions",
    "Step": "holdfast.flow.step",
    "Task": "holdfast.model.task",
    "TaskDAG": "holdfast.model.task",
    "TestState": "holdfast.model.findings",
    "UsageMetadata": "holdfast.model.usage",
    "UsageMetrics": "holdfast.model.usage",
    "Workflow": "holdfast.model.workflow",
    "__version__": "holdfast._version",
}

__all__ = [*_HOME]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
