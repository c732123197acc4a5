"""Codex, run headless against a scripted model."""

from __future__ import annotations

from typing import ClassVar

from agents.driver import Driver, Run
from agents.fakes.turns import Tokens, Turn, call
from agents.workshop import Started

_CONFIG = """
model = "scripted"
model_provider = "scripted"
model_context_window = {window}
model_auto_compact_token_limit = {compact_at}

[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[projects."{project}"]
trust_level = "trusted"

[features]
plugins = false
apps = false
"""
_VETTED = ("--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox")
_BY_INSTALL = "# begin: made by holdfast install"


class CodexRun(Run):
    @property
    def session_id(self) -> str:
        return next(line["thread_id"] for line in self.ended.lines if line["type"] == "thread.started")

    @property
    def answer(self) -> str:
        items = [line["item"] for line in self.ended.lines if line["type"] == "item.completed"]
        return [item["text"] for item in items if item["type"] == "agent_message"][-1]


class Codex(Driver):
    name = "codex"
    window = 95_000
    """Of the 100,000 configured: Codex keeps a twentieth back and says so."""
    most_injected = 5_000
    tools_prefix = "mcp__holdfast/"
    """Of a tool in a namespace, the scripted API wants that before a slash."""
    may_tell_usage_late = True
    run_class = CodexRun
    questions: ClassVar[dict[str, bytes]] = {
        "\u203a 1. Try new model": b"2",
        "\u203a 2. Use existing model": b"\r",
    }

    def prepare(self) -> None:
        self.compact_at(10**9)

    def compact_at(self, tokens: int) -> None:
        path = self.workshop.home / ".codex" / "config.toml"
        path.parent.mkdir(exist_ok=True)
        _, mark, installed = path.read_text().rpartition(_BY_INSTALL) if path.exists() else ("", "", "")
        config = _CONFIG.format(
            url=self.model.url, window=100_000, compact_at=tokens, project=self.workshop.project
        )
        path.write_text(f"{config}\n{mark}{installed}" if mark else config)

    def shell(self, command: str, tokens: Tokens | None = None) -> Turn:
        return call("exec_command", tokens, cmd=command)

    def start(self, prompt: str, *options: str) -> Started:
        return self.workshop.start(["codex", *self.headless, *options, prompt], environ=self.environ)

    def resume_options(self, session_id: str) -> tuple[str, ...]:
        return "resume", session_id

    @property
    def environ(self) -> dict[str, str]:
        return {"SCRIPTED_KEY": "dummy"}

    @property
    def headless(self) -> tuple[str, ...]:
        """Trust is the user's to give, in Codex; a test that looks at every hook has vetted them."""
        return ("exec", "--json", "--skip-git-repo-check", *_VETTED)

    def in_person(self, prompt: str, *options: str) -> tuple[str, ...]:
        return "codex", *_VETTED, *options, prompt
