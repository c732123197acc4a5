"""Claude Code, run headless against a scripted model."""

from __future__ import annotations

from typing import Any

from agents.driver import Driver, Run
from agents.fakes.turns import Tokens, Turn, call
from agents.workshop import Started

MODEL = "claude-sonnet-4-5-20250929"
COMPACTING_MODEL = "claude-opus-5-5"
"""One that compacts by itself when its window of a million is nearly full; the other never does."""


class ClaudeRun(Run):
    @property
    def session_id(self) -> str:
        return self.ended.lines[0]["session_id"]

    @property
    def answer(self) -> str:
        return self.result["result"]

    @property
    def result(self) -> dict[str, Any]:
        """The line that closes a run."""
        return next(line for line in reversed(self.ended.lines) if line["type"] == "result")

    @property
    def tool_results(self) -> list[str]:
        """What each tool gave back, as the model was told."""
        blocks = [block for line in self.ended.lines if line["type"] == "user" for block in _blocks(line)]
        return [str(block["content"]) for block in blocks if block.get("type") == "tool_result"]


class ClaudeCode(Driver):
    name = "claude-code"
    window = 200_000
    most_injected = 9_500
    shows_notices = True
    tools_prefix = "mcp__plugin_holdfast_holdfast__"
    run_class = ClaudeRun

    @property
    def nearly_full(self) -> Tokens:
        return Tokens(input=1_003, output=207, cache_read=170_011, cache_write=10_013)

    def shell(self, command: str, tokens: Tokens | None = None) -> Turn:
        return call("Bash", tokens, command=command)

    def ask(self, prompt: str, *options: str) -> ClaudeRun:
        return ClaudeRun(self.start(prompt, *options).end())

    def start(self, prompt: str, *options: str) -> Started:
        return self.workshop.start(["claude", prompt, *self.headless, *options], environ=self.environ)

    @property
    def headless(self) -> tuple[str, ...]:
        """Options come one after another; of two the last counts."""
        form = ("-p", "--output-format", "stream-json", "--verbose")
        return (*form, "--allowedTools=Bash,Read,Write,Edit,mcp__plugin_holdfast_holdfast", "--model", MODEL)

    def resume_options(self, session_id: str) -> tuple[str, ...]:
        return "--resume", session_id

    @property
    def environ(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }


def _blocks(line: dict[str, Any]) -> list[dict[str, Any]]:
    content = line["message"]["content"]
    return content if isinstance(content, list) else []
