"""What must hold with the real Claude Code beyond what holds with all."""

from __future__ import annotations

import json
import re

from agents.claude_code import COMPACTING_MODEL, ClaudeCode
from agents.fakes.turns import Seen, Tokens, Turn, call, say
from agents.workshop import ROOT, Workshop

RULE = 'The user\'s rule, word for word: "Find the magic number; never touch the folder vendor/"'


def test_with_stop_configured_the_run_ends_at_the_tool_boundary(claude: ClaudeCode) -> None:
    claude.workshop.configure(on_exhaustion="stop")
    claude.model.then(claude.shell("echo kept > result.txt; echo KEPT", claude.nearly_full), say("No."))
    run = claude.ask("Do one thing")
    assert run.result["terminal_reason"] == "hook_stopped"
    assert run.tool_results == ["KEPT"]
    assert (claude.workshop.project / "result.txt").read_text() == "kept\n"
    assert len(claude.model.main) == 1
    assert claude.workshop.settled()["trigger"] == "exhaustion"


def test_a_compaction_is_steered_before_and_supplemented_after(claude: ClaudeCode) -> None:
    claude.model.then(
        claude.shell("echo 4711 > magic.txt", Tokens(input=980_000)),
        claude.shell("echo 1 > after.txt"),
        say("Done after the compaction."),
    )
    run = claude.ask("Find the magic number; never touch the folder vendor/", "--model", COMPACTING_MODEL)
    assert run.answer == "Done after the compaction."
    (asked,) = claude.model.of("summary")
    assert "Write this summary as a handover" in asked.text
    assert RULE in asked.text
    at_once, after = claude.model.main[-2], claude.model.main[-1]
    assert "SCRIPTED-SUMMARY" in at_once.text
    assert RULE in at_once.text
    assert "# Handover" not in after.text
    # Once the summary is in the record, what it lacks follows: it knew nothing of the branch.
    assert "The branch is main." not in at_once.text
    assert after.text.count("The branch is main.") == 1
    assert after.text.count(RULE) == 1
    assert len(_told(after)) <= 2_000
    assert claude.workshop.first_settled()["trigger"] == "exhaustion"


def test_a_summary_that_follows_the_form_needs_hardly_a_supplement(claude: ClaudeCode) -> None:
    """The scripted model does as it is told: it keeps the facts that it was given."""

    def summarised(request: Seen) -> Turn:
        facts = re.findall(r"Keep them exactly:((?:\n- .*)+)", request.text)
        return say(f"<analysis>short</analysis><summary>SCRIPTED-SUMMARY{facts[-1]}</summary>")

    claude.model.summarised = summarised
    claude.model.then(
        claude.shell("echo 4711 > magic.txt", Tokens(input=980_000)),
        claude.shell("echo 1 > after.txt"),
        say("Done."),
    )
    claude.ask("Find the magic number; never touch the folder vendor/", "--model", COMPACTING_MODEL)
    told = _told(claude.model.main[-1])
    assert RULE in told  # before anybody knew the summary
    assert "corrects or adds to the summary" not in told
    assert len(told) <= 200


def _told(request: Seen) -> str:
    """By Holdfast, in what is new since the compaction."""
    return "".join(re.findall(r"\[holdfast\][^\n]*(?:\n- [^\n]*)*", request.text))


def test_the_quiet_skill_silences_its_own_session_alone(claude: ClaudeCode) -> None:
    claude.model.then(_do_as_the_skill_says, say("Nudges are off."))
    quiet = claude.ask("/holdfast:quiet")
    assert "Nudges are off in session" in quiet.tool_results[0]
    claude.model.then(say("Hello."), say("Hello."))
    claude.go_on(quiet.session_id, "Hello again")
    assert _reminders(claude.model.main[-1]) == 1
    other = claude.ask("Hello from another session")
    assert _reminders(claude.model.main[-1]) == 0
    assert _is_quiet(claude.workshop, quiet.session_id)
    assert not _is_quiet(claude.workshop, other.session_id)
    claude.model.then(_do_as_the_skill_says, say("Nudges are on."))
    claude.go_on(quiet.session_id, "/holdfast:unquiet")
    assert not _is_quiet(claude.workshop, quiet.session_id)


