"""What must hold with the real Claude Code beyond what holds with all."""

from __future__ import annotations

import json
import re

from agents.claude_code import COMPACTING_MODEL, ClaudeCode
from agents.fakes.turns import Seen, Tokens, Turn, call, say
from agents.workshop import ROOT, Workshop


def test_with_stop_configured_the_run_ends_at_the_tool_boundary(claude: ClaudeCode) -> None:
    claude.workshop.configure(on_exhaustion="stop")
    claude.model.then(claude.shell("echo kept > result.txt; echo KEPT", claude.nearly_full), say("No."))
    run = claude.ask("Do one thing")
    assert run.result["terminal_reason"] == "hook_stopped"
    assert run.tool_results == ["KEPT"]
    assert (claude.workshop.project / "result.txt").read_text() == "kept\n"
    assert len(claude.model.main) == 1
    assert claude.workshop.settled()["trigger"] == "exhaustion"


def test_a_compaction_has_a_snapshot_before_and_the_context_after(claude: ClaudeCode) -> None:
    claude.model.then(
        claude.shell("echo 4711 > magic.txt", Tokens(input=980_000)), say("Done after the compaction.")
    )
    run = claude.ask("Find the magic number", "--model", COMPACTING_MODEL)
    assert run.answer == "Done after the compaction."
    assert len(claude.model.of("summary")) == 1
    after = claude.model.main[-1].text
    assert "SCRIPTED-SUMMARY" in after
    context = after[after.index("[holdfast] This session was wound down or compacted") :]
    assert "Find the magic number" in context
    assert "echo 4711 > magic.txt" in context
    assert claude.workshop.first_settled()["trigger"] == "exhaustion"


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
