"""What may not run, in all its disguises, and what must not be kept from running."""

from __future__ import annotations

import pytest

from holdfast.hooks.events import hook_command
from holdfast.hooks.guards import danger, unpinned
from holdfast.project.layout import ProjectLayout
from hooks.commands import DANGEROUS, HARMLESS
from hooks.harness import AgentSession, quick


def test_the_tables_are_long_enough() -> None:
    assert len(set(DANGEROUS)) >= 60
    assert len(set(HARMLESS)) >= 60


@pytest.mark.parametrize("command", DANGEROUS)
def test_dangerous(command: str) -> None:
    assert danger(command, "/home/dev/project")


@pytest.mark.parametrize("command", HARMLESS)
def test_harmless(command: str) -> None:
    assert danger(command, "/home/dev/project") is None


def test_no_dangerous_command_passes_the_shell_in_front(session: AgentSession) -> None:
    """One by one through the whole program: the shell may only let pass what Python would."""
    session.start()
    passed = [command for command in DANGEROUS if session.before_tool(command).code != 2]
    assert passed == []


def test_the_reason_is_for_the_agent_to_read(session: AgentSession) -> None:
    session.start()
    result = session.before_tool("sudo rm -rf /")
    assert result.code == 2
    assert result.out == ""
    assert "deletes /" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
def test_all_agents_are_guarded_quiet_or_not(session: AgentSession, agent: str) -> None:
    session.agent = agent
    ProjectLayout(session.project).ensure()
    (session.state / f"quiet-{session.session_id}").write_text("0")
    assert session.before_tool("rm -rf ~").code == 2
    assert session.before_tool("rm -rf build").code == 0


def test_forcing_the_branch_we_are_on(session: AgentSession) -> None:
    git = session.project / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    assert session.before_tool("git push --force").code == 2
    (git / "HEAD").write_text("ref: refs/heads/feature\n")
    assert session.before_tool("git push --force").code == 0


@pytest.mark.parametrize(
    "command",
    [
        "uvx holdfast status",
        "pipx run holdfast list",
        "npx holdfast",
        "uv tool run holdfast quiet on",
        "./holdfast status",
        "/opt/other/bin/holdfast status",
        "ls && ../elsewhere/holdfast-hook claude Stop",
    ],
)
def test_unpinned_copies(command: str) -> None:
    assert unpinned(command, "/home/dev/project")


@pytest.mark.parametrize(
    "command",
    [
        "holdfast status",
        "uvx holdfast@1.2.0 status",
        "uvx ruff",
        ".venv/bin/holdfast status",
        "echo ./holdfast",
        "git log -- src/holdfast",
        "python -m holdfast status",
        "ls holdfast",
    ],
)
def test_the_installed_one(command: str) -> None:
    assert unpinned(command, "/home/dev/project") is None


@pytest.mark.parametrize(
    "command",
    [
        "holdfast trust --yes",
        "bash -c 'holdfast trust --yes'",
        "sh -c 'cd . && holdfast trust --yes'",
        "sudo bash -lc \"sh -c 'holdfast trust'\"",
        "eval 'holdfast trust --yes'",
        "echo holdfast trust --yes | sh",
        "bash <<< 'holdfast trust --yes'",
        "hold\\fast trust --yes",
        "hold''fast tr\"us\"t --yes",
        "h=holdfast; $h trust --yes",
        "$(which holdfast) trust --yes",
        "python -P -m holdfast trust --yes",
        "echo y | holdfast trust",
        "find . -maxdepth 0 -exec holdfast trust --yes \\;",
    ],
)
def test_an_agent_trusts_no_folder(session: AgentSession, command: str) -> None:
    result = session.before_tool(command)
    assert result.code == 2
    assert "only the user may trust a folder" in result.err


@pytest.mark.parametrize(
    "command",
    [
        "holdfast trust --show",
        "echo run holdfast trust",
        "grep -rn holdfast trust docs",
        "git commit -m 'holdfast trust is now documented'",
        "bash -c 'echo holdfast trust'",
        "ls trust",
    ],
)
def test_an_agent_may_talk_of_trust(session: AgentSession, command: str) -> None:
    assert session.before_tool(command).code == 0


@pytest.mark.parametrize(
    "command", [["holdfast", "trust", "--yes"], ["bash", "-lc", "cd . && holdfast trust --yes"]]
)
def test_a_command_in_words_is_looked_at_as_well(session: AgentSession, command: list[str]) -> None:
    result = session.fire("PreToolUse", tool_name="Bash", tool_input={"command": command})
    assert result.code == 2
    assert "only the user may trust a folder" in result.err


def test_a_mark_at_the_beginning_hides_no_payload(session: AgentSession) -> None:
    tool = {"tool_name": "Bash", "tool_input": {"command": "holdfast trust --yes"}}
    payload = b"\xef\xbb\xbf" + session.payload("PreToolUse", **tool)
    assert session.run(quick(hook_command(session.agent, "PreToolUse")), payload).code == 2
