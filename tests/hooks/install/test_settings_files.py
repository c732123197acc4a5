"""An agent's settings belong to the user: what install does, uninstall undoes to the byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import InvalidInputError
from holdfast.hooks.install import AGENTS, COMMANDS, Target, installer_for
from holdfast.hooks.install.files import backup_path
from holdfast.hooks.install.hook_settings import runs_our_program, unwrapped

FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
}
EVENTS = ("Stop", "SessionStart", "PreToolUse", "BeforeTool", "Odd")

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
own_hooks = st.fixed_dictionaries({"type": st.just("command"), "command": st.text(max_size=8)})
own_groups = st.fixed_dictionaries(
    {"hooks": st.lists(own_hooks, max_size=2)}, optional={"matcher": st.text(max_size=4)}
)
hooks = st.dictionaries(st.sampled_from(EVENTS), st.lists(own_groups, max_size=2), max_size=4)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = draw(st.dictionaries(st.text(max_size=6), values, max_size=4))
    found.pop("hooks", None)
    found.pop("statusLine", None)
    found.pop("mcpServers", None)
    if draw(st.booleans()):
        found["hooks"] = draw(hooks)
    if draw(st.booleans()):
        found["statusLine"] = {"type": "command", "command": "mine"}
    if draw(st.booleans()):
        found["mcpServers"] = {"mine": {"command": "mine"}}
    keys = draw(st.permutations(list(found)))
    return {key: found[key] for key in keys}


@st.composite
def texts(draw: st.DrawFn) -> str:
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t"]))
    text = json.dumps(draw(documents()), indent=indent, ensure_ascii=draw(st.booleans()))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff", "\n"])) + text + draw(st.sampled_from(["", "\n", "\n\n  "]))


def _install(agent: str, home: Path) -> tuple[str, ...]:
    plan = installer_for(agent).install(Target(home, {}))
    for change in plan.changes:
        change.apply()
    return plan.notes


def _uninstall(agent: str, home: Path) -> None:
    for change in installer_for(agent).uninstall(Target(home, {})).changes:
        change.apply()


def _without_ours(document: dict[str, Any]) -> dict[str, Any]:
    """What uninstalling must leave, worked out the slow and simple way."""
    kept: dict[str, Any] = {}
    for name, value in document.items():
        if name == "statusLine" and runs_our_program(value):
            kept |= {name: own} if (own := unwrapped(value)) else {}
            continue
        if name == "mcpServers":
            own = {key: server for key, server in value.items() if not runs_our_program(server)}
            kept |= {name: own} if own else {}
            continue
        kept[name] = value
    for groups in kept.get("hooks", {}).values():
        for group in groups:
            group["hooks"] = [hook for hook in group["hooks"] if not runs_our_program(hook)]
    return kept


@pytest.mark.parametrize("agent", FILES)
@given(text=texts())
def test_uninstall_undoes_install_to_the_byte(
    agent: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = home / FILES[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    path.chmod(0o640)
    _install(agent, home)
    once = path.read_bytes()
    _install(agent, home)
    assert path.read_bytes() == once
    assert path.stat().st_mode & 0o777 == 0o640
    assert backup_path(path).read_bytes() == text.encode()
    _uninstall(agent, home)
    assert path.read_bytes() == text.encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [found for found in path.parent.rglob("*") if found.is_file()] == [path]


@pytest.mark.parametrize("agent", FILES)
@given(text=texts())
def test_the_users_entries_keep_their_places(
    agent: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = home / FILES[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    before = json.loads(text.removeprefix("\ufeff"))
    _install(agent, home)
    after = json.loads(path.read_text(encoding="utf-8-sig"))
    assert [name for name in after if name in before] == list(before)
    for name, value in before.items():
        if name == "statusLine":
            assert (unwrapped(after[name]) or after[name]) == value
        elif name == "mcpServers":
            assert after[name].items() >= value.items()
        elif name != "hooks":
            assert after[name] == value
    for event, groups in before.get("hooks", {}).items():
        assert after["hooks"][event][: len(groups)] == groups


@pytest.mark.parametrize("agent", FILES)
@given(text=texts())
def test_what_the_user_changed_since_stays(
    agent: str, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    path = home / FILES[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode())
    _install(agent, home)
    changed = json.loads(path.read_text(encoding="utf-8-sig"))
    changed["added later"] = [1, 2]
    for groups in changed["hooks"].values():
        groups.insert(0, {"hooks": [{"type": "command", "command": "theirs"}]})
    path.write_text(json.dumps(changed, indent=2))
    _uninstall(agent, home)
    left = json.loads(path.read_text())
    assert "/holdfast/hooks/" not in json.dumps(left)
    assert left["added later"] == [1, 2]
    expected = _without_ours(changed)
    assert {event: [g for g in groups if g["hooks"]] for event, groups in left["hooks"].items()} == {
        event: [g for g in groups if g["hooks"]] for event, groups in expected["hooks"].items()
    }
    assert {k: v for k, v in left.items() if k != "hooks"} == {
        k: v for k, v in expected.items() if k != "hooks"
    }


@pytest.mark.parametrize("agent", FILES)
def test_a_file_that_was_not_there_is_gone_again(agent: str, tmp_path: Path) -> None:
    _install(agent, tmp_path)
    assert json.loads((tmp_path / FILES[agent]).read_text())["hooks"]
    _uninstall(agent, tmp_path)
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == []


@pytest.mark.parametrize("agent", FILES)
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{\n  "a": 1,\n  "b" 2\n}', "line 3, column 7"),
        ('{"a": [1, 2}', "line 1, column 12"),
        ('{"hooks": []}', "line 1, column 11"),
        ('{"hooks": {"Stop": {}, "SessionStart": {}}}', "line 1, column"),
        ("[]", "line 1, column 1"),
        ('{"a": 1} x', "line 1, column 10"),
        ('{"a": 01}', "line 1, column 8"),
        ('{"a": "line\nbreak"}', "line 1, column 7"),
        ('{"a": ', "line 1, column 7"),
        ("[" * 100_000, "line 1, column"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_place(
    agent: str, text: str, where: str, tmp_path: Path
) -> None:
    path = tmp_path / FILES[agent]
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=where):
        _install(agent, tmp_path)
    assert path.read_text() == text
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == [path]


def test_comments_stay_where_the_format_has_them(tmp_path: Path) -> None:
    path = tmp_path / FILES["gemini"]
    path.parent.mkdir()
    text = """{
  // how it looks
  "ui": {"theme": "dark"}, /* and no more */
  "hooks": {
    "BeforeTool": [
      {"hooks": [{"type": "command", "command": "mine"}]}, // mine first
    ],
  },
}
"""
    path.write_text(text)
    _install("gemini", tmp_path)
    installed = path.read_text()
    for comment in ("// how it looks", "/* and no more */", "// mine first"):
        assert comment in installed
    path.write_text(installed.replace("dark", "light"))
    _uninstall("gemini", tmp_path)
    assert path.read_text() == text.replace("dark", "light")


def test_comments_are_refused_where_the_agent_would_refuse_them(tmp_path: Path) -> None:
    path = tmp_path / FILES["codex"]
    path.parent.mkdir()
    path.write_text('{\n  // mine\n  "hooks": {}\n}')
    with pytest.raises(InvalidInputError, match="line 2, column 3"):
        _install("codex", tmp_path)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    path = tmp_path / FILES["claude-code"]
    path.parent.mkdir()
    path.symlink_to(real)
    _install("claude-code", tmp_path)
    assert path.is_symlink()
    assert json.loads(real.read_text())["hooks"]
    _uninstall("claude-code", tmp_path)
    assert path.is_symlink()
    assert real.read_text() == "{}"


@pytest.mark.parametrize("agent", FILES)
def test_an_older_installation_is_brought_up_to_date(agent: str, tmp_path: Path) -> None:
    _install(agent, tmp_path)
    path = tmp_path / FILES[agent]
    current = path.read_text()
    path.write_text(current.replace("/bin/python", "/old/bin/python"))
    _install(agent, tmp_path)
    assert json.loads(path.read_text()) == json.loads(current)


def test_the_users_status_line_is_kept_with_ours_below_it(tmp_path: Path) -> None:
    path = tmp_path / FILES["claude-code"]
    path.parent.mkdir()
    own = """jq -r '"mine " + .cwd' || echo "it's $HOME" """
    path.write_text(json.dumps({"statusLine": {"type": "command", "command": own, "padding": 3}}))
    notes = _install("claude-code", tmp_path)
    assert any("Holdfast's below it" in note for note in notes)
    told = json.loads(path.read_text())["statusLine"]
    assert told["padding"] == 3
    once = path.read_text()
    _install("claude-code", tmp_path)
    assert path.read_text() == once
    path.write_text(once.replace('"padding": 3', '"padding": 4'))
    _uninstall("claude-code", tmp_path)
    assert json.loads(path.read_text()) == {"statusLine": {"type": "command", "command": own, "padding": 4}}


def test_both_status_lines_get_what_the_agent_sends(tmp_path: Path) -> None:
    path = tmp_path / FILES["claude-code"]
    path.parent.mkdir()
    path.write_text('{"statusLine": {"type": "command", "command": "echo mine; wc -c"}}')
    _install("claude-code", tmp_path)
    command = json.loads(path.read_text())["statusLine"]["command"]
    counts = {"input_tokens": 150_000}
    payload = json.dumps(
        {
            "session_id": "s",
            "cwd": str(tmp_path),
            "model": {"id": "claude-opus-4-6"},
            "context_window": {"current_usage": counts, "context_window_size": 200_000},
            "cost": {"total_cost_usd": 1.234},
            "rate_limits": {"five_hour": {"used_percentage": 81.5}, "seven_day": {"used_percentage": 12}},
        }
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOLDFAST_HOME": str(tmp_path / "data")}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=payload,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, last = done.stdout.splitlines()
    assert (first, int(second)) == ("mine", len(payload))
    for words in ("75%", "150k/200k", "17k until compaction", "$1.23", "5 h limit 82%"):
        assert words in last
    assert "7 d" not in last


def test_every_agent_has_an_installer() -> None:
    for agent in AGENTS:
        assert installer_for(agent).install
        assert installer_for(agent).uninstall


OWN_PLACES = [
    ("claude-code", ".claude/skills/holdfast/skills/status/SKILL.md"),
    ("claude-code", ".claude/skills/holdfast/.mcp.json"),
    ("claude-code", ".claude/skills/holdfast/hooks/hooks.json"),
    ("codex", ".codex/skills/holdfast-status/SKILL.md"),
    ("gemini", ".gemini/commands/holdfast/status.toml"),
    ("opencode", ".config/opencode/command/holdfast-status.md"),
    ("opencode", ".config/opencode/plugin/holdfast.js"),
]


def _program(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "HOLDFAST_HOME": str(home / "data"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-P", "-m", "holdfast", *words]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("agent", "place"), OWN_PLACES)
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_file_of_the_users_at_our_place_is_set_aside_and_restored(
    agent: str, place: str, is_linked: bool, tmp_path: Path
) -> None:
    path, mine = tmp_path / place, "mine, and it calls holdfast\n"
    real = tmp_path / "dotfiles" / "file" if is_linked else path
    for one in (path, real):
        one.parent.mkdir(parents=True, exist_ok=True)
    real.write_text(mine)
    if is_linked:
        path.symlink_to(real)
    form = ["--plugin"] if agent == "claude-code" else []
    for _ in range(2):
        done = _program(tmp_path, "install", agent, *form)
        assert done.returncode == 0, done
        assert backup_path(path).read_text() == mine
        assert path.read_text() != mine
    assert _program(tmp_path, "uninstall", agent).returncode == 0
    assert (path.read_text(), path.is_symlink()) == (mine, is_linked)
    assert not backup_path(path).exists()


def test_a_dry_run_names_the_files_and_shows_the_diff_when_asked(tmp_path: Path) -> None:
    path = tmp_path / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text('{"model": "opus"}\n')
    before = sorted(tmp_path.rglob("*"))
    told = _program(tmp_path, "install", "claude-code", "--dry-run").stdout.splitlines()
    assert any(line.startswith(f"Would change {path} (lines: +") for line in told)
    assert len(told) < 20
    assert all(line.startswith(("Would create ", "Would change ")) for line in told)
    whole = _program(tmp_path, "install", "claude-code", "--dry-run", "--verbose").stdout
    assert f"--- {path}\n+++ {path}\n" in whole
    assert (sorted(tmp_path.rglob("*")), path.read_text()) == (before, '{"model": "opus"}\n')
    assert _program(tmp_path, "install", "claude-code", "--verbose").returncode == 2
    _program(tmp_path, "install", "claude-code")
    told = _program(tmp_path, "uninstall", "claude-code", "--dry-run").stdout.splitlines()
    assert any(line.startswith("Would remove ") for line in told)
    assert path.exists()


def test_what_is_set_aside_and_what_is_left_is_named(tmp_path: Path) -> None:
    path = tmp_path / ".gemini/commands/holdfast/status.toml"
    path.parent.mkdir(parents=True)
    path.write_text("# about holdfast\n")
    told = _program(tmp_path, "install", "gemini").stdout
    assert f"note: {path} was not created by Holdfast; it is kept as status.toml.holdfast-backup." in told
    path.write_text(path.read_text() + "# and mine\n")
    refused = _program(tmp_path, "install", "gemini")
    assert f"{path} was not created by Holdfast" in refused.stderr, "one copy is there already"
    told = _program(tmp_path, "uninstall", "gemini").stdout
    assert f"note: {path} is kept: it is not as Holdfast wrote it." in told
    assert path.read_text().endswith("# and mine\n")
    assert backup_path(path).read_text() == "# about holdfast\n"


@pytest.mark.parametrize(("agent", "place"), OWN_PLACES)
def test_ours_of_another_version_or_interpreter_is_known(agent: str, place: str, tmp_path: Path) -> None:
    form = ["--plugin"] if agent == "claude-code" else []
    _program(tmp_path, "install", agent, *form)
    path, record = tmp_path / place, next(tmp_path.rglob(".holdfast-installed.json"))
    path.write_text(path.read_text().replace(sys.executable, "/elsewhere/bin/python"))
    record.unlink()
    _program(tmp_path, "install", agent, *form)
    assert not backup_path(path).exists()
    assert "/elsewhere" not in path.read_text()
    other = path.read_text() + "\n"
    path.write_text(other)  # as a version with other words would have left it, recorded
    told = json.loads(record.read_text())
    name = path.relative_to(record.parent).as_posix()
    record.write_text(json.dumps({**told, name: f"sha256:{hashlib.sha256(other.encode()).hexdigest()}"}))
    assert _program(tmp_path, "uninstall", agent).returncode == 0
    assert not path.exists()
    assert [one for one in record.parent.rglob("*") if one.is_file() and "data" not in one.parts] == []


@pytest.mark.parametrize("agent", FILES)
def test_a_dangling_link_is_left_dangling(agent: str, tmp_path: Path) -> None:
    path, real = tmp_path / FILES[agent], tmp_path / "dotfiles" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(real)
    _install(agent, tmp_path)
    assert real.exists()
    _uninstall(agent, tmp_path)
    assert path.is_symlink()
    assert not real.exists()


# ── commands, tools, every agent at once ──────────────────────────────────────────────────────────

COMMAND_FILES = {
    "claude-code": ".claude/skills/holdfast/skills/{}/SKILL.md",
    "codex": ".codex/skills/holdfast-{}/SKILL.md",
    "gemini": ".gemini/commands/holdfast/{}.toml",
    "opencode": ".config/opencode/command/holdfast-{}.md",
}


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_gets_the_commands_in_its_own_format(agent: str, tmp_path: Path) -> None:
    _install(agent, tmp_path)
    for name, one in COMMANDS.items():
        text = (tmp_path / COMMAND_FILES[agent].format(name)).read_text()
        if agent == "gemini":
            text = tomllib.loads(text)["prompt"]
        else:
            assert text.startswith("---\n")
        assert f"{sys.executable} -P -m holdfast {one.arguments}" in text
    _uninstall(agent, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_every_agent_gets_the_tools(tmp_path: Path) -> None:
    for agent in AGENTS:
        _install(agent, tmp_path)
    words = [sys.executable, "-P", "-m", "holdfast", "mcp"]
    plugin = json.loads((tmp_path / ".claude/skills/holdfast/.mcp.json").read_text())
    codex = tomllib.loads((tmp_path / ".codex/config.toml").read_text())["mcp_servers"]
    gemini = json.loads((tmp_path / ".gemini/settings.json").read_text())
    for servers in (plugin["mcpServers"], codex, gemini["mcpServers"]):
        assert [servers["holdfast"]["command"], *servers["holdfast"]["args"]] == words
    opencode = (tmp_path / ".config/opencode/plugin/holdfast.js").read_text()
    assert f"const MCP = {json.dumps(words)}" in opencode


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "\ufeff",
        'model = "o3"',
        'model = "o3"\n',
        '\ufeffmodel = "o3"\r\n',
        "[mcp_servers.mine]\ncommand = 'x'\n\n",
    ],
)
def test_the_codex_settings_are_as_before_to_the_byte(text: str | None, tmp_path: Path) -> None:
    path = _codex_settings(tmp_path, text)
    _install("codex", tmp_path)
    once = path.read_bytes()
    assert "holdfast" in tomllib.loads(once.decode().removeprefix("\ufeff"))["mcp_servers"]
    _install("codex", tmp_path)
    assert path.read_bytes() == once
    _uninstall("codex", tmp_path)
    assert (path.read_bytes().decode() if path.exists() else None) == text
    assert not backup_path(path).exists()


CODEX_BEGIN, CODEX_END = "# begin: made by holdfast install\n", "# end: made by holdfast install\n"
CODEX_WROTE = (
    '\n[mcp_servers.github]\ncommand = "gh-mcp"\n\n[projects."/w/b"]\ntrust_level = "trusted"\n'
    '\n[features]\nnotes = """\n# end: made by holdfast install\n[mcp_servers.holdfast]\n"""\n'
)


