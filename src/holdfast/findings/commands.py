"""Shell commands: which worked, which failed, how often."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.gathered import CommandUse

# A longer command is a script of the moment; nobody runs it again word for word.
_LONGEST = 300
_MOST_KEPT = 1500


@dataclass(slots=True)
class _Use:
    runs: int = 0
    failures: int = 0
    last_index: int = -1
    last_failed: bool = False
    purpose: str = ""


class Commands:
    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def ran(self, index: int, command: str, failed: bool, purpose: str = "") -> None:
        if not command or len(command) > _LONGEST or "\n" in command:
            return
        use = self._uses.get(command)
        if use is None:
            if len(self._uses) >= _MOST_KEPT:
                self._forget_oldest()
            use = self._uses[command] = _Use()
        use.runs += 1
        use.failures += failed
        use.last_index = index
        use.last_failed = failed
        use.purpose = purpose or use.purpose

    def _forget_oldest(self) -> None:
        by_age = sorted(
            self._uses, key=lambda command: (self._uses[command].runs > 1, self._uses[command].last_index)
        )
        for command in by_age[: _MOST_KEPT // 3]:
            del self._uses[command]

    def found(self) -> tuple[CommandUse, ...]:
        return tuple(
            CommandUse(command, use.runs, use.failures, use.last_index, use.last_failed, use.purpose)
            for command, use in self._uses.items()
        )
