"""Gemini CLI, run headless against a scripted model."""

from __future__ import annotations

import json
from typing import Any

from agents.driver import Driver, Run
from agents.fakes.turns import Tokens, Turn, call
from agents.workshop import Started

MODEL = "gemini-2.5-pro"


class GeminiRun(Run):
    @property
    def session_id(self) -> str:
        return next(line["session_id"] for line in self.ended.lines if line["type"] == "init")

    @property
    def answer(self) -> str:
        lines = [line for line in self.ended.lines if line["type"] == "message"]
        return "".join(line["content"] for line in lines if line["role"] == "assistant")


class Gemini(Driver):
    name = "gemini"
    window = 1_048_576
    most_injected = 20_000
    shows_notices = True
    tools_prefix = "mcp_holdfast_"
    run_class = GeminiRun

    def prepare(self) -> None:
        path = self.workshop.home / ".gemini" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        settings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
        settings["general"] = {"disableAutoUpdate": True}
        settings["privacy"] = {"usageStatisticsEnabled": False}
        path.write_text(json.dumps(settings, indent=2))

    def counted(self, tokens: Tokens) -> tuple[int, int, int, int]:
        """Its hooks are not told what came from the cache."""
        return tokens.input + tokens.cache_read, tokens.output, 0, 0

    def shell(self, command: str, tokens: Tokens | None = None) -> Turn:
        return call("run_shell_command", tokens, command=command, description="as scripted")

    def start(self, prompt: str, *options: str) -> Started:
        words = ["gemini", *self.headless, *options, "--prompt", prompt]
        return self.workshop.start(words, environ=self.environ)

    def resume_options(self, session_id: str) -> tuple[str, ...]:
        return "--resume", session_id

    @property
    def headless(self) -> tuple[str, ...]:
        return "--model", MODEL, "--yolo", "--output-format", "stream-json"

    @property
    def environ(self) -> dict[str, str]:
        return {
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_API_KEY": "dummy",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }
