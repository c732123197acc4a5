"""At the boundary after the auto-pause level was reached: ask the agent to wrap up, or stop it there."""

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event
    from holdfast.hooks.usage import Gauge

KIND = "housekeeping"

_STOPS_AT = {"claude": "batch", "codex": "before_tool", "gemini": "before_tool", "opencode": "before_tool"}
"""Where each agent can be stopped without losing the result of a tool that ran."""


def run(event: "Event", answer: "Answer") -> None:
    gauge = event.gauge
    if gauge is None or event.is_subagent or gauge.share < event.settings.auto_pause:
        return  # a sub-agent is work in flight: it finishes
    if event.settings.on_exhaustion == "stop":
        if event.moment == _STOPS_AT[event.agent]:
            _stop(event, answer, gauge)
        elif event.moment == "prompt":
            notes.remove(event.note("stopped"))
        return
    if event.moment in ("after_tool", "prompt"):
        _advise(event, answer, gauge)


def _stop(event: "Event", answer: "Answer", gauge: "Gauge") -> None:
    answer.stop = (
        f"Holdfast: the context window is {gauge.share:.0%} full, so the run ends here. The session is "
        "recorded and a snapshot is made; a new session in this folder starts with its context. "
        "Call no more tools; say in a few sentences where the work stands."
    )
    if notes.create(event.note("stopped")):
        from holdfast.hooks import spawn

        transcript = event.text("transcript_path")
        spawn.detach(event, "settle", "exhaustion", transcript, holding=event.note(notes.SETTLING))


def _advise(event: "Event", answer: "Answer", gauge: "Gauge") -> None:
    level = "critical" if gauge.share >= event.settings.critical else "auto-pause"
    if not notes.create(event.note(f"advised-{level}")):
        return
    answer.context.append(
        f"[holdfast] The context window is {gauge.share:.0%} full ({gauge.tokens:,} of {gauge.window:,} "
        "tokens); from here on every action is recorded. Wrap up now: finish the step at hand, leave the "
        "files in a working state, and end with what is done, what is decided and why, and what comes "
        "next. Start nothing new. The next session in this folder will be given all of it."
    )