def _codex_settings(home: Path, text: str | None) -> Path:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    if text is not None:
        path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("lost", ["", CODEX_BEGIN, CODEX_END])
@pytest.mark.parametrize("text", [None, "", 'model = "o3"\n', '\ufeffmodel = "o3"\r\n\r\n'])
def test_what_codex_wrote_into_our_block_stays(text: str | None, lost: str, tmp_path: Path) -> None:
    """It puts new tables before a comment that ends the file, and drops the one before a table."""
    path = _codex_settings(tmp_path, text)
    _install("codex", tmp_path)
    block = path.read_bytes().decode().removesuffix(CODEX_END)
    inside = block.replace(lost, "") if lost else block
    inside += CODEX_WROTE + (CODEX_END if lost != CODEX_END else "")
    path.write_bytes(inside.encode())
    _install("codex", tmp_path)
    assert path.read_bytes().decode() == inside
    _uninstall("codex", tmp_path)
    assert path.read_bytes().decode() == (text or "") + CODEX_WROTE
    assert backup_path(path).read_bytes().decode() == inside


def test_a_server_that_codex_wrote_anew_goes_with_its_settings(tmp_path: Path) -> None:
    path = _codex_settings(tmp_path, None)
    _install("codex", tmp_path)
    table = path.read_text().removeprefix(CODEX_BEGIN).removesuffix(CODEX_END)
    approved = '[mcp_servers.holdfast.tools.status]\napproval_mode = "approve"\n'
    changed = f"[a]\nb = nan\n\n{table}enabled = false\n# mine\n\n{approved}\n[c]\n"
    path.write_text(changed)
    _install("codex", tmp_path)
    assert path.read_text() == changed
    stale = changed.replace(sys.executable, "/elsewhere/bin/python")
    path.write_text(stale)
    _install("codex", tmp_path)
    assert path.read_text() == changed, "only the command is another one"
    _uninstall("codex", tmp_path)
    assert path.read_text() == "[a]\nb = nan\n# mine\n\n\n[c]\n"
    assert backup_path(path).read_text() == changed


