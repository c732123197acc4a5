"""How much of what the next agent needs stands in a context: recall of facts, with no model as judge.

Each case is an invented session, cut in the middle. `holdfast context` gets the first half and a
size; the facts are what the second half shows to be needed. Beside it, what the last characters
of the talk would have kept.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from measure import Figure, scratch_folder

from handoff.cases import ALL
from handoff.facts import CATEGORIES, facts_of
from handoff.formats import SUFFIX, write_one
from handoff.story import Case, texts

TOPIC = "handoff"
_HEADLINE = "mean of all sizes"
SHARES = {"1/1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/8": 0.125}

# A little under what was reached when they were set, in percent: they are there to show a step back. What
# readers called noise counts here, too: failures that were settled (no bar), and commands that differ only in
# what is done with their output.
BARS_MEAN = {"1/1": 76.0, "1/2": 66.0, "1/4": 48.0, "1/8": 30.0}
BAR_HEADLINE = 55.0
BARS_WHOLE = {
    "files_changed": 98.0,
    "files_again": 90.0,
    "commands_again": 60.0,
    "user_words": 98.0,
    "newest_request": 98.0,
    "open_items": 98.0,
    "terms_again": 94.0,
    "names_again": 83.0,
    "values_again": 85.0,
    "decisions": 80.0,
}


@dataclass(frozen=True)
class Recall(Figure):
    """A share of facts in percent; its bar is the least it may be."""

    share: str = ""
    facts: int = 0
    tail: float = 0.0
    """The same share for the last characters of the talk."""

    @property
    def passed(self) -> bool | None:
        return None if self.bar is None else self.value >= self.bar


@dataclass(frozen=True)
class _Score:
    """Facts of one category at one size, over all cases."""

    found: int
    in_tail: int
    facts: int


def run(quick: bool) -> list[Figure]:  # noqa: ARG001 - it is quick
    with scratch_folder() as folder:
        scored = [_scored(case, folder) for case in ALL]
    figures: list[Figure] = []
    means: list[Recall] = []
    for share in SHARES:
        scores = {name: _sum([one[name, share] for one in scored]) for name in CATEGORIES}
        recalls = [_recall(name, share, score) for name, score in scores.items() if score.facts]
        means.append(_mean(share, recalls))
        figures += [*recalls, means[-1]]
    return [*figures, _headline(means)]


def _scored(case: Case, folder: Path) -> dict[tuple[str, str], _Score]:
    transcript = folder / f"{case.name}{SUFFIX[case.agent]}"
    write_one(case.agent, case, transcript)
    talk, facts = "\n".join(texts(case.before)), facts_of(case)
    scores: dict[tuple[str, str], _Score] = {}
    for share, part in SHARES.items():
        size = int(case.size * part)
        context, tail = _squeezed(context_of(transcript, size)), _squeezed(talk[-size:])
        for category, wanted in facts.items():
            needles = [_squeezed(fact) for fact in wanted]
            scores[category, share] = _Score(
                sum(needle in context for needle in needles),
                sum(needle in tail for needle in needles),
                len(needles),
            )
    return scores


def context_of(transcript: Path, size: int) -> str:
    program = Path(sys.executable).with_name("holdfast")
    done = subprocess.run(
        [program, "context", "--transcript", transcript, "--max-chars", str(size)],
        check=True,
        stdout=subprocess.PIPE,
    )
    context = done.stdout.decode()
    if len(context) > size:
        raise AssertionError(f"{transcript.name}: {len(context)} characters where {size} were allowed")
    return context


def _squeezed(text: str) -> str:
    """Line breaks and indentation are no part of a fact."""
    return " ".join(text.split())


def _sum(scores: Sequence[_Score]) -> _Score:
    return _Score(
        sum(one.found for one in scores), sum(one.in_tail for one in scores), sum(one.facts for one in scores)
    )


def _recall(category: str, share: str, score: _Score) -> Recall:
    return Recall(
        TOPIC,
        f"{category} at {share}",
        100 * score.found / score.facts,
        unit="%",
        bar=BARS_WHOLE.get(category) if share == "1/1" else None,
        share=share,
        facts=score.facts,
        tail=100 * score.in_tail / score.facts,
    )


def _mean(share: str, recalls: Sequence[Recall]) -> Recall:
    return Recall(
        TOPIC,
        f"mean at {share}",
        mean(one.value for one in recalls),
        unit="%",
        bar=BARS_MEAN[share],
        share=share,
        facts=sum(one.facts for one in recalls),
        tail=mean(one.tail for one in recalls),
    )


def _headline(means: Sequence[Recall]) -> Recall:
    return Recall(
        TOPIC,
        _HEADLINE,
        mean(one.value for one in means),
        unit="%",
        bar=BAR_HEADLINE,
        facts=means[0].facts,
        tail=mean(one.tail for one in means),
    )


def table(figures: Sequence[Figure]) -> str:
    recalls = {figure.name: figure for figure in figures if isinstance(figure, Recall)}
    headline = recalls.pop(_HEADLINE)
    names = dict.fromkeys(name.rpartition(" at ")[0] for name in recalls)
    shares = "".join(f"{share:>7}" for share in SHARES)
    lines = [
        f"{TOPIC:<54}{'context':^28}   {'last characters of the talk':^28}",
        f"{'  recall in percent, at a share of the size':<54}{shares}   {shares}  facts",
    ]
    lines += [_row(name, [recalls[f"{name} at {share}"] for share in SHARES]) for name in names]
    lines.append(_row(_HEADLINE, [headline]))
    return "\n".join(lines) + "\n"


def _row(name: str, recalls: Sequence[Recall]) -> str:
    ours = "".join(f"{one.value:7.1f}" for one in recalls).ljust(28)
    tails = "".join(f"{one.tail:7.1f}" for one in recalls).ljust(28)
    told = f"{name}: {CATEGORIES[name]}" if name in CATEGORIES else name
    missed = [f"{one.value:.1f} < {one.bar:g}" for one in recalls if one.passed is False]
    barred = any(one.passed is not None for one in recalls)
    verdict = f"MISS {', '.join(missed)}" if missed else "PASS" if barred else ""
    return f"  {told:<52}{ours}   {tails}{recalls[0].facts:7}  {verdict}".rstrip()
