"""Context windows of models, by the longest name that fits. Settings override them."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # the hook path comes through here; `typing` would cost it more than the look-up
    from collections.abc import Mapping
    from typing import TypeVar

    Number = TypeVar("Number", int, float)

DEFAULT_WINDOW = 200_000

_WINDOWS: dict[str, int] = {
    "claude": 200_000,
    "claude-opus-5": 1_000_000,
    "gpt-3.5": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 400_000,
    "o1": 200_000,
    "o3": 200_000,
    "o4": 200_000,
    "codex": 400_000,
    "gemini": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "llama-3": 128_000,
    "mistral": 128_000,
    "deepseek": 128_000,
    "qwen": 131_072,
}


def context_window(model: str | None) -> int:
    """Tokens the model can hold. A `[1m]` at the end of the name says a million, as agents write it."""
    if model and model.lower().endswith("[1m]"):
        return 1_000_000
    return by_model(_WINDOWS, model) or DEFAULT_WINDOW


def by_model(table: "Mapping[str, Number]", model: str | None) -> "Number | None":
    """The entry with the longest name that the model's begins with; a vendor before a slash is left off."""
    name = (model or "").lower().rsplit("/", 1)[-1]
    known = [prefix for prefix in table if name.startswith(prefix)]
    return table[max(known, key=len)] if known else None
