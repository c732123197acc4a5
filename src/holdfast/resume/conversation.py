"""What was said: requests and their outcome, choices, findings, reviews, an earlier summary."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.base.text import one_line, sentences
from holdfast.model.gathered import Choice, Turn
from holdfast.resume import weights
from holdfast.resume.rendering import Block, Item, Setting, code, fenced, prose, quoted, ranked

# A message up to this length is carried whole or not at all; of a longer one, the opening.
_SHORT_MESSAGE = 400
_SHORTEST_LATEST = 225
_SUMMARY_SCANNED = 20_000
_SUMMARY_SENTENCES = 60


def issue(setting: Setting) -> list[Block]:
    """What the work is for, and the rules that hold for all of it."""
    found = setting.found
    title = [Item("issue", prose(found.issue, 300), weights.ISSUE)] if found.issue else []
    text = quoted(found.issue_text, max(225, int(setting.room * 0.1)))
    description = [Item("issue", text, weights.ISSUE_TEXT)] if found.issue_text else []
    rules = [Item("rules", quoted(rule, 2000), weights.PINNED) for rule in found.constraints]
    before = f"{prose(found.took_over)}; {code(f'holdfast context {found.took_over}')} prints it"
    handed = [Item("requests", before, weights.TOOK_OVER)] if found.took_over else []
    return [
        Block("The session began with the handover of", handed, bullets=False),
        Block("Issue", title, bullets=False),
        Block("Its description", description, bullets=False),
        Block("Rules that hold throughout, in the user's words", rules, between="; "),
    ]


def request(setting: Setting) -> list[Block]:
    if not setting.found.turns:
        return []
    *earlier, latest = _without_repeats(setting.found.turns)
    blocks = [Block("Latest request", [_latest(setting, latest)], bullets=False)]
    if not earlier:
        return blocks
    first, *others = [_said(setting, turn, len(earlier) - 1 - place) for place, turn in enumerate(earlier)]
    first.worth = max(first.worth, weights.FIRST_REQUEST)
    rules = [item for item, turn in zip(others, earlier[1:], strict=True) if _is_rule(turn)]
    plain = [item for item, turn in zip(others, earlier[1:], strict=True) if not _is_rule(turn)]
    return [
        *blocks,
        Block(setting.label("What the session began with", "First"), [first], bullets=False),
        Block(setting.label("Corrections and wishes, oldest first", "Corrections"), rules, between="; "),
        Block(setting.label("Also said, oldest first", "Also said"), plain, between="; "),
    ]


def _without_repeats(turns: Iterable[Turn]) -> list[Turn]:
    """Of words said twice, the newer."""
    newest = {one_line(turn.said): turn for turn in turns}
    return sorted(newest.values(), key=lambda turn: turn.index)


def _is_rule(turn: Turn) -> bool:
    return turn.constraint or turn.correction


def _latest(setting: Setting, turn: Turn) -> Item:
    share = 0.22 if setting.roomy else 0.15
    most = min(6000, max(_SHORTEST_LATEST, int(setting.room * share)), int(setting.room * 0.7))
    if setting.roomy and "\n" in turn.said:
        text = f"\n{fenced(_whole_lines(turn.said, most))}"
    else:
        text = quoted(turn.said, most)
    return Item("requests", text, weights.LATEST_REQUEST)


def _whole_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    cut = text[: most - 2]
    return cut[: max(cut.rfind("\n"), most * 3 // 4)].rstrip() + "\n…"


def _said(setting: Setting, turn: Turn, rank: int) -> Item:
    value = weights.SAID_AS_RULE if _is_rule(turn) else weights.SAID
    value *= 0.75 + weights.falling(0.25, rank, 8)
    if rank == 0:
        value = max(value, weights.PREVIOUS_REQUEST)
    item = Item("user messages", quoted(turn.said, max(_SHORT_MESSAGE, int(setting.room * 0.05))), value)
    if setting.roomy and (outcome := _outcome(setting, turn)):
        item.details = [Item("outcomes", outcome, weights.OUTCOME)]
        item.before_details = " → "
    return item


def _outcome(setting: Setting, turn: Turn) -> str:
    if not turn.reported:
        return "stopped by the user" if turn.cut_short else ""
    share = setting.room // (4 * len(setting.found.turns))
    return _told(turn.reported, max(220, min(700, share)))


def _told(text: str, most: int) -> str:
    """As many whole sentences as fit; the first is cut where it is too long by itself."""
    told = ""
    for sentence in sentences(text):
        piece = prose(sentence)
        if not piece.strip("-*_ ") or piece.endswith(":"):
            continue
        if piece[-1] not in ".!?…":
            piece += "."
        if told and len(told) + len(piece) >= most:
            break
        told = f"{told} {piece}" if told else prose(piece, most)
    return told


def decisions(setting: Setting) -> list[Block]:
    choices = (prose(_with_reason(choice), 320) for choice in reversed(setting.found.choices))
    insights = (prose(insight.text, 280) for insight in reversed(setting.found.insights))
    return [
        Block(
            setting.label("Chosen, newest first", "Chosen"),
            ranked("decisions", choices, weights.CHOICE, 10),
            between=" ",
        ),
        Block(
            setting.label("Found out, newest first", "Found out"),
            ranked("findings", insights, weights.INSIGHT, 10),
            between=" ",
        ),
    ]


def _with_reason(choice: Choice) -> str:
    return f"{choice.description}, {choice.rationale}" if choice.rationale else choice.description


def reviews(setting: Setting) -> list[Block]:
    return [
        Block(
            f"From {prose(review.reviewer, 60)}",
            ranked(
                "review comments", (quoted(comment, 240) for comment in review.comments), weights.REVIEW, 4
            ),
            between="; ",
        )
        for review in setting.found.reviews
        if not review.addressed
    ]


def earlier_summary(setting: Setting) -> list[Block]:
    if not setting.roomy:
        return []
    told = [
        prose(sentence, 300)
        for sentence in sentences(setting.found.earlier_summary[:_SUMMARY_SCANNED])
        if 40 <= len(sentence) <= 400 and not sentence.endswith(":")
    ]
    return [Block("", ranked("earlier summary", told[:_SUMMARY_SENTENCES], weights.EARLIER, 12))]
