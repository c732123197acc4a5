"""What may not run, in all its disguises, and what must not be kept from running."""

from __future__ import annotations

import random
import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.hooks.command_place import CommandPlace
from holdfast.hooks.events import hook_command
from holdfast.hooks.guards import danger, telling_words, unpinned
from holdfast.project.layout import ProjectLayout
from hooks.commands import DANGEROUS, HARMLESS
from hooks.harness import AgentSession, quick
from soak import QUICK


def test_the_tables_are_long_enough() -> None:
    assert len(set(DANGEROUS)) >= 60
    assert len(set(HARMLESS)) >= 60


@pytest.mark.parametrize("command", DANGEROUS)
def test_dangerous(command: str) -> None:
    assert danger(command, CommandPlace("/home/dev/project"))


@pytest.mark.parametrize("command", HARMLESS)
def test_harmless(command: str) -> None:
    assert danger(command, CommandPlace("/home/dev/project")) is None


def test_no_dangerous_command_passes_the_shell_in_front(session: AgentSession) -> None:
    """One by one through the whole program: the shell may only let pass what Python would."""
    session.start()
    commands = random.sample(DANGEROUS, 20) if QUICK else DANGEROUS
    passed = [command for command in commands if not session.before_tool(command).refusal]
    assert passed == []


def test_the_words_in_the_shell_are_those_of_the_guards() -> None:
    path = Path(__file__).parents[2] / "scripts" / "hook_table.py"
    made: Any = runpy.run_path(str(path))
    script = made["SCRIPT"].read_text()
    assert script == made["with_words"](script), "run scripts/hook_table.py"
    assert {"rm", "push", "/dev", "holdfast"} < set(telling_words())


@pytest.mark.parametrize(
    ("agent", "form"),
    [
        (
            "claude-code",
            {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}},
        ),
        ("codex", {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}),
        ("gemini", {"decision": "deny"}),
        ("opencode", {}),
    ],
)
def test_a_refusal_is_an_answer_and_no_error(session: AgentSession, agent: str, form: dict[str, Any]) -> None:
    session.agent = agent
    result = session.before_tool("sudo rm -rf /")
    assert (result.code, result.err) == (0, "")
    assert "it deletes / recursively" in result.refusal
    assert "Allowed instead: name the exact files" in result.refusal
    told = result.data
    told.get("hookSpecificOutput", {}).pop("permissionDecisionReason", None)
    assert {key: told[key] for key in told if key not in ("reason", "deny")} == form


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini", "opencode"])
def test_all_agents_are_guarded_quiet_or_not(session: AgentSession, agent: str) -> None:
    session.agent = agent
    ProjectLayout(session.project).ensure()
    (session.state / f"quiet-{session.session_id}").write_text("0")
    assert session.before_tool("rm -rf ~").refusal
    assert not session.before_tool("rm -rf build").refusal


def test_forcing_the_branch_we_are_on(session: AgentSession) -> None:
    git = session.project / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for command in ("git push --force", "git push origin HEAD --force", "git push origin +HEAD"):
        assert session.before_tool(command).refusal
    (git / "HEAD").write_text("ref: refs/heads/feature\n")
    assert not session.before_tool("git push --force").refusal


def test_forcing_the_branch_of_a_linked_work_tree(session: AgentSession, tmp_path: Path) -> None:
    own = tmp_path / "repository" / ".git" / "worktrees" / "here"
    own.mkdir(parents=True)
    (session.project / ".git").write_text(f"gitdir: {own}\n")
    (own / "HEAD").write_text("ref: refs/heads/main\n")
    assert session.before_tool("git push --force").refusal
    (own / "HEAD").write_text("ref: refs/heads/feature\n")
    assert not session.before_tool("git push --force").refusal


def test_a_folder_above_the_project_is_not_deleted(session: AgentSession) -> None:
    (session.project / ".git").mkdir()
    inside = session.project / "build" / "x"
    inside.mkdir(parents=True)
    assert session.before_tool("rm -rf ../../..", cwd=str(inside)).refusal
    assert session.before_tool(f"rm -rf {session.project}", cwd=str(inside)).refusal
    assert not session.before_tool("rm -rf ../../build", cwd=str(inside)).refusal


