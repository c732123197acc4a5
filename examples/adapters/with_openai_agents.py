"""An agent of the OpenAI Agents SDK whose conversation Holdfast keeps, pauses and hands over.

    python examples/adapters/with_openai_agents.py

The model is scripted, so that this runs without a key. Requires `pip install 'holdfast[openai-agents]'`.
"""

import asyncio
import json
import tempfile
from typing import Any

from agents import Agent, Model, ModelResponse, Usage, function_tool, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from holdfast.adapters.openai_agents import HoldfastSession, run

CHAPTERS = ["harbour", "storm", "island"]
written: list[str] = []


class Scripted(Model):
    """Writes the next chapter; each fills a third of the window."""

    async def get_response(
        self, system_instructions: Any, input: Any, *rest: Any, **more: Any
    ) -> ModelResponse:
        here = sum(item.get("type") == "function_call" for item in input) + 1
        used = Usage(
            requests=1, input_tokens=2_800 * here, output_tokens=200, total_tokens=2_800 * here + 200
        )
        if len(written) == len(CHAPTERS):
            said = ResponseOutputText(text="The book is done.", type="output_text", annotations=[])
            answer = ResponseOutputMessage(
                id="m", content=[said], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[answer], usage=used, response_id=None)
        name = CHAPTERS[len(written)]
        call = ResponseFunctionToolCall(
            arguments=json.dumps({"name": name}), call_id=name, name="write_chapter", type="function_call"
        )
        return ModelResponse(output=[call], usage=used, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@function_tool
def write_chapter(name: str) -> str:
    written.append(name)
    return f"{name}: 2,000 words"


async def main(project: str) -> None:
    set_tracing_disabled(True)
    agent = Agent(name="writer", model=Scripted(), tools=[write_chapter])
    session = HoldfastSession("book", project, context_window=6_000)
    ended = await run(agent, "Write a book of three chapters", session)
    while ended.paused:
        print(f"Paused after {written}: {ended.paused}")
        ended = await run(agent, "Go on with the book", session)
    print(ended.output, written)
    print(len(await session.get_items()), "items kept")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
