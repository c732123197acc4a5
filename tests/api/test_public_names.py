from __future__ import annotations

import subprocess
import sys

import pytest

import holdfast

NAMES = [
    "ContextUsageTracker",
    "Decision",
    "DecisionExtractor",
    "ErrorRecord",
    "FileTracker",
    "Flow",
    "GitState",
    "HoldfastError",
    "Hub",
    "IncrementalPauseManager",
    "OrchestratorService",
    "PauseAction",
    "ResumeContextCompiler",
    "ReviewerFeedback",
    "SessionAlreadyRunningError",
    "SessionContext",
    "SessionNotFoundError",
    "SessionPauseManager",
    "SessionSnapshot",
    "SessionState",
    "SessionStateManager",
    "Step",
    "Task",
    "TaskDAG",
    "TestState",
    "UsageMetadata",
    "UsageMetrics",
    "Workflow",
    "__version__",
]


def test_the_public_names_are_these_in_order() -> None:
    assert holdfast.__all__ == NAMES
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(holdfast, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        _ = holdfast.Nonsense  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]


def test_importing_holdfast_loads_nothing_heavy() -> None:
    program = (
        "import sys; before = set(sys.modules); import holdfast; print(sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert loaded.strip() == "['holdfast']"
