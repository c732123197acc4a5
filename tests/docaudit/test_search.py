"""Which files are looked at, alone and shared out to processes; style and plan of what is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.cli.docs import STYLES as OFFERED
from holdfast.docaudit import search
from holdfast.docaudit.audit import rank
from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.propose import STYLES, style_of, unwrapped
from holdfast.docaudit.search import analyse_files, find_files, scope_of


def tree(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("def f():\n    pass\n")


def test_without_git_all_but_the_usual_clutter(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "b/c.py", "b/d.txt", "node_modules/e.py", ".hidden/f.py", "venv/g.py")
    assert find_files(tmp_path, ".") == ["a.py", "b/c.py"]
    assert find_files(tmp_path, "b") == ["b/c.py"]
    assert find_files(tmp_path, "b/c.py") == ["b/c.py"]


def test_with_git_what_it_does_not_ignore(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    tree(tmp_path, "a.py", "made/b.py", "node_modules/c.py", "gone.py")
    (tmp_path / ".gitignore").write_text("made/\n")
    (tmp_path / "gone.py").unlink()
    assert find_files(tmp_path, ".") == ["a.py", "node_modules/c.py"]
    assert find_files(tmp_path, "made") == ["made/b.py"]  # asked for by name


def test_a_path_is_kept_as_it_stands_in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "src/a.py")
    monkeypatch.chdir(tmp_path / "src")
    assert scope_of(tmp_path, "a.py") == "src/a.py"
    assert scope_of(tmp_path, "..") == "."
    with pytest.raises(InvalidInputError, match="outside the project"):
        scope_of(tmp_path / "src", "..")
    with pytest.raises(NotFoundError):
        scope_of(tmp_path, "nowhere")


def test_shared_out_to_processes_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_WORTH_A_PROCESS", 10_000)
    body = 'def f{0}(a):\n    """Says \u2603 {0}."""\n    if a:\n        pass\n'
    for number in range(8):
        (tmp_path / f"m{number}.py").write_text("".join(body.format(one) for one in range(300)))
    (tmp_path / "bad.py").write_bytes(b"\xff")
    files = find_files(tmp_path, ".")
    alone, shared = analyse_files(tmp_path, files, processes=1), analyse_files(tmp_path, files, processes=2)
    assert alone == shared
    assert len(alone.items) == 2_400
    assert len(search._shares(tmp_path, files, 2)) == 2
    assert alone.skipped == {"bad.py": "bad.py is not UTF-8 (line 1)"}


def test_a_file_made_to_be_too_deep_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "deep.js").write_text("class A { x = " * 2_000 + "class {}" + " }" * 2_000)
    tree(tmp_path, "a.py")
    analysis = analyse_files(tmp_path, ["a.py", "deep.js"])
    assert [one.name for one in analysis.items if one.filepath == "a.py"] == ["f"]
    assert set(analysis.skipped) <= {"deep.js"}


def item(name: str, documentation: str | None, *, language: str = "python", branches: int = 0) -> CodeItem:
    return CodeItem("a.py", name, "function", language, 1, 9, branches, documentation)


GOOGLE = "Does.\n\nArgs:\n    a: what"


def test_the_style_is_that_of_the_project() -> None:
    items = [item("a", GOOGLE), item("b", "Plain."), item("c", "Plain."), item("d", "Plain.")]
    asked = item("new", None)
    style = style_of(items, asked)
    assert style.name == "google"
    assert style.examples[0] == f"function a:\n{GOOGLE}"
    assert style_of(items[1:], asked).name == "plain"
    assert style_of(items, asked, chosen="sphinx").name == "sphinx"
    assert style_of([], item("new", None, language="tsx")).name == "tags"
    assert set(STYLES) == set(OFFERED)
    assert style_of([item("n", "Does.\n\nParameters\n----------\na")], asked).name == "numpy"
    assert style_of([item("s", "Does.\n\n:param a: what")], asked).name == "sphinx"
    assert "usually one line" in style_of(items[1:], asked).description()


def test_the_worst_that_matters_most_comes_first() -> None:
    items = [
        item("simple", None),
        item("branchy", None, branches=9),
        item("_hidden", None, branches=9),
        item("poor", "x", branches=9),
        item("fine", "x", branches=9),
        item("unrated", "x", branches=9),
    ]
    ranked = rank(items, {"a.py": {"poor": 2, "fine": 4}})
    assert [one.name for one in ranked] == ["branchy", "poor", "simple", "_hidden"]
    assert all(0 < one.score <= 100 for one in ranked)


@pytest.mark.parametrize(
    "answer",
    [
        "Says.\n\nMore.",
        '"""Says.\n\n    More.\n    """',
        '```python\n"""Says.\n\nMore."""\n```',
        "/**\n * Says.\n *\n * More.\n */",
        "  Says.\n\nMore.\n\n",
        "```\nSays.\n\nMore.\n```",
    ],
)
def test_what_models_put_around_their_text_is_taken_off(answer: str) -> None:
    assert unwrapped(answer) == "Says.\n\nMore."
