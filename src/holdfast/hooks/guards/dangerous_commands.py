"""Keep a shell command from running that destroys the system, the home folder, a disk or shared history."""

import os

from holdfast.hooks.guards import targets
from holdfast.hooks.shell import DYNAMIC, Simple, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.hooks.event import Event

KIND = "guard"

_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "ash")
_RUN_TEXT = (*_SHELLS, "su", "script", "ssh", "flatpak-spawn")
_FETCHERS = ("curl", "wget", "fetch", "aria2c")
_DECODERS = ("base64", "base32", "xxd", "openssl", "rev", "tr", "gunzip", "zcat")
_WITH_ARGUMENT = {
    "sudo": "ugpCDhRT",
    "doas": "uC",
    "env": "uSC",
    "nice": "n",
    "ionice": "cnp",
    "timeout": "sk",
    "stdbuf": "ioe",
    "xargs": "IiLlnPsdaE",
    "setsid": "",
    "nohup": "",
    "command": "",
    "builtin": "",
    "exec": "a",
    "busybox": "",
    "toybox": "",
    "chroot": "",
    "unbuffer": "",
    "strace": "epo",
    "watch": "n",
    "parallel": "j",
}
"""Programs that run another one, and their one-letter options that take a word."""
_DEEPEST = 6


def check(event: "Event") -> str | None:
    command = event.command()
    if not command:
        return None
    why = danger(command, event.text("cwd") or event.project, _branch(event))
    if why is None:
        return None
    return (
        f"holdfast: this command was not run: {why}. If it is really meant, the user can run it by hand; "
        "otherwise name the exact files or folders inside the project."
    )


def all_programs(command: str, depth: int = 0) -> "Iterator[Simple]":
    """Those of the line, and those of texts that shells and `eval` in it are given to run."""
    for simple in parse(command) if depth <= _DEEPEST else ():
        yield simple
        for text in _texts_run_by(simple):
            yield from all_programs(text, depth + 1)


def program_of(simple: Simple) -> list[str]:
    """The words from the program on that really runs."""
    return _program(simple.words)[0]


def _texts_run_by(simple: Simple) -> list[str]:
    words = program_of(simple)
    name = os.path.basename(words[0]) if words else ""
    if name == "eval":
        return [" ".join(words[1:])]
    if name not in _RUN_TEXT:
        return []
    given = _command_text(words)
    if given is not None:
        return [given]
    printed = simple.after and _printed_text(program_of(simple.after))
    return [*simple.reads, *([printed] if printed else [])]


def danger(
    command: str, cwd: str = "/work", branch: "Callable[[], str]" = lambda: "", depth: int = 0
) -> str | None:
    """Why the command may not run; None where nothing speaks against it."""
    if depth > _DEEPEST:
        return "it is nested too deep to be understood"
    if _is_fork_bomb(command):
        return "it starts itself without end (a fork bomb)"
    for simple in parse(command):
        why = _danger_of(simple, cwd, branch, depth)
        if why:
            return why
    return None


def _branch(event: "Event") -> "Callable[[], str]":
    def current() -> str:
        from holdfast.hooks import notes

        head = (notes.read(os.path.join(event.project, ".git", "HEAD"), 512) or b"").decode(
            "utf-8", "replace"
        )
        return head.strip().rpartition("refs/heads/")[2]

    return current


def _is_fork_bomb(command: str) -> bool:
    tight = "".join(command.split())
    opening = tight.find("(){")
    while opening >= 0:
        start = opening
        while start and (tight[start - 1].isalnum() or tight[start - 1] in "_:."):
            start -= 1
        name = tight[start:opening]
        body = tight[opening + 3 : tight.find("}", opening)]
        if name and f"{name}|{name}" in body and "&" in body:
            return True
        opening = tight.find("(){", opening + 1)
    return False