@pytest.mark.parametrize("form", ["[mcp_servers]\nholdfast = {}\n", "mcp_servers.holdfast = {}\n"])
def test_a_server_of_ours_on_one_line_goes_or_is_named(form: str, tmp_path: Path) -> None:
    one = '{ command = "/x/python", args = ["-P", "-m", "holdfast", "mcp"] }'
    path = _codex_settings(tmp_path, form.replace("{}", one))
    _uninstall("codex", tmp_path)
    assert not path.exists() or "holdfast" not in path.read_text()
    text = f'mcp_servers = {{ mine = {{ command = "x" }}, holdfast = {one} }}\n'
    path.write_text(text)
    plan = installer_for("codex").uninstall(Target(tmp_path, {}))
    assert [change.note for change in plan.changes if change.path == path] == [
        f"{path} still names Holdfast's tools: remove `holdfast` from `mcp_servers`."
    ]


def test_a_server_of_the_users_in_our_block_is_kept_and_named(tmp_path: Path) -> None:
    path = _codex_settings(tmp_path, None)
    _install("codex", tmp_path)
    text = path.read_text().replace('"-m", "holdfast"', '"mine.py"')
    path.write_text(text)
    plan = installer_for("codex").uninstall(Target(tmp_path, {}))
    assert any("is kept: it is not as Holdfast wrote it" in (change.note or "") for change in plan.changes)
    _uninstall("codex", tmp_path)
    assert path.read_text() == text


