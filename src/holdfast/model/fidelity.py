"""The fidelity report: what a context carries, what it leaves out, where the rest is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Carried:
    category: str
    carried: int
    shortened: int  # of those carried
    left_out: int
    fetch: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    characters: int
    budget: int
    categories: tuple[Carried, ...]
    redacted: int = 0

    def table(self) -> str:
        lines = [
            f"{self.characters} of {self.budget} characters used, {self.redacted} secrets taken out",
            f"{'':22}{'carried':>9}{'shortened':>11}{'left out':>10}  the rest",
        ]
        for one in self.categories:
            rest = one.fetch if one.left_out or one.shortened else ""
            row = f"{one.category:22}{one.carried:9}{one.shortened:11}{one.left_out:10}  {rest}"
            lines.append(row.rstrip())
        return "\n".join(lines) + "\n"