def test_uncommitted_changes_are_not_thrown_away(session: AgentSession) -> None:
    repository = [
        ("init", "-q"),
        ("add", "."),
        ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x"),
    ]
    (session.project / "kept.txt").write_text("one")
    (session.project / ".gitignore").write_text(".holdfast\n")
    (session.project / "docs").mkdir()
    (session.project / "docs" / "page.md").write_text("one")
    for words in repository:
        subprocess.run(["git", *words], cwd=session.project, env=session.environment, check=True)
    ways = (
        "git checkout -- .",
        "git checkout .",
        "git restore .",
        "git reset --hard HEAD",
        "git checkout HEAD -- .",
    )
    assert [command for command in ways if session.before_tool(command).refusal] == []
    assert not session.before_tool("rm -rf *").refusal
    (session.project / "kept.txt").write_text("two")
    assert [command for command in ways if not session.before_tool(command).refusal] == []
    assert "`git stash` or commit first" in session.before_tool("git checkout -- .").refusal
    for ways, is_lost in (
        (("git checkout -- '*.txt'", "git restore 'k*'"), True),
        (("git checkout -- '*.py'",), False),
        (("cd docs && git checkout -- .", "git -C docs checkout .", "cd docs; git restore ."), False),
        (("cd docs && git reset --hard", "cd docs && git checkout -- ..", "git -C docs restore :/"), True),
    ):
        assert [bool(session.before_tool(command).refusal) for command in ways] == [is_lost] * len(ways)
    place = CommandPlace(str(session.project), has_changes=lambda *_, **__: True)
    assert [command for command in DISCARDING if not danger(command, place)] == []
    assert [command for command in SAVING if danger(command, place)] == []


def test_what_nobody_else_has_is_not_cleaned_away(session: AgentSession) -> None:
    for words in (("init", "-q"), ("config", "core.excludesFile", str(session.home / "none"))):
        subprocess.run(["git", *words], cwd=session.project, env=session.environment, check=True)
    (session.project / ".gitignore").write_text("*\n")
    everything, lists = (
        ("git clean -fd", "git clean -f", "git clean -fdq ."),
        ("git clean -nd", "git clean -id"),
    )
    assert [command for command in (*everything, *lists) if session.before_tool(command).refusal] == []
    (session.project / "new").mkdir()
    (session.project / "new" / "kept.txt").write_text("one")
    (session.project / ".gitignore").write_text("build\n")
    assert [command for command in everything if not session.before_tool(command).refusal] == []
    told = ("git clean -fd build", "git stash -u && git clean -fd", *lists)
    assert [command for command in told if session.before_tool(command).refusal] == []
    ProjectLayout(session.project).ensure()
    (session.project / ".gitignore").write_text("*\n")
    assert "Holdfast's record of this work" in session.before_tool("git clean -fdx").refusal
    assert not session.before_tool("git clean -fdx -e .holdfast").refusal
    assert not session.before_tool("git clean -fdx build").refusal


DISCARDING = (
    "git checkout -- '*.txt'",
    "git restore -SW 'src/*'",
    "git clean -fd",
    "git checkout -f",
    "git checkout --force main",
    "git switch -f main",
    "git switch --discard-changes main",
    "git restore -SW .",
    "git checkout -- ./*",
    "git checkout $PWD",
    "git -C . checkout -- .",
    "git -c a.b=c reset --hard",
    "git stash list; git checkout -- .",
    "git stash pop && git reset --hard",
    "git commit --dry-run; git reset --hard",
    "git commit -m 'only what was added'; git reset --hard",
    "rm -rf *",
    'rm -rf "$(pwd)"/*',
)
SAVING = (
    "git restore --staged '*.txt'",
    "git clean -nd",
    "git stash && git checkout -- '*.txt'",
    "git checkout -- kept.txt",
    "git checkout -f main -- kept.txt",
    "git checkout -p .",
    "git checkout --ours .",
    "git restore -p .",
    "git restore --staged .",
    "git stash && git checkout -- .",
    "git stash -u; git checkout .",
    "git stash push -u -m wip && git restore .",
    "git commit -am wip && git reset --hard HEAD~1",
    "git add -A && git commit -m x && git checkout .",
    "git grep checkout .",
    "git grep -n restore -- .",
    "git log restore -- .",
    "git commit -m reset --hard",
    "git checkout main",
)