def test_what_was_set_for_our_tools_in_gemini_stays(tmp_path: Path) -> None:
    _install("gemini", tmp_path)
    path = tmp_path / FILES["gemini"]
    settings = json.loads(path.read_text())
    settings["mcpServers"]["holdfast"] |= {"trust": True, "excludeTools": ["undo"]}
    changed = json.dumps(settings, indent=2) + "\n"
    path.write_text(changed)
    _install("gemini", tmp_path)
    assert path.read_text() == changed
    path.write_text(changed.replace(sys.executable, "/elsewhere/bin/python"))
    _install("gemini", tmp_path)
    assert json.loads(path.read_text()) == settings, "only the commands are others"
    _uninstall("gemini", tmp_path)
    assert not path.exists()
    assert json.loads(backup_path(path).read_text()) == settings


@pytest.mark.parametrize("text", ["mcp_servers = 5\n", "mcp_servers = {}\n"])
def test_servers_that_are_no_tables_are_told_of(text: str, tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="cannot stand beside") as caught:
        _install("codex", tmp_path)
    assert "[mcp_servers.NAME]" in (caught.value.hint or "")


@pytest.mark.parametrize("command", ["/opt/mine/holdfast-hooky.sh", "echo holdfast-hook ran >> log"])
def test_a_command_that_only_has_our_name_in_it_stays_the_users(command: str, tmp_path: Path) -> None:
    path = tmp_path / FILES["claude-code"]
    path.parent.mkdir()
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    path.write_text(text)
    _install("claude-code", tmp_path)
    assert command in path.read_text()
    _uninstall("claude-code", tmp_path)
    assert path.read_text() == text


