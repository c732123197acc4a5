"""Files that a shell command reads or writes, as far as its words show it.

Some agents have no other tools: they look with ``sed -n`` and write with a here-document.
"""

from __future__ import annotations

import re

_SCANNED = 600
_PATH = r"""(?P<{name}>(?:[\w.@~-]+/|/)*[\w.@-]+\.\w{{1,8}})(?=[\s;|&'")]|$)"""
_READ = re.compile(
    r"(?:^|[;&|]\s*)(?:cat|head|tail|nl|less|bat|sed\s+-n)\s+(?:-\S+\s+|'[^']*'\s+|\"[^\"]*\"\s+|\d\S*\s+)*"
    + _PATH.format(name="path")
)
_WRITTEN = re.compile(
    r"(?<![0-9&>])>{1,2}\s*" + _PATH.format(name="into") + r"|\btee\s+(?:-a\s+)?" + _PATH.format(name="teed")
    + r"|\bsed\s+-i\S*\s+(?:'[^']*'|\"[^\"]*\")\s+" + _PATH.format(name="changed")
)  # fmt: skip


def files_read(command: str) -> list[str]:
    return [found["path"] for found in _READ.finditer(command, 0, _SCANNED)]


def files_written(command: str) -> list[str]:
    if ">" not in command and "tee " not in command and "sed -i" not in command:
        return []
    found = _WRITTEN.finditer(command, 0, _SCANNED)
    return [path for match in found for path in match.groups() if path and not path.startswith("/tmp/")]  # noqa: S108
