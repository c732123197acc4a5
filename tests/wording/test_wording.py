"""What the program says, word for word: a change of wording is seen in review, in these two files."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

from wording.catalogue import all_help, all_texts

HERE = Path(__file__).parent


@pytest.mark.parametrize(("name", "made"), [("texts.md", all_texts), ("help.txt", all_help)])
def test_the_wording_is_the_one_that_was_agreed(
    name: str, made: Callable[[], str], request: pytest.FixtureRequest
) -> None:
    file, now = HERE / name, made()
    if request.config.getoption("--accept-wording"):
        file.write_text(now, encoding="utf-8")
    agreed = file.read_text(encoding="utf-8")
    if now != agreed:
        changes = "\n".join(
            unified_diff(agreed.splitlines(), now.splitlines(), "agreed", "now", "", "", 0, "")
        )
        pytest.fail(f"read these changes, then accept them with `make wording`:\n{changes}", pytrace=False)