def test_a_command_given_as_words_is_guarded(session: AgentSession) -> None:
    session.agent = "codex"
    for words in (["rm", "-rf", "/"], ["bash", "-lc", "rm -rf /"], ["sh", "-c", "echo 'x'; rm -rf ~"]):
        assert session.before_tool(tool_input={"command": words}).refusal
    assert not session.before_tool(tool_input={"command": ["bash", "-lc", "echo 'rm -rf /'"]}).refusal


def test_a_payload_with_a_byte_order_mark_is_guarded(session: AgentSession) -> None:
    payload = session.payload("PreToolUse", tool_name="Bash", tool_input={"command": "rm -rf /"})
    result = session.run(quick(hook_command("claude-code", "PreToolUse")), b"\xef\xbb\xbf" + payload)
    assert result.refusal


@pytest.mark.parametrize("text", ["a", "a ", "$(", "(){", "a|", "'", "x\n"])
def test_a_huge_command_is_refused_unread(session: AgentSession, text: str) -> None:
    session.start()
    result = session.before_tool("echo " + text * (2_000_000 // len(text)))
    assert "too long to analyse" in result.refusal
    assert session.errors == ""


@pytest.mark.parametrize("text", ["a|", "a;", "rm a ", "$(a) "])
def test_a_command_of_very_many_words_is_refused(session: AgentSession, text: str) -> None:
    session.start()
    assert "too long to analyse" in session.before_tool("rm " + text * (120_000 // len(text))).refusal
    assert not session.before_tool("echo " + text * 2_000).refusal


@pytest.mark.parametrize("line", ["X=$X$X;", "export X=a$X$X;", "X=$PWD; cd $X/$X;"])
def test_variables_that_double_fill_no_memory(line: str) -> None:
    place = CommandPlace("/home/dev/project")
    assert not danger(f"X=a; {line * 500} ls", place)
    assert danger(f"X=a; {line * 500} rm -rf /", place)


@pytest.mark.parametrize(
    "line",
    [
        "f(){ f; f; }; f;",
        "f(){ g $@ $@; }; g(){ f $@ $@; }; f a b;",
        f"f(){{ {'x;' * 2000} }}; {'f;' * 2000}",
        "f(){ " * 4_000 + "}" * 4_000 + ";",
        "a=(" * 2_000 + ")" * 2_000 + ";",
        f"echo {'a ' * 4000} | xargs -I{{}} rm {'{} ' * 4000};",
    ],
    ids=["itself", "each other", "often", "nested", "lists", "xargs"],
)
def test_calls_without_end_come_to_one(line: str) -> None:
    place = CommandPlace("/home/dev/project")
    assert danger(f"{line} ls", place) is None or "too long" in str(danger(line, place))
    assert danger(f"{line} rm -rf /", place)


def test_nesting_hides_nothing(session: AgentSession) -> None:
    assert "nested too deeply" in session.before_tool("$(" * 2_000 + "rm -rf /" + ")" * 2_000).refusal


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
        "echo trust --yes | xargs holdfast",
        "sudo -u ada env A=b holdfast trust",
        "xargs -I{} holdfast {} <<< trust",
    ],
)
def test_an_agent_trusts_no_folder(session: AgentSession, command: str) -> None:
    assert "only the user may trust a folder" in session.before_tool(command).refusal


@pytest.mark.parametrize(
    "command",
    [
        "holdfast trust --show",
        "echo run holdfast trust",
        "grep -rn holdfast trust docs",
        "git commit -m 'holdfast trust is now documented'",
        "bash -c 'echo holdfast trust'",
        "ls trust",
        "man holdfast trust",
        "which holdfast trust",
        "git add holdfast trust",
        "ls holdfast trust",
    ],
)
def test_an_agent_may_talk_of_trust(session: AgentSession, command: str) -> None:
    assert not session.before_tool(command).refusal
