"""The documentation as a site: built from the pages and the code, and every link leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from cli.harness import PATIENCE
from holdfast.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]


def test_the_site_is_built_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    done = subprocess.run(
        [ROOT / "scripts" / "site", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr  # zensical is told to fail on a broken link
    site = folder / "site"
    assert done.stdout == f"{site / 'index.html'}\n"
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    named = re.findall(r"\(tasks/([a-z-]+)\.md\)", (ROOT / "docs/index.md").read_text())
    assert {f"tasks/{name}.html" for name in named} <= pages
    for page in pages:
        text = (site / page).read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#?:]+)[^":]*"', text):
            if not target.startswith("/"):
                assert (site / page).parent.joinpath(target).exists(), (page, target)
    commands = (folder / "docs/reference/commands.md").read_text()
    assert [name for name in COMMANDS if f"## holdfast {name}\n" not in commands] == []
    manual = (folder / "man/holdfast.1").read_text()
    assert manual.startswith(".TH HOLDFAST 1")
    assert [name for name in COMMANDS if f'.SH "HOLDFAST {name.upper()}"' not in manual] == []
