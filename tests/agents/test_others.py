"""Where Codex, Gemini CLI and OpenCode differ: how they are stopped, and how they compact."""

from __future__ import annotations

import json
import re

from agents.codex import Codex
from agents.driver import Driver
from agents.fakes.turns import Seen, Tokens, Turn, call, say
from agents.gemini import Gemini
from agents.opencode import OpenCode


def test_codex_compacts_with_a_snapshot_before_and_a_supplement_after(codex: Codex) -> None:
    codex.compact_at(50_000)
    codex.model.then(codex.shell("echo 4711 > magic.txt", Tokens(input=60_000)), say("Done after it."))
    assert codex.ask("Find the magic number; never touch vendor/").answer == "Done after it."
    assert codex.model.of("summary")
    after = codex.model.main[-1].text
    assert "never touch vendor/" in after
    assert "# Handover" not in after
    assert codex.workshop.first_settled()["trigger"] == "exhaustion"


def test_a_sub_agent_of_codex_is_neither_the_user_nor_the_session(codex: Codex) -> None:
    full = codex.nearly_full
    reported = "until grep -qs SubagentStop .holdfast/sessions/*.jsonl; do sleep 0.1; done"
    own = iter([codex.shell(reported, full), say("Done.", full)])

    def either(request: Seen) -> Turn:
        is_own = "Measure the door" in request.text
        return next(own) if is_own else say("The door is 80 cm wide.", Tokens(input=900))

    ask = call("multi_agent_v1/spawn_agent", full, message="Measure it")
    codex.model.then(codex.shell("echo one", full), codex.shell("echo two", full), ask, *[either] * 3)
    codex.ask("Measure the door")
    codex.workshop.settled()
    (archive,) = (codex.workshop.project / ".holdfast" / "sessions").glob("*-incremental.jsonl")
    events = [json.loads(line) for line in archive.read_text().splitlines()]
    reports = [one["data"] for one in events if one["type"] == "system_event"]
    assert {"event": "UserPromptSubmit", "detail": "Measure it"} in reports
    assert {"event": "SubagentStop", "detail": "The door is 80 cm wide."} in reports
    assert "user_message" not in {one["type"] for one in events}


def test_gemini_compacts_unasked_and_is_told_what_its_summary_lacks(gemini: Gemini) -> None:
    """It has no event for that: the requests that a hook sees hold the summary from then on."""
    gemini.model.then(say(" ".join(f"Place {n} has none." for n in range(2_000))))
    session = gemini.ask("Find the magic number; never touch vendor/").session_id
    gemini.model.then(
        gemini.shell("echo 4711 > magic.txt", Tokens(input=600_000)),
        gemini.shell("echo after", Tokens(input=9_000)),
        say("Done after it.", Tokens(input=9_000)),
    )
    assert gemini.go_on(session, "Look for it now").answer.endswith("Done after it.")
    assert gemini.model.of("summary")
    after = gemini.model.main[-1].text
    assert "SCRIPTED-SUMMARY" in after
    (told,) = re.findall(r"\[holdfast\] The record of this session(?:.|\n)*", after)
    assert "never touch vendor/" in told
    assert "# Handover" not in after


def test_opencode_compacts_steered_with_a_snapshot_before_and_a_supplement_after(opencode: OpenCode) -> None:
    opencode.compact_by_itself(True)
    opencode.model.then(
        opencode.shell("echo 4711 > magic.txt", Tokens(input=97_000)),
        say("Done after it."),
    )
    assert opencode.ask("Find the magic number; never touch vendor/").answer == "Done after it."
    (asked,) = opencode.model.of("summary")
    assert "Write this summary as a handover" in asked.text
    assert "never touch vendor/" in asked.text
    after = opencode.model.main[-1].text
    assert "SCRIPTED-SUMMARY" in after
    assert "never touch vendor/" in after
    assert "# Handover" not in after
    assert opencode.workshop.first_settled()["trigger"] == "exhaustion"


def test_a_stop_denies_further_tools_and_keeps_the_results(codex: Codex) -> None:
    _stops(codex)


def test_a_stop_ends_gemini_before_the_next_tool(gemini: Gemini) -> None:
    _stops(gemini)


def test_a_stop_denies_further_tools_in_opencode(opencode: Driver) -> None:
    _stops(opencode)


def _stops(agent: Driver) -> None:
    """These cannot be stopped after a tool: the next one is refused, and what ran before is kept."""
    agent.workshop.configure(on_exhaustion="stop")
    full = agent.nearly_full
    agent.model.then(
        agent.shell("echo kept > first.txt"),
        agent.shell("echo kept > second.txt", full),
        agent.shell("echo never > third.txt", full),
        say("Stopped.", full),
    )
    agent.start("Do three things").end()
    assert (agent.workshop.project / "first.txt").read_text() == "kept\n"
    assert not (agent.workshop.project / "third.txt").exists()
    assert agent.workshop.settled()["trigger"] == "exhaustion"


_LEAVING_LOCKS = """
import { mkdirSync, writeFileSync } from "node:fs"
export const Leaving = async () => {
  for (const [name, pid] of [["unnamed", 0], ["own", process.pid], ["others", 1]]) {
    mkdirSync(`LOCKS/${name}.lock`, { recursive: true })
    if (pid) writeFileSync(`LOCKS/${name}.lock/meta.json`, JSON.stringify({ pid }))
  }
  return {}
}
"""


def test_opencode_ends_without_the_locks_of_its_look_for_packages(opencode: OpenCode) -> None:
    """It may end in the middle of one; its next start would wait a minute for nobody."""
    home = opencode.workshop.home
    locks = home / ".local" / "state" / "opencode" / "locks"
    plugin = home / ".config" / "opencode" / "plugin" / "leaving.js"
    plugin.write_text(_LEAVING_LOCKS.replace("LOCKS", str(locks)))
    opencode.model.then(say("Done."))
    opencode.ask("Do it")
    left = [name for name in ("unnamed", "own", "others") if (locks / f"{name}.lock").exists()]
    assert left == ["others"]