def test_hooks_that_are_switched_off_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / FILES["claude-code"]
    path.parent.mkdir()
    for switch, is_told in (("true", True), ("false", False)):
        path.write_text(f'{{"disableAllHooks": {switch}}}')
        notes = _install("claude-code", tmp_path)
        assert any("nothing is recorded until it is off" in note for note in notes) == is_told


def test_a_server_of_that_name_that_the_user_has_stays(tmp_path: Path) -> None:
    path = tmp_path / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text("[mcp_servers.holdfast]\ncommand = 'mine'\n")
    _install("codex", tmp_path)
    assert path.read_text() == "[mcp_servers.holdfast]\ncommand = 'mine'\n"
    path.write_text("not = = toml")
    with pytest.raises(InvalidInputError, match="nvalid"):
        _install("codex", tmp_path)


def test_install_all_takes_what_is_there_and_uninstall_the_same_words(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "HOLDFAST_HOME": str(tmp_path / "data"), "PATH": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "holdfast", *words]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert "no coding agent was found" in run("install", "--all").stderr
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".gemini").mkdir()
    done = run("install", "--all")
    assert "installed for claude-code" in done.stdout
    assert "installed for gemini" in done.stdout
    assert "codex" not in done.stdout
    assert "already installed for claude-code" in run("install", "claude").stdout, "the old name"
    assert "removed from gemini" in run("uninstall", "gemini", "--user", "--settings").stdout
    assert "removed from claude-code" in run("uninstall", "--all", "--plugin").stdout
    assert "installed for gemini" in run("install", "--all", "--plugin").stdout, "each in its own form"
    assert (tmp_path / ".claude/skills/holdfast/hooks/hooks.json").exists()
    assert run("install").returncode == 2
