"""`holdfast docs plan` and `improve` as their users see them: proposals, files, interruptions (E3 to E8)."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from findings.scripted_model import Handler, ScriptedModel, fails, hangs, says

from .harness import Place, on_terminal
from .terminal import Terminal

PROMPT = "a, e, s, r, u, c, q or ?:"
RATING = "Rating 1-4, s, u, c, q or ?:"
SHOP = '''class Shop:
    """Sells things.

    Args:
        name: What is on the sign.
    """

    def sell(self, thing):
        if thing:
            return 1
        return 0

    def open(self):
        return True
'''
APP = "export function start(port) {\r\n  return port;\r\n}\r\n"
ORDER = ["Shop.sell", "start", "Shop.open"]


def proposes(handler: Handler) -> None:
    """What was asked for, named; and by how many messages before, to tell proposals apart."""
    request = handler.script.requests[-1]
    asked = json.dumps(request["messages"])
    name = re.search(r"name='([^']+)'", asked)
    again = " Again." if "did not please" in asked else ""
    says({"documentation": f"Documents {name[1] if name else '?'}.{again}"})(handler)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(proposes).running() as running:
        yield running


@pytest.fixture
def shop(place: Place, model: ScriptedModel) -> Place:
    source = place.project / "src"
    source.mkdir()
    (source / "shop.py").write_text(SHOP)
    (source / "app.ts").write_bytes(APP.encode())
    use_model(place, model)
    return place


def use_model(place: Place, model: ScriptedModel, limit: float = 20.0) -> None:
    place.environment |= {
        "HOLDFAST_MODEL": "scripted",
        "HOLDFAST_MODEL_URL": model.base_url,
        "HOLDFAST_MODEL_TIME_LIMIT": str(limit),
        "HOLDFAST_FORBID_MODELS": "1",
    }


def improve(place: Place, *options: str) -> Terminal:
    return Terminal(place, "docs", "improve", "src", *options)


def text(place: Place, name: str = "shop.py") -> str:
    return (place.project / "src" / name).read_bytes().decode()


def state(place: Place) -> dict[str, Any]:
    [path] = place.sessions.glob("improve-session-*.json")
    return json.loads(path.read_bytes())


def outcomes(place: Place) -> dict[str, str | None]:
    return {item["name"]: item["outcome"] for item in state(place)["plan_items"]}


DOCUMENTED_SELL = SHOP.replace(
    "def sell(self, thing):\n", 'def sell(self, thing):\n        """Documents Shop.sell."""\n'
)
DOCUMENTED = DOCUMENTED_SELL.replace(
    "def open(self):\n", 'def open(self):\n        """Documents Shop.open."""\n'
)
DOCUMENTED_APP = "/** Documents start. */\r\n" + APP


def test_the_plan_ranks_what_is_missing_and_matters(shop: Place) -> None:
    ranked = shop.json("docs", "plan", "src")
    assert [item["name"] for item in ranked["items"]] == ORDER
    assert ranked["items"][0]["reason"] == "undocumented; 4 lines, 1 branch"
    assert ranked["total"] == 3
    lines = shop.ok("docs", "plan", "src", "--limit", "1").lines
    assert lines[0].split() == ["SCORE", "KIND", "ITEM", "WHERE", "WHY"]
    assert "Shop.sell" in lines[1]
    assert lines[2:] == [
        "… and 2 more; use --limit 3 to show all",
        "Ranked without ratings. To rate first, run: holdfast docs audit src",
    ]


def test_the_plan_fits_the_terminal(shop: Place) -> None:
    long = shop.project / "src" / ("deep" * 12)
    long.mkdir()
    (long / "file.py").write_text(f"def {'name' * 20}(): pass\ndef {'関数' * 30}(): pass\n")
    shop.environment["COLUMNS"] = "70"
    code, shown = on_terminal(shop, ["docs", "plan", "src"])
    assert code == 0
    assert all(len(line) + sum(one in "関数" for one in line) <= 70 for line in shown.splitlines()[:6]), shown
    assert "関数…" in shown
    assert "…" in shown
    assert "name" * 20 in shop.ok("docs", "plan", "src").out


def test_the_plan_takes_the_ratings_of_the_audit(shop: Place) -> None:
    with Terminal(shop, "docs", "audit", "src") as terminal:
        for key in "4144":  # start, Shop, Shop.sell, Shop.open
            terminal.answer(RATING, key)
        assert terminal.end() == 0
    [item] = shop.json("docs", "plan", "src")["items"]
    assert item["name"] == "Shop"
    assert item["reason"].startswith("rated 1: missing or misleading")
    assert len(shop.json("docs", "plan", "src", "--new")["items"]) == 3
    (shop.project / "src" / "shop.py").write_text(SHOP + "\n")  # what was said of it no longer holds
    assert [one["name"] for one in shop.json("docs", "plan", "src")["items"]] == ["Shop.sell", "Shop.open"]


def test_nothing_to_improve(shop: Place) -> None:
    (shop.project / "src" / "app.ts").write_text("const x = 1;\n")
    (shop.project / "src" / "shop.py").write_text('class A:\n    """Fine."""\n')
    assert "Nothing to improve" in shop.ok("docs", "plan", "src").out
    assert "Nothing to improve" in shop.ok("docs", "improve", "src", "--yes").out


def test_accepted_proposals_are_written_and_every_other_byte_is_kept(
    shop: Place, model: ScriptedModel
) -> None:
    (shop.project / "src" / "use.py").write_text("from shop import Shop\nShop().sell(1)\n")
    with improve(shop) as terminal:
        shown = terminal.wait(PROMPT)
        assert "method Shop.sell  src/shop.py:8  undocumented; 4 lines, 1 branch" in shown
        assert '"""Documents Shop.sell."""' in shown
        assert "pydantic" not in shown  # nobody else talks here
        terminal.type("a")
        terminal.answer(PROMPT, "a")
        terminal.answer(PROMPT, "a")
        assert terminal.end() == 0
        assert "3 written, 0 skipped, 0 left" in terminal.shown
    assert text(shop) == DOCUMENTED
    assert text(shop, "app.ts") == DOCUMENTED_APP
    asked = json.dumps(model.requests[0])
    assert "Google style" in asked
    assert "src/use.py:2: Shop().sell(1)" in asked
    assert "What is on the sign." in asked
    [transaction] = shop.json("tx", "list")
    assert (transaction["status"], transaction["changes"]) == ("committed", 3)
    assert transaction["id"] == state(shop)["transaction_id"]
    assert state(shop)["completed_at"] is not None
    assert state(shop)["progress"] == {"accepted": 3, "skipped": 0, "errors": 0}


def test_the_model_sees_the_imports(shop: Place, model: ScriptedModel) -> None:
    (shop.project / "load.py").write_text("import json\n\n\ndef load(text):\n    return json.loads(text)\n")
    shop.ok("docs", "improve", "load.py", "--yes")
    assert "<imports of its file>\\nimport json\\n</imports>" in json.dumps(model.requests[-1])


def test_what_was_written_is_taken_back_by_tx(shop: Place) -> None:
    shop.ok("docs", "improve", "src", "--yes")
    assert text(shop) == DOCUMENTED
    shop.ok("tx", "undo", "last")
    assert text(shop) == DOCUMENTED_SELL
    shop.ok("tx", "rollback", "last")
    assert (text(shop), text(shop, "app.ts")) == (SHOP, APP)


def test_skip_undo_help_code_and_quitting(shop: Place) -> None:
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "u")
        assert "nothing to undo" in terminal.wait(PROMPT)
        terminal.type("?")
        assert "accept: write it into the file" in terminal.wait(PROMPT)
        terminal.type("c")
        assert "def sell" in terminal.wait(PROMPT)
        terminal.type("a")
        terminal.wait("Written to src/shop.py.")
        terminal.wait(PROMPT)
        assert text(shop) == DOCUMENTED_SELL
        terminal.type("s")
        terminal.wait("Shop.open")
        terminal.answer(PROMPT, "u")
        assert "decision about start." in terminal.wait(PROMPT)
        terminal.type("u")
        assert "decision about Shop.sell." in terminal.wait(PROMPT)
        assert text(shop) == SHOP
        terminal.type("q")
        assert terminal.end() == 0
        assert "Saved: 0/3 decided. Continue with: holdfast docs improve src --resume" in terminal.shown
    assert outcomes(shop) == dict.fromkeys(ORDER)


def test_another_proposal_as_wished(shop: Place, model: ScriptedModel) -> None:
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "r")
        terminal.answer("just try again):", "shorterr\x7f, please\r")
        assert "Documents Shop.sell. Again." in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0
    assert "shorter, please" in json.dumps(model.requests[-1])


def editor(shop: Place, tmp_path: Path, content: str) -> None:
    script = tmp_path / "editor.py"
    script.write_text(f"import sys, pathlib\npathlib.Path(sys.argv[1]).write_text({content!r})\n")
    shop.environment["EDITOR"] = shlex.join([sys.executable, str(script)])


def test_an_edited_proposal_is_shown_kept_and_written(shop: Place, tmp_path: Path) -> None:
    editor(shop, tmp_path, 'Say "so".\n\nAnd more: \\d\n')
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "e")
        assert 'Say "so".' in terminal.wait(PROMPT)
        assert terminal.interrupt() == 130
    with improve(shop, "--resume") as terminal:
        assert 'Say "so".' in terminal.wait(PROMPT)
        terminal.type("a")
        terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    assert '        r"""Say "so".\n\n        And more: \\d\n        """\n' in text(shop)


SECRET = "hun" + "ter2" * 3
WITH_SECRET = f"Call it with `password={SECRET}`."


def test_a_text_with_a_secret_is_written_as_it_is(shop: Place, tmp_path: Path) -> None:
    editor(shop, tmp_path, WITH_SECRET)
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "e")
        terminal.answer(PROMPT, "a")
        terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    assert f'"""{WITH_SECRET}"""' in text(shop)
    assert SECRET not in json.dumps(state(shop))


@pytest.mark.parametrize("is_old", [False, True])
def test_after_an_interruption_no_copy_of_it_is_written(shop: Place, tmp_path: Path, is_old: bool) -> None:
    editor(shop, tmp_path, WITH_SECRET)
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "e")
        terminal.wait(PROMPT)
        assert terminal.interrupt() == 130
    assert SECRET not in json.dumps(state(shop))
    if is_old:  # as it was kept before
        saved = state(shop)
        saved["plan_items"][0]["proposal"] = "Call it with `password=[redacted:assigned-secret]`."
        del saved["plan_items"][0]["withheld"]
        [path] = shop.sessions.glob("improve-session-*.json")
        path.write_text(json.dumps(saved))
    with improve(shop, "--resume") as terminal:
        assert "the text for Shop.sell contained a secret and was not saved" in terminal.wait(PROMPT)
        terminal.type("a")
        terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    assert text(shop) == DOCUMENTED_SELL  # the model was asked again


def test_what_looks_like_a_copy_and_was_written_so_is_kept(shop: Place, tmp_path: Path) -> None:
    editor(shop, tmp_path, "Gives `[redacted:aws-key]` back.")
    with improve(shop) as terminal:
        terminal.answer(PROMPT, "e")
        terminal.wait(PROMPT)
        assert terminal.interrupt() == 130
    with improve(shop, "--resume") as terminal:
        terminal.answer(PROMPT, "a")
        terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    assert '"""Gives `[redacted:aws-key]` back."""' in text(shop)


def test_a_proposal_that_quotes_what_was_taken_out_is_none(shop: Place) -> None:
    source = shop.project / "src" / "shop.py"
    source.write_text(f"def log_in(password='{SECRET}'):\n    return password\n")
    quoting = says({"documentation": "The default is [redacted:assigned-secret]."})
    with ScriptedModel(quoting).running() as model:
        use_model(shop, model)
        told = shop.run("docs", "improve", "src/shop.py", "--yes", "--json").data
        assert SECRET not in json.dumps(model.requests)
    assert (told["accepted"], told["skipped"]) == (0, 1)
    assert "quotes a secret" in told["failures"]["src/shop.py:log_in"]
    assert "redacted" not in source.read_text()


def broken_off(terminal: Terminal, how: str) -> None:
    assert getattr(terminal, how)() == (130 if how == "interrupt" else -9)


@pytest.mark.some_of("how")
@pytest.mark.parametrize("how", ["interrupt", "kill"])
def test_broken_off_at_every_prompt_and_resumed(shop: Place, model: ScriptedModel, how: str) -> None:
    with improve(shop) as terminal:
        terminal.wait(PROMPT)
        broken_off(terminal, how)
    for done, name in enumerate(ORDER):
        with improve(shop) as terminal:
            terminal.wait(f"({done}/3 decided, started ")
            terminal.wait("Resume? [Y/n]")
            broken_off(terminal, how)
        with improve(shop) as terminal:
            terminal.answer("Resume? [Y/n]", "\r")
            assert f"Documents {name}." in terminal.wait(PROMPT)
            terminal.type("r")
            terminal.wait("just try again):")
            broken_off(terminal, how)
        with improve(shop, "--resume") as terminal:
            terminal.answer(PROMPT, "a")
            if name == ORDER[-1]:
                assert terminal.end() == 0
                continue
            terminal.wait(PROMPT)
            broken_off(terminal, how)
    assert outcomes(shop) == dict.fromkeys(ORDER, "accepted")
    assert (text(shop), text(shop, "app.ts")) == (DOCUMENTED, DOCUMENTED_APP)
    assert len(model.requests) == 3  # an interruption had nothing proposed anew


def test_interrupted_while_the_model_thinks(shop: Place) -> None:
    with ScriptedModel(hangs).running() as slow:
        use_model(shop, slow, 50.0)
        with improve(shop) as terminal:
            terminal.wait("def sell")
            assert slow.asked.wait(30)
            assert terminal.interrupt() == 130
            assert "Continue with: holdfast docs improve src" in terminal.shown
    assert text(shop) == SHOP


def test_a_model_that_fails_leaves_the_choice(shop: Place, tmp_path: Path) -> None:
    editor(shop, tmp_path, "By hand.\n")
    with ScriptedModel(fails(401)).running() as broken:
        use_model(shop, broken)
        with improve(shop) as terminal:
            assert "No proposal: model scripted: the credentials were rejected" in terminal.wait(PROMPT)
            terminal.type("a")
            assert "There is no proposal yet" in terminal.wait(PROMPT)
            terminal.type("e")
            terminal.answer(PROMPT, "a")
            terminal.wait("Written to src/shop.py.")
            terminal.answer(PROMPT, "q")
            assert terminal.end() == 0
    assert '"""By hand."""' in text(shop)


def test_without_a_model_it_says_which_setting_is_missing(shop: Place) -> None:
    del shop.environment["HOLDFAST_MODEL"], shop.environment["HOLDFAST_MODEL_URL"]
    with improve(shop) as terminal:
        assert "no model is set (HOLDFAST_MODEL)" in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0


def started(shop: Place, keys: str = "a") -> str:
    """A session in which so much was decided; its id."""
    with improve(shop, "--new") as terminal:
        for key in keys:
            terminal.answer(PROMPT, key)
        terminal.answer(PROMPT, "q")
        assert terminal.end() == 0
    return state(shop)["session_id"]


def refused(shop: Place, *options: str) -> tuple[int, str]:
    with improve(shop, *options) as terminal:
        return terminal.end(), " ".join(terminal.shown.split())


def test_a_rolled_back_session_cannot_be_resumed(shop: Place) -> None:
    name = started(shop)
    shop.ok("tx", "rollback", "last")
    code, shown = refused(shop, "--resume")
    assert code == 1
    assert f"error: cannot resume session {name}: transaction" in shown
    assert "has been rolled back" in shown
    assert "hint: `holdfast docs improve src --new`" in shown


def test_a_session_whose_branch_is_gone_cannot_be_resumed(shop: Place) -> None:
    name = started(shop)
    transaction = state(shop)["transaction_id"]
    sidecar = shop.project / ".holdfast" / "sidecar"
    shop.git(f"--git-dir={sidecar}", "update-ref", "-d", f"refs/heads/holdfast/session-{transaction}")
    code, shown = refused(shop, "--resume", name[:8])
    assert code == 1
    assert f"transaction branch not found: {transaction}" in shown
    assert f"session {name} cannot be resumed" in shown
    assert "`holdfast docs improve src --new`; `holdfast sessions list`" in shown


def test_a_damaged_session_and_one_from_the_future(shop: Place) -> None:
    name = started(shop)
    path = shop.sessions / f"improve-session-{name}.json"
    whole = path.read_text()
    path.write_text(whole.replace('"schema_version": 2', '"schema_version": 9'))
    code, shown = refused(shop, "--resume", name)
    assert code == 4
    assert "hint: upgrade holdfast" in shown
    path.write_text(whole[:-40])
    code, shown = refused(shop, "--resume", name)
    assert code == 4
    assert "is damaged and was renamed to" in shown
    assert "hint: start over with --new" in shown
    assert text(shop) == DOCUMENTED_SELL


def test_a_plan_that_is_none_is_damage(shop: Place) -> None:
    name = started(shop)
    path = shop.sessions / f"improve-session-{name}.json"
    document = json.loads(path.read_bytes())
    document["plan_items"][0]["kind"] = "poem"
    path.write_text(json.dumps(document))
    code, shown = refused(shop, "--resume", name)
    assert code == 4
    assert "hint: start over with --new" in shown


def test_a_completed_session_goes_on_in_a_transaction_that_continues_it(shop: Place) -> None:
    shop.ok("docs", "improve", "src", "--yes")
    first = state(shop)["transaction_id"]
    shop.ok("tx", "undo", "last")
    with improve(shop, "--resume") as terminal:
        shown = terminal.wait(PROMPT)
        assert "the documentation of Shop.open has been undone in the meantime; it is open again" in shown
        terminal.type("a")
        assert terminal.end() == 0
    assert text(shop) == DOCUMENTED
    assert state(shop)["continued_from"] == first
    transactions = {one["id"]: one for one in shop.json("tx", "list")}
    assert transactions[state(shop)["transaction_id"]]["continued_from"] == first
    assert {one["status"] for one in transactions.values()} == {"committed"}


def test_a_completed_session_with_nothing_open_begins_nothing(shop: Place) -> None:
    shop.ok("docs", "improve", "src", "--yes")
    with improve(shop, "--resume") as terminal:
        assert terminal.end() == 0
        assert "3 written, 0 skipped, 0 left" in terminal.shown
    assert len(shop.json("tx", "list")) == 1


def test_changed_and_deleted_files_at_a_resume(shop: Place) -> None:
    started(shop, "a")
    (shop.project / "src" / "app.ts").unlink()
    changed = DOCUMENTED_SELL.replace("return True", 'return "yes"')
    (shop.project / "src" / "shop.py").write_text(changed)
    with improve(shop, "--resume") as terminal:
        shown = terminal.wait(PROMPT)
        assert "start was dropped: src/app.ts was deleted" in shown
        assert 'return "yes"' in shown
        terminal.type("a")
        assert terminal.end() == 0
    assert text(shop) == DOCUMENTED.replace("return True", 'return "yes"')


def test_what_somebody_documented_meanwhile_drops_out(shop: Place) -> None:
    started(shop, "")
    (shop.project / "src" / "shop.py").write_text(DOCUMENTED_SELL)
    with improve(shop, "--resume") as terminal:
        assert "Shop.sell was dropped: it has been documented in the meantime" in terminal.wait(PROMPT)
        terminal.type("q")
        terminal.end()
    assert list(outcomes(shop)) == ["start", "Shop.open"]


def test_an_edit_of_the_file_while_the_proposal_is_shown_is_kept(shop: Place) -> None:
    with improve(shop) as terminal:
        terminal.wait(PROMPT)
        (shop.project / "src" / "shop.py").write_text(SHOP + "# mine\n")
        terminal.type("a")
        terminal.wait("Written to")
        terminal.answer(PROMPT, "q")
        terminal.end()
    assert text(shop) == DOCUMENTED_SELL + "# mine\n"


def test_a_file_that_does_not_parse_is_left_alone(shop: Place) -> None:
    broken = SHOP + "def oops(:\n"
    with improve(shop) as terminal:
        terminal.wait(PROMPT)
        (shop.project / "src" / "shop.py").write_text(broken)
        terminal.type("a")
        assert "cannot be parsed (line 15)" in terminal.wait(PROMPT)
        terminal.type("q")
        assert terminal.end() == 0
    assert text(shop) == broken


def test_for_machines(shop: Place) -> None:
    report = shop.json("docs", "improve", "src", "--yes", "--limit", "2")
    assert (report["accepted"], report["skipped"], report["completed"]) == (2, 0, True)
    assert [(one["name"], one["outcome"]) for one in report["items"]] == [
        ("Shop.sell", "accepted"),
        ("start", "accepted"),
    ]
    assert report["failures"] == {}
    shop.run("docs", "improve", "src").failed(2, error="there is no terminal", hint="--yes")


def test_for_machines_failures_are_told(shop: Place) -> None:
    with ScriptedModel(fails(401)).running() as broken:
        use_model(shop, broken)
        report = shop.json("docs", "improve", "src", "--yes")
    assert (report["accepted"], report["skipped"]) == (0, 3)
    assert "credentials were rejected" in report["failures"]["src/shop.py:Shop.sell"]
    assert text(shop) == SHOP


def test_style_and_tone_are_passed_on_and_kept(shop: Place, model: ScriptedModel) -> None:
    with improve(shop, "--style", "numpy", "--tone", "terse") as terminal:
        terminal.answer(PROMPT, "q")
        terminal.end()
    with improve(shop, "--resume") as terminal:
        terminal.answer(PROMPT, "s")
        terminal.answer(PROMPT, "q")
        terminal.end()
    assert state(shop)["user_preferences"] == {"style": "numpy", "tone": "terse"}
    assert all("NumPy style" in json.dumps(one) and "terse" in json.dumps(one) for one in model.requests)
    assert len(model.requests) == 2


def test_a_secret_in_the_code_is_not_shown_to_the_model(shop: Place, model: ScriptedModel) -> None:
    secret = "sk-ant-" + "a1b2c3d4e5" * 4
    (shop.project / "src" / "shop.py").write_text(f'def sell():\n    return "{secret}"\n')
    shop.ok("docs", "improve", "src", "--yes")
    assert secret not in json.dumps(model.requests)
    assert secret in text(shop)
