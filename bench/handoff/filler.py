"""The bulk of a session: files, logs and listings, the same on every run."""

from __future__ import annotations

import random
from collections.abc import Sequence

_VERBS = ("load", "store", "parse", "build", "merge", "check", "render", "send", "split", "collect")
_NOUNS = ("order", "page", "token", "invoice", "layout", "record", "batch", "reply", "theme", "window")


def source(language: str, name: str, functions: int = 12) -> str:
    """A file of invented code, long enough to hide what matters."""
    rng = random.Random(f"{language} {name}")
    written = [f"{_comment(language)} {name}", ""]
    for number in range(functions):
        written += _function(language, rng, number)
    return "\n".join(written)


def _comment(language: str) -> str:
    return "#" if language in ("python", "shell") else "//"


def _function(language: str, rng: random.Random, number: int) -> list[str]:
    verb, noun = rng.choice(_VERBS), rng.choice(_NOUNS)
    limit = rng.randint(2, 900)
    if language == "python":
        return [
            f"def {verb}_{noun}_{number}(values: list[int], limit: int = {limit}) -> int:",
            f'    """{verb.capitalize()} each {noun} up to the limit … and no further."""',
            "    total = 0",
            "    for position, value in enumerate(values):",
            f"        if value > limit or position % {rng.randint(2, 9)} == 0:",
            f'            logger.debug("skipped %s of \\"{noun}\\"", position)',
            "            continue",
            f"        total += value * {rng.randint(2, 40)}",
            "    return total",
            "",
        ]
    if language == "go":
        title = f"{verb.capitalize()}{noun.capitalize()}{number}"
        return [
            f"func {title}(values []int) (int, error) {{",
            f"\ttotal, limit := 0, {limit}",
            "\tfor _, value := range values {",
            "\t\tif value > limit {",
            f'\t\t\treturn 0, fmt.Errorf("{noun} %d is over %d", value, limit)',
            "\t\t}",
            f"\t\ttotal += value * {rng.randint(2, 40)}",
            "\t}",
            "\treturn total, nil // … never a partial sum",
            "}",
            "",
        ]
    return [
        f"export function {verb}{noun.capitalize()}{number}(values: number[], limit = {limit}): number {{",
        "  let total = 0;",
        "  for (const value of values) {",
        "    if (value > limit) continue;",
        f"    total += value * {rng.randint(2, 40)};",
        "  }",
        "  return total; // … and nothing else",
        "}",
        "",
    ]


def passing(names: Sequence[str], count: int, seconds: float) -> str:
    """What pytest prints when all is well."""
    each = max(1, count // len(names))
    lines = [
        f"{name} {'.' * each} [{100 * (place + 1) // len(names):3d}%]" for place, name in enumerate(names)
    ]
    return "\n".join(["=" * 22 + " test session starts " + "=" * 22, *lines, f"{count} passed in {seconds}s"])


def log(service: str, lines: int, seed: int = 0) -> str:
    """What a service writes when nothing is wrong."""
    rng = random.Random(f"{service} {seed}")
    return "\n".join(
        f"2026-03-04T09:{number % 60:02d}:{rng.randint(0, 59):02d}Z {service}[{rng.randint(200, 999)}]: "
        f'level=info msg="{rng.choice(_VERBS)} {rng.choice(_NOUNS)}" ms={rng.randint(1, 480)} '
        f'path="/v1/{rng.choice(_NOUNS)}s?page={rng.randint(1, 9)}" status={rng.choice((200, 200, 204, 301))}'
        for number in range(lines)
    )


def listing(folder: str, suffix: str, count: int) -> str:
    rng = random.Random(f"{folder} {suffix}")
    return "\n".join(
        sorted(f"{folder}/{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}_{n}{suffix}" for n in range(count))
    )


def table(columns: Sequence[str], rows: int, seed: int = 0) -> str:
    """A data frame as it is printed."""
    rng = random.Random(f"{columns} {seed}")
    lines = ["".join(f"{name:>14}" for name in ("", *columns))]
    lines += [
        f"{number:>14}" + "".join(f"{rng.uniform(0, 5000):>14.2f}" for _ in columns) for number in range(rows)
    ]
    return "\n".join(lines)
