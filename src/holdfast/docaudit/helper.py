"""The process that analyses a share of the files: files on standard input, items on standard output."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import orjson

from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.search import analyse_each
from holdfast.model.git import decode_path


def main() -> None:
    request = orjson.loads(sys.stdin.buffer.read())
    project = Path(os.fsdecode(decode_path(request["project"])))
    answer = [
        (filepath, told if isinstance(told, str) else [_fields(one) for one in told])
        for filepath, told in analyse_each(project, request["files"])
    ]
    sys.stdout.buffer.write(orjson.dumps(answer))


def _fields(item: CodeItem) -> tuple[object, ...]:
    return (
        item.name,
        item.kind,
        item.language,
        item.line,
        item.end_line,
        item.branches,
        item.documentation,
    )


if __name__ == "__main__":
    main()