def _danger_of(simple: Simple, cwd: str, branch: "Callable[[], str]", depth: int) -> str | None:
    folder = targets.moved(cwd, simple.folder)
    for target in simple.writes:
        why = targets.why_not_write(target, folder)
        if why:
            return why
    words, fed_by_xargs = _program(simple.words)
    if not words:
        return None
    name = os.path.basename(words[0])
    why = _runs_text(name, words, simple, folder, branch, depth)
    if why:
        return why
    rest = words[1:]
    if fed_by_xargs and simple.after is not None:
        rest = [*rest, *simple.after.words[1:]]
    return targets.why_not_run(name, rest, folder, branch)


def _program(words: list[str]) -> tuple[list[str], bool]:
    """The words from the program on that really runs, past `sudo`, `env A=b`, `timeout 5` and their like."""
    fed = False
    while words:
        name = os.path.basename(words[0])
        if name not in _WITH_ARGUMENT:
            return words, fed
        fed = fed or name in ("xargs", "parallel")
        words = _past_options(words[1:], _WITH_ARGUMENT[name])
        if name in ("timeout", "chroot") and words:
            words = words[1:]
    return words, fed


def _past_options(words: list[str], with_argument: str) -> list[str]:
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return words[position + 1 :]
        if word.startswith("-") and len(word) > 1:
            takes = len(word) == 2 and word[1] in with_argument
            if word == "-S":  # env: the rest is one text
                return " ".join(words[position + 1 :]).split()
            position += 2 if takes else 1
        elif "=" in word and word.partition("=")[0].isidentifier():
            position += 1
        else:
            break
    return words[position:]


def _runs_text(
    name: str, words: list[str], simple: Simple, cwd: str, branch: "Callable[[], str]", depth: int
) -> str | None:
    """Shells, `eval` and interpreters that are given a program as text."""
    if name == "eval":
        return _of_text(" ".join(words[1:]), cwd, branch, depth)
    if name in _RUN_TEXT:
        return _of_shell(name, words, simple, cwd, branch, depth)
    if name in ("source", "."):
        return (
            "it runs what it downloads, unseen"
            if any(word.startswith(DYNAMIC) for word in words[1:])
            else None
        )
    if name.startswith(("python", "perl", "ruby", "node", "php")):
        return next((why for word in words[1:] if (why := targets.why_not_script(word))), None)
    return None


def _of_shell(
    name: str, words: list[str], simple: Simple, cwd: str, branch: "Callable[[], str]", depth: int
) -> str | None:
    given = _command_text(words)
    if given is not None:
        return _of_text(given, cwd, branch, depth)
    if any(word.startswith(DYNAMIC + "<") for word in words[1:]):
        return "it runs what it downloads, unseen"
    if name == "ssh":
        return None
    for body in simple.reads:
        why = _of_text(body, cwd, branch, depth)
        if why:
            return why
    return _of_pipe(simple, cwd, branch, depth) if name in _SHELLS and len(words) < 4 else None


def _command_text(words: list[str]) -> str | None:
    """The text after `-c`, also in `-lc`."""
    for position, word in enumerate(words[1:-1], start=1):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return words[position + 1]
    return None


def _printed_text(words: list[str]) -> str | None:
    if not words or os.path.basename(words[0]) not in ("echo", "printf"):
        return None
    return " ".join(words[1:]).replace("\\n", "\n")


def _of_text(text: str, cwd: str, branch: "Callable[[], str]", depth: int) -> str | None:
    if text.strip() == DYNAMIC:
        return "it runs as a command what another command prints, unseen"
    return danger(text, cwd, branch, depth + 1)


def _of_pipe(simple: Simple, cwd: str, branch: "Callable[[], str]", depth: int) -> str | None:
    """What is piped into a shell: downloads and decoded text are refused, plain text is looked at."""
    source = simple.after
    while source is not None:
        words = _program(source.words)[0]
        name = os.path.basename(words[0]) if words else ""
        if name in _FETCHERS or name in _DECODERS:
            return "it feeds downloaded or decoded text into a shell, unseen"
        text = _printed_text(words)
        if text is not None:
            return danger(text, cwd, branch, depth + 1)
        source = source.after
    return None
