"""A pydantic-ai agent that pauses when its window is full and goes on in a new one.

    python examples/adapters/with_pydantic_ai.py

The model is scripted, so that this runs without a key; put `Agent("openai:gpt-4o", …)` in its place.
Requires `pip install 'holdfast[pydantic-ai]'`.
"""

import asyncio
import tempfile

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from holdfast.adapters import PausableSession
from holdfast.adapters.pydantic_ai import run

CHAPTERS = ["harbour", "storm", "island"]
written: list[str] = []


def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Writes the next chapter; each fills a third of the window."""
    here = sum(isinstance(message, ModelResponse) for message in messages) + 1
    usage = RequestUsage(input_tokens=2_800 * here, output_tokens=200)
    if len(written) == len(CHAPTERS):
        return ModelResponse(parts=[TextPart("The book is done.")], usage=usage)
    call = ToolCallPart("write_chapter", {"name": CHAPTERS[len(written)]})
    return ModelResponse(parts=[TextPart(f"Next comes {CHAPTERS[len(written)]}."), call], usage=usage)


agent = Agent(FunctionModel(scripted))


@agent.tool_plain
def write_chapter(name: str) -> str:
    written.append(name)
    return f"{name}: 2,000 words"


async def main(project: str) -> None:
    session = PausableSession("book", project, context_window=6_000)
    ended = await run(agent, "Write a book of three chapters", session)
    while ended.paused:
        print(f"Paused after {written}: {ended.paused}")
        ended = await run(agent, "Go on with the book", session)
    print(ended.output, written)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(folder))
