"""OpenCode, run headless against a scripted model."""

from __future__ import annotations

import json

from agents.driver import Driver, Run
from agents.fakes.turns import Tokens, Turn, call
from agents.workshop import Started

_MODELS = {
    "scripted": (100_000, 8_000),
    "small": (100_000, 32_000),
    "middle": (200_000, 32_000),
    "large": (1_000_000, 64_000),
}
"""The window of each, and how much it may answer."""


class OpenCodeRun(Run):
    @property
    def session_id(self) -> str:
        return self.ended.lines[0]["sessionID"]

    @property
    def answer(self) -> str:
        return [line["part"]["text"] for line in self.ended.lines if line["type"] == "text"][-1]


class OpenCode(Driver):
    name = "opencode"
    window = 100_000
    most_injected = 20_000
    tools_prefix = "holdfast_"
    may_tell_usage_late = True
    run_class = OpenCodeRun

    def prepare(self) -> None:
        self.compact_by_itself(False)

    def compact_by_itself(self, does: bool) -> None:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Scripted",
            "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "dummy"},
            "models": {
                name: {"name": name, "limit": {"context": context, "output": output}, "tool_call": True}
                for name, (context, output) in _MODELS.items()
            },
        }
        document = {
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "share": "disabled",
            "provider": {"scripted": provider},
            "permission": {"bash": "allow", "edit": "allow"},
            "compaction": {"auto": does},
        }
        path = self.workshop.home / ".config" / "opencode" / "opencode.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))

    def with_model(self, model: str) -> tuple[str, ...]:
        return "--model", f"scripted/{model}"

    def before_two_at_once(self) -> None:
        """Make its database: two that find none both make the tables, and one of them fails."""
        self.workshop.run(["opencode", "session", "list"], environ=self.environ).check()

    def shell(self, command: str, tokens: Tokens | None = None) -> Turn:
        return call("bash", tokens, command=command, description="as scripted")

    def start(self, prompt: str, *options: str) -> Started:
        words = ["opencode", *self.headless, *options, prompt]
        return self.workshop.start(words, environ=self.environ)

    def resume_options(self, session_id: str) -> tuple[str, ...]:
        return "--session", session_id

    def in_person(self, prompt: str, *options: str) -> tuple[str, ...]:
        return "opencode", *options, "--prompt", prompt

    @property
    def headless(self) -> tuple[str, ...]:
        return "run", "--format", "json"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            # It wants its plugin package from the registry; without a network it would try for a minute.
            "npm_config_registry": self.model.url,
        }
