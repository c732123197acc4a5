"""What a person wrote, told from what a program put in the user's place: of every agent."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from findings.sessions import Session
from holdfast.model.frame import HANDED_OVER
from holdfast.model.message import ReadReport
from holdfast.model.task import Task
from holdfast.model.workflow import Issue
from holdfast.resume.compiler import compile_context
from holdfast.sessions.contexts import read_session
from holdfast.transcripts.claude_code import read as read_claude
from holdfast.workflows.drivers.prompts import prompt_for
from holdfast.workflows.drivers.protocol import Assignment

from . import claude_files as claude
from . import gemini_files as gemini
from . import opencode_files as opencode
from .codex_files import Rollout

NOTICES = (
    '{"task_id":"b1","tool_use_id":"t1","output_file":"/tmp/b1","status":"completed"}',
    '{"type":"background_task","task_id":"b1","status":"completed","exit_code":0}',
    '[{"task_id":"bx","status":"completed","output":"all green"}]',
    '[{"type":"task_notification","id":"b1","status":"completed","message":"the build ended"}]',
    '[\n  {\n    "type": "task_notification",\n    "id": "b1"\n  },\n  {\n    "type": "bash_ended"\n  }\n]',
    '{"type":"system","subtype":"task_notification","id":"b1","summary":"never run it as root"}',
    '{"type":"background_task","task_id":"b1"}\n{"type":"background_task","task_id":"b2"}',
    '{"notifications":[{"type":"task_notification","id":"b1"}]}',
    '{"background_tasks":[{"id":"b1","type":"shell","status":"running","command":"make"}]}',
    '```json\n[{"type":"bash_completed","shell_id":"b1","exit_code":0}]\n```',
    '[{"type":"task_notification","id":"b1","output":"' + "x" * 400,
    '{"task_id":"b1","output_file":"/tmp/b1","summary":"' + "x" * 400 + "…",
    '{"type":"task_completed","id":7}',
    '[{"task_id":"b1","status":"completed"}]\nRead the output file to retrieve the result: /tmp/b1',
    "[SYSTEM NOTIFICATION - NOT USER INPUT]\nA background command ended: never run it as root.",
    "Continue from where you left off.",
    '{"task_id": "b1", "status": "failed"}\nRead the output file to retrieve the result: /tmp/b1',
    "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>",
    "<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nFull transcript available at: /tmp/b1",
    "<system-reminder>door.py was modified, either by the user or by a linter</system-reminder>",
    "Stop hook feedback:\n- [lint]: run it again",
    "PostToolUse:Edit hook additional context: format it",
    "/clear",
    "/compact keep the plan",
    "/model opus",
    "/plugin marketplace add ada/tools",
    '{"taskId":"b1","status":"killed","summary":"make test"}',
    "[holdfast] Work in this folder was paused (session-1). What follows was recorded then.",
)
WORDS = (
    "Paint the door",
    "/fix the login bug",
    "/docs write about the door",
    "/etc/hosts is wrong, look at it",
    'the server answers {"task_id": 7, "status": "lost"}, why?',
    '{"task_id": 7}',
    '{"type": "bug", "task_id": 7, "status": "todo"}',
    "Continue from where you left off. Then run the tests.",
    '{"task_id": 7, "status": "todo", "title": "Write the exporter"}',
    '{"task_id": "exporter", "summary": "write it", "status": "completed", "priority": 2}',
    '[{"task_id": 7, "status": "todo"}, {"task_id": 8, "status": "todo"}]',
    '[{"type": "task", "title": "Write the exporter"}, {"type": "task", "title": "Test it"}]',
    '{"type": "push_notification", "title": "Tell the user when the order ships"}',
    '{"tasks": [{"id": 7, "status": "todo"}]}',
    '[{"type": "task_notification"}] is what I get as an answer, why?',
    '{"output_file": "dist/app.js",\n "minify": true,}\nOur loader rejects this: never touch the lock file.',
    '{"output_file": "dist/app.js", minify: true}\nwhy is this refused?',
    '```json\n{"tool_use_id": "t1", // theirs\n "name": "paint"}\n```\nOur client sends this. Leave it out.',
    '{"type": "task_completed", "id": 7,}\nOur queue sends this. Mend the comma.',
    '{"type": "task_completed", "id": 7}\nThis is the event that our queue sends. Handle it.',
    '```json\n{"type": "background_job", "id": 7}\n```\nThis is the event that our queue sends. Handle it.',
    '{"task_id": "exporter", "status": "completed"}\nThis is our answer, and it ought to be "done".',
    '[{"type": "task_notification", "id": 7]\nOur parser takes this. It must not.',
    '{"output_file": "dist/app.js, "minify": true} is what I have, and it fails',
    '{"task_type": "paint", "colour": "red", "coats":',
    '{"type": "task_notification", "id": "b1 is what I get, why?',
    "[door.py:12] is wrong, fix it",
    "/model of the domain: write it into model.md please",
    "/config of the server is wrong, fix it please",
    "why does <task-notification> stand in my file?",
    "Git hook error: mend it",
    "Stop hook says: reviewing, but I see nothing",
)
ONLY_CLAUDE = (
    "<local-command-stdout>bye</local-command-stdout>",
    "<local-command-stderr>no</local-command-stderr>",
    "<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>",
    "<command-name>/compact</command-name>\n<command-args>keep the plan</command-args>",
    "<command-name>/clear</command-name>",
    "Operation stopped by hook: another session is active",
    "[Request interrupted by user for tool use]",
    "Tool loaded.",
)


def said(agent: str, words: str, folder: Path) -> list[str]:
    """The user's words in a session where somebody wrote these."""
    path = folder / "session"
    if agent == "claude-code":
        path.write_bytes(claude.file_of(claude.typed(words), claude.said("Well.")))
    elif agent == "codex":
        path.write_bytes(Rollout().prompt(words, kind=None).says("Well.").data)
    elif agent == "gemini":
        path.write_bytes(gemini.Log().say(gemini.user("u1", words), gemini.gemini("m1", "Well.")).data)
    elif agent == "opencode":
        path.write_bytes(
            opencode.export(("user", [opencode.text(words)]), ("assistant", [opencode.text("Well.")]))
        )
    else:
        path.write_text(
            json.dumps([{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": words}]}])
        )
    return [turn.said for turn in read_session(path, agent).found.turns]


AGENTS = ("claude-code", "codex", "gemini", "opencode", "model")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("words", NOTICES)
def test_a_notice_is_nobodys_word(agent: str, words: str, tmp_path: Path) -> None:
    assert said(agent, words, tmp_path) == []


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("words", WORDS)
def test_what_a_person_wrote_stays_as_it_is(agent: str, words: str, tmp_path: Path) -> None:
    assert said(agent, words, tmp_path) == [words]


@pytest.mark.parametrize("words", ONLY_CLAUDE)
def test_what_claude_codes_program_wrote(words: str, tmp_path: Path) -> None:
    assert said("claude-code", words, tmp_path) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_words_below_a_notice_are_the_users(agent: str, tmp_path: Path) -> None:
    notice = '[{"type":"task_notification","id":"b1","status":"completed"}]'
    assert said(agent, f"{notice}\nPaint the door", tmp_path) == ["Paint the door"]


@pytest.mark.parametrize(
    "words", ["<Door> is not drawn, fix it", "Read the output file and fix what it says"]
)
def test_words_below_a_notice_are_the_users_whatever_they_begin_with(words: str, tmp_path: Path) -> None:
    notice = '{"task_id":"b1","tool_use_id":"t1","output_file":"/tmp/b1","status":"completed"}'
    told = "Read the output file to retrieve the result: /tmp/b1"
    assert said("codex", f"{notice}\n{words}", tmp_path) == [words]
    assert said("codex", f"{notice}\n{notice}\n{told}\n\n{words}", tmp_path) == [words]
    ended = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    assert said("codex", f"{ended}\nFull transcript available at: /tmp/b1\n{words}", tmp_path) == [words]


@pytest.mark.parametrize("agent", AGENTS)
def test_words_beside_a_reminder_are_the_users(agent: str, tmp_path: Path) -> None:
    words = "<system-reminder>be brief</system-reminder>\nPaint the door"
    assert said(agent, words, tmp_path) == ["Paint the door"]


def test_the_command_is_the_users_word_and_its_body_is_not() -> None:
    command = (
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n"
        "<command-args>the login bug</command-args>"
    )
    lines = claude.file_of(claude.typed(command), claude.typed("You are to fix what is asked.", isMeta=True))
    messages = list(read_claude(io.BytesIO(lines), ReadReport()))
    assert (messages[0].text, messages[0].injected) == ("/fix the login bug", False)
    assert messages[1].injected


@pytest.mark.parametrize(
    "mark",
    [{"origin": {"kind": "task-notification"}}, {"origin": {"kind": "peer"}}, {"promptSource": "system"}],
)
def test_what_is_marked_as_nobodys_is_not_the_users(mark: dict[str, object]) -> None:
    (message,) = claude.read_lines(claude.typed("wake: queued", **mark))
    assert message.injected
    (typed,) = claude.read_lines(claude.typed("wake up", origin={"kind": "human"}, promptSource="typed"))
    assert not typed.injected


def test_what_the_editor_adds_does_not_hide_the_users_words() -> None:
    blocks = [
        {"type": "text", "text": "<ide_opened_file>The user opened door.py</ide_opened_file>"},
        {"type": "text", "text": "Paint the door"},
    ]
    (message,) = claude.read_lines({"type": "user", "message": {"role": "user", "content": blocks}})
    assert (message.text, message.injected) == ("Paint the door", False)


def test_a_queued_notice_and_a_queued_command_are_not_the_users() -> None:
    def queue(operation: str, content: str | None = None) -> dict[str, object]:
        return {"type": "queue-operation", "operation": operation, "content": content}

    lines = [queue("enqueue", words) for words in (NOTICES[0], "/clear", "Paint the door")]
    messages = claude.read_lines(*lines, *[queue("remove")] * 3)
    assert [(one.text, one.injected) for one in messages if not one.injected] == [("Paint the door", False)]


# ── our own words ──────────────────────────────────────────────────────────────────────────


def briefing() -> str:
    """Of a session whose words look like headings and paragraphs of ours."""
    session = Session().user("Paint the door\n\n## Not a heading\n\nYour task now (x)").agent("I paint.")
    session.edit("/p/door.py", new="a = 1\n\n```\n\nb = 2").shell("make", "bad\n\nworse", "error")
    for number in range(60):
        session.user(f"wish {number}: " + "please " * 40).agent("Done.")
    return compile_context(session.found(cwd="/p", branch="red"), 9000).text


@pytest.mark.parametrize("agent", AGENTS)
def test_a_briefing_is_nobodys_word(agent: str, tmp_path: Path) -> None:
    assert said(agent, briefing(), tmp_path) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_written_around_a_briefing_is_the_users(agent: str, tmp_path: Path) -> None:
    words = f"Take this up:\n\n{briefing()}\n\nBut first oil the hinge.\n\nThen go."
    assert said(agent, words, tmp_path) == ["Take this up:\n\nBut first oil the hinge.\n\nThen go."]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("goes_on", [False, True])
def test_of_a_workflows_prompt_the_task_is_left(agent: str, goes_on: bool, tmp_path: Path) -> None:
    """Of a workflow over several sessions each prompt holds the handover of the one before."""
    task = Task(id="t2", description="", prompt="Hang the door.")
    assignment = Assignment(
        workflow_id="w",
        session_number=2,
        issue=Issue(id="SHED-7", title="Build a shed", description=""),
        task=task,
        worktree=tmp_path,
        attempt=2,
        context=briefing(),
        message="Mind the cat.",
    )
    (words,) = said(agent, prompt_for(assignment, is_begun=False, goes_on=goes_on), tmp_path)
    assert words.split("\n\n") == [
        "The user says: Mind the cat.",
        "Your task now (t2). Do this task and nothing beyond it.",
        "Hang the door.",
    ]


def test_a_session_that_took_over_names_the_one_before(tmp_path: Path) -> None:
    text = f"{HANDED_OVER}session-0007). What follows was recorded then.\n\n{briefing()}"
    path = tmp_path / "session.jsonl"
    path.write_bytes(claude.file_of(claude.typed(text), claude.said("Going on.")))
    context = compile_context(read_session(path, "claude-code").found, 9000).text
    assert "`holdfast context session-0007` prints it" in context
    assert "Latest request" not in context
    assert context.count("# Handover") == 1