def _do_as_the_skill_says(request: Seen) -> Turn:
    found = re.findall(r"```sh\n(.+? quiet o(?:n|ff) --session-id \S+)\n```", request.text)
    return call("Bash", command=found[-1])


def _reminders(request: Seen) -> int:
    """In what is new: the last message."""
    last = json.dumps(request.body["messages"][-1])
    return len(re.findall(r"holdfast:quiet(?=\\n|\"| \()", last))


def _is_quiet(workshop: Workshop, session_id: str) -> bool:
    return workshop.holdfast_json("quiet", "status", "--session-id", session_id)["quiet"]


def test_guards_block_in_a_quiet_session_too(claude: ClaudeCode) -> None:
    """What is to be deleted is the throw-away home: a guard that failed would cost nothing."""
    treasure = claude.workshop.home / "treasure"
    treasure.write_text("gold")
    claude.model.then(say("Hello."))
    session = claude.ask("Hello").session_id
    claude.workshop.holdfast("quiet", "on", "--session-id", session).check()
    for command in ('rm -rf "$HOME"', "rm -fr ~/", "cd ~ && rm -rf .", 'bash -c "rm -rf $HOME"'):
        claude.model.then(call("Bash", command=command), say("It was refused."))
        run = claude.ask("Clean up", "--resume", session)
        assert "holdfast: this command was blocked" in run.tool_results[0], command
    assert treasure.exists()


def test_the_plugin_does_what_the_settings_do(claude: ClaudeCode) -> None:
    claude.workshop.holdfast("install", "claude-code", "--plugin").check()
    settings = json.loads((claude.workshop.home / ".claude" / "settings.json").read_text())
    assert list(settings) == ["statusLine"]
    claude.model.then(claude.shell("echo one", claude.nearly_full), say("Done.", claude.nearly_full))
    run = claude.ask("Do one thing")
    # Were the hooks registered twice, the advice would come twice.
    assert claude.model.main[-1].text.count("Wrap up now") == 1
    full = claude.nearly_full
    assert claude.workshop.usage(run.session_id) == (
        full.input,
        full.output,
        full.cache_read,
        full.cache_write,
    )
    claude.workshop.settled()
    claude.workshop.holdfast("uninstall", "claude-code").check()
    assert not (claude.workshop.home / ".claude" / "skills").exists()


def test_the_plugin_is_valid(claude: ClaudeCode) -> None:
    claude.workshop.holdfast("install", "claude-code", "--plugin").check()
    installed = claude.workshop.home / ".claude" / "skills" / "holdfast"
    for path in (installed, ROOT / "plugins" / "claude-code", ROOT):
        checked = claude.workshop.run(["claude", "plugin", "validate", str(path)], environ=claude.environ)
        assert "Validation passed" in checked.check().out


def test_sub_agents_and_tasks_stand_in_the_journal(claude: ClaudeCode) -> None:
    full = claude.nearly_full

    def answer(request: Seen) -> Turn:
        """By what it asks: the sub-agent's own requests come here, too, and any may come twice."""
        if "Measure the door and hang it" not in request.text:
            return say("The door is 80 cm wide.", Tokens(input=900))
        if "in its frame" not in request.text:
            return call("TaskCreate", full, subject="Hang the door", description="in its frame")
        if "completed" not in request.pieces:
            return call("TaskUpdate", full, taskId="1", status="completed")
        return say("Done.", full)

    ask = call("Agent", full, description="Measure", prompt="Measure it", subagent_type="general-purpose")
    claude.model.then(claude.shell("echo full", full), ask, *[answer] * 8)
    claude.ask("Measure the door and hang it", "--allowedTools=Bash,Agent,TaskCreate,TaskUpdate")
    claude.workshop.settled()
    (archive,) = (claude.workshop.project / ".holdfast" / "sessions").glob("*-incremental.jsonl")
    events = [json.loads(line) for line in archive.read_text().splitlines()]
    told = [(one["data"]["event"], one["data"]["detail"]) for one in events if one["type"] == "system_event"]
    assert told == [
        ("SubagentStart", "general-purpose"),
        ("SubagentStop", "The door is 80 cm wide."),
        ("TaskCreated", "Hang the door"),
        ("TaskCompleted", "Hang the door"),
    ]
