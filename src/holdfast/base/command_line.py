"""Read a shell command line: which programs run, on what, where output goes, and what waits for what.

The guards tell by it what may not run, the rules on test runs whose exit code counts. No shell: nothing is
run or looked up. Quotes, escapes, substitutions, here-documents, brace lists and plain variables set on the
same line are followed, since that is how harm is disguised, mostly by accident.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SEPARATORS = (";", "&", "|", "\n", "(", ")")
_BLANK = " \t\r"
DYNAMIC = "\x00"
"""Stands in a word for text that only the shell will know."""
_ONE_OF, _OR, _END = "\x02", "\x03", "\x04"
"""Around and between the values that a loop's variable takes in turn."""


class Simple:
    """One program with its words; `after` is the program whose output it reads, if it is in a pipe."""

    __slots__ = ("after", "fetches", "folder", "reads", "words", "writes", "written")

    def __init__(self, words: list[str], writes: list[str], reads: list[str], after: Simple | None) -> None:
        self.words = words
        self.writes = writes
        """Files its output goes to."""
        self.reads = reads
        """Here-documents and here-strings it is fed with."""
        self.after = after
        self.folder: str | None = None
        """Where an earlier `cd` on the line led."""
        self.fetches = False
        """Whether the line also downloads or decodes something, once a guard has looked."""
        self.written: list[str] = []
        """Its words as they stand on the line, quotes and all; here-strings and assignments, too."""


def parse(line: str, cwd: str = "", given: Sequence[str] = ()) -> list[Simple]:
    """All programs of the line in order, those inside of substitutions before the one they are for.

    Raises `RecursionError` where these are nested too deeply. `given` are the words after the text of a
    shell's `-c`: `$0`, `$1` and so on.
    """
    return _read(line, cwd, given).found


def programs(line: str, given: Sequence[str] = ()) -> list[Simple]:
    """The same; none of a line that is too long or nested too deeply to be read."""
    return _tried(line, given).found


def control_flow(line: str, depth: int = 0, given: Sequence[str] = ()) -> list[Simple | str]:
    """All programs, and the signs that join them.

    `(` and `)` stand around whatever is a group: a subshell, `{`, `if`, a loop, and what a shell or `eval` is
    given to run, which stands in the place of these; `$(` and `$)` around a substitution, which stands before
    the program it is for. What is only assigned is a program without words.
    """
    found: list[Simple | str] = []
    for one in _tried(line, given).flow:
        texts = texts_run_by(one) if isinstance(one, Simple) and depth < DEEPEST_TEXT else []
        for text, *words in texts:
            found += ["(", *control_flow(text, depth + 1, words), ")"]
        if not texts:
            found.append(one)
    return found


def _tried(line: str, given: Sequence[str]) -> _Reader:
    try:
        return _read(line if len(line) <= LONGEST_COMMAND else "", "", given)
    except RecursionError:
        return _Reader("")


def _read(line: str, cwd: str, given: Sequence[str]) -> _Reader:
    reader = _Reader(line)
    if cwd:
        reader.variables["PWD"] = cwd
    if given:
        reader.variables["0"] = given[0]
        reader.take_parameters(given[1:])
    reader.read()
    return reader


_DEEPEST = 100
"""Substitutions inside of one another: each is read once for every one around it."""


_MOST_EXPANDED = 1 << 20


class _Reader:
    def __init__(self, line: str, depth: int = 0) -> None:
        self.line = line
        self.depth = depth
        self.at = 0
        self.found: list[Simple] = []
        self.variables: dict[str, str] = {"IFS": " "}
        self.expanded = 0
        """Characters that variables stood for so far."""
        self.flow: list[Simple | str] = []
        """The same, and the signs between them."""
        self.words: list[str] = []
        self.written: list[str] = []
        """The words before anything is put in for what stands in them."""
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.waiting_documents: list[tuple[str, bool]] = []
        """How each ends, and whether tabs may stand before that."""
        self.before: Simple | None = None
        self.folder: str | None = None
        self.around: list[tuple[str | None, Simple | None]] = []
        """The folders that the subshells around this place began in, and what these are fed by."""
        self.fed_by: Simple | None = None
        """The program whose output all of this group may read."""
        self.groups: list[Simple | None] = []
        """The same of the groups around: `{`, `if` and loops."""
        self.functions: dict[str, str] = {}
        self.spent = [0]
        """Characters of functions and lists that were read once more: of calls that call each other there is
        no end."""
        self.pushed: list[str | None] = []

    def read(self) -> None:
        size = len(self.line)
        while self.at < size:
            sign = self.line[self.at]
            if sign in _BLANK:
                self.at += 1
            elif sign == "#" and (self.at == 0 or self.line[self.at - 1] in " \t\n;"):
                end = self.line.find("\n", self.at)
                self.at = end if end >= 0 else size
            elif self.line.startswith("\\\n", self.at):
                self.at += 2
            elif sign in "<>" or self.line.startswith("&>", self.at):
                self._redirection()
            elif sign in _SEPARATORS:
                self._separator(sign)
            else:
                if sign == "{" and len(self.words) == 2 and self.words[0] == "function":
                    self._keep_function()
                self._word_or_descriptor()
        self._finish(piped=False)

    def _separator(self, sign: str) -> None:
        piped = sign == "|" and not self.line.startswith("||", self.at)
        if sign == "(" and self._defines_or_lists():
            return
        whole = self.line[self.at : self.at + 2]
        whole = whole if whole in ("&&", "||", "|&", ";;") else sign
        self.at += len(whole)
        if sign == "(":
            self.around.append((self.folder, self.fed_by))
            self.fed_by = (None if self.words else self.before) or self.fed_by
        self._finish(piped)
        if sign != ")":
            self.flow.append(whole)
        elif self.around:  # a pattern of `case` opens none
            self.folder, self.fed_by = self.around.pop()
            self.flow.append(")")
        if sign == "\n":
            self._documents()

    def _defines_or_lists(self) -> bool:
        """`NAME() …` and `NAME=(…)`, which open no subshell."""
        if self.line[self.at - 1 : self.at] == "=" and self.words and self.words[-1].endswith("="):
            inner = _Reader(self._bracketed(self.at), self.depth + 1)
            if self._may_spend(len(inner.line)):
                inner.variables, inner.spent = dict(self.variables), self.spent
                inner.read()
            values = [word for one in inner.found for word in one.words]
            name = self.words.pop().rstrip("+=")
            self.written.pop()
            self.variables |= {f"{name}[@]": _one_of(values), f"{name}[*]": _one_of(values)}
            return True
        name = self.words[-1:]
        is_name = len(_without_grammar(self.words)) == 1 or self.words[:-1] == ["function"]
        if not is_name or self.line[self.at + 1 : self.at + 4].lstrip(_BLANK)[:1] != ")":
            return False
        self.at = self.line.index(")", self.at) + 1
        self.words = self.written = ["function", *name]
        self._keep_function()
        return True

    def _keep_function(self) -> None:
        """The body that begins here, for when it is called; it is read here as well."""
        start = self.at
        while start < len(self.line) and self.line[start] in " \t\r\n":
            start += 1
        closing = {"{": "}", "(": ")"}.get(self.line[start : start + 1])
        if closing is not None and self._may_spend(0):
            body = self._bracketed(start, closing)
            self.at = start
            if self._may_spend(len(body)):
                self.functions[self.words[-1]] = body

    def _call(self, words: list[str]) -> None:
        body = self.functions[words[0]]
        if self.depth < _DEEPEST and self._may_spend(len(body) + _COST_OF_CALL):
            self._inside(body, words[1:])

    def _may_spend(self, characters: int) -> bool:
        self.spent[0] += characters
        return self.spent[0] < _MOST_SPENT

    def take_parameters(self, words: Sequence[str]) -> None:
        self.variables |= {"@": _one_of(words), "*": _one_of(words)}
        self.variables |= {str(number): word for number, word in enumerate(words[:9], 1)}

    def _groups(self) -> None:
        """What feeds a group feeds all in it."""
        for word in self.words[2:] if self.words[:1] == ["function"] else self.words:
            if word in _OPEN_GROUPS:
                self.groups.append(self.fed_by)
                self.fed_by = self.before or self.fed_by
                self.flow.append("(")
            elif word not in _IN_GROUPS:
                break
        if self.words[:1] and self.words[0] in _CLOSE_GROUPS and self.groups:
            self.fed_by = self.groups.pop()
            self.flow.append(")")

    def _finish(self, piped: bool) -> None:
        self._groups()
        words = _without_grammar(self.words)
        if words[:1] in (["for"], ["select"]) and words[2:3] == ["in"]:
            self.variables[words[1]] = _one_of(words[3:])
        written = _without_grammar(self.written)
        if words[:1] and words[0] in _CLOSE_GROUPS:
            words = written = []
        assigned = 0
        while assigned < len(words) and is_assignment(words[assigned]):
            assigned += 1
        self._assign(words[:assigned])
        words = words[assigned:]
        if words[:1] and words[0] in _DECLARING:
            self._assign([word for word in words[1:] if is_assignment(word)])
        simple = Simple(words, self.writes, self.reads, self.before or self.fed_by)
        simple.folder, simple.written = self.folder, written
        if written:
            self.flow.append(simple)
        if words or self.writes:
            self.found.append(simple)
            self._take_note(simple)
            self.before = simple if piped else None
        elif piped:
            self.before = self.found[-1] if self.found else None  # of a group that ends here
        else:
            self.before = None
        self.words, self.written, self.writes, self.reads = [], [], [], []

    def _take_note(self, simple: Simple) -> None:
        """Of what changes how the rest of the line is read."""
        name, *rest = simple.words or [""]
        if name in ("cd", "pushd", "popd"):
            self._go(simple.words)
        elif name == "set" and "--" in rest:
            self.take_parameters(rest[rest.index("--") + 1 :])
        elif name == "read":
            texts = with_fed(simple, [])
            source = feeding(simple)
            found = program_of(source)[:2] if source else []
            if found[:1] == ["find"] and len(found) > 1:
                texts = [f"{found[1].rstrip('/')}/{DYNAMIC}"]
            plain = [word for word in rest if word.isidentifier()]
            self.variables |= {word: _one_of(texts) for word in plain[:1] if texts}
        elif name in self.functions:
            self._call(simple.words)

    def _assign(self, words: list[str]) -> None:
        for word in words:
            name, _, value = word.partition("=")
            self.variables[name] = value

    def _go(self, words: list[str]) -> None:
        """`cd`, `pushd` and `popd`; where one leads that only the shell knows, so is the folder."""
        if words[0] == "popd":
            self.folder = self.pushed.pop() if self.pushed else DYNAMIC
            return
        if words[0] == "pushd":
            self.pushed.append(self.folder)
        home = "~" if words[0] == "cd" else DYNAMIC
        aim = next((word for word in words[1:] if word == "-" or not word.startswith("-")), home)
        self.folder = _inside_of(self.folder, DYNAMIC if aim == "-" else aim)

    def _word_or_descriptor(self) -> None:
        start = self.at
        for word in _one_of_each(_braces(self._word())):
            if DYNAMIC not in word and " " in word and "\x01" in word:
                self.words += word.replace("\x01", "").split()
            else:
                self.words.append(word.replace("\x01", ""))
        if self.at == start:  # nothing taken: step over a sign we do not know
            self.at += 1
        self.written.append(self.line[start : self.at])
        last = self.words[-1] if self.words else ""
        if (
            last.isdigit()
            and self.line[self.at : self.at + 1] in ("<", ">")
            and self.line[start : self.at] == last
        ):
            del self.words[-1], self.written[-1]  # the descriptor of a redirection

    def _redirection(self) -> None:
        start = self.at
        sign = self.line[start]
        if self.line.startswith(("<(", ">("), start):
            inner = self._bracketed(self.at + 1)
            self._inside(inner)
            self.words.append(DYNAMIC + ("<" if sign == "<" else ">"))
            self.written.append(self.line[start : self.at])
            return
        for form in ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">|", ">&", "<&", ">", "<"):
            if self.line.startswith(form, self.at):
                break
        self.at += len(form)
        while self.at < len(self.line) and self.line[self.at] in _BLANK:
            self.at += 1
        target = self._word().replace("\x01", "")
        if form in ("<<", "<<-"):
            self.waiting_documents.append((target, form == "<<-"))
        elif form == "<<<":
            self.reads.append(target)
            self.written.append(self.line[start : self.at])
        elif ">" in form and not target.isdigit():
            self.writes.append(target)

    def _documents(self) -> None:
        """The bodies of here-documents begin on the line after their command."""
        for mark, may_be_indented in self.waiting_documents:
            body: list[str] = []
            while self.at < len(self.line):
                end = self.line.find("\n", self.at)
                end = end if end >= 0 else len(self.line)
                text = self.line[self.at : end]
                self.at = end + 1
                if (text.lstrip("\t") if may_be_indented else text) == mark:
                    break
                body.append(text)
            if self.found:
                self.found[-1].reads.append("\n".join(body))
        self.waiting_documents = []

    def _word(self) -> str:
        pieces: list[str] = []
        size = len(self.line)
        while self.at < size:
            sign = self.line[self.at]
            if sign in _BLANK or sign in _SEPARATORS or sign in "<>":
                break
            pieces.append(self._piece(sign))
        return "".join(pieces)

    def _piece(self, sign: str) -> str:
        if sign == "\\":
            self.at += 2
            escaped = self.line[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped
        if sign == "'":
            return self._until("'", self.at + 1)
        if sign == '"':
            return self._double_quoted()
        if sign == "`":
            inner = self._until("`", self.at + 1)
            self._inside(inner)
            return self._output_of(inner)
        if sign == "$":
            return self._expansion()
        self.at += 1
        return sign

    def _until(self, mark: str, start: int) -> str:
        end = self.line.find(mark, start)
        end = end if end >= 0 else len(self.line)
        self.at = end + 1
        return self.line[start:end]

    def _double_quoted(self) -> str:
        self.at += 1
        pieces: list[str] = []
        while self.at < len(self.line):
            sign = self.line[self.at]
            if sign == '"':
                self.at += 1
                break
            if sign == "\\" and self.line[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                pieces.append(self.line[self.at + 1].replace("\n", ""))
                self.at += 2
            elif sign in "$`":
                pieces.append(self._piece(sign).replace("\x01", ""))
            else:
                pieces.append(sign)
                self.at += 1
        return "".join(pieces)

    def _expansion(self) -> str:
        if self.line.startswith("$'", self.at):
            return _ansi(self._until("'", self.at + 2))
        if self.line.startswith('$"', self.at):
            self.at += 1
            return self._double_quoted()
        if self.line.startswith("$((", self.at):
            self._bracketed(self.at + 1)
            return DYNAMIC
        if self.line.startswith("$(", self.at):
            inner = self._bracketed(self.at + 1)
            self._inside(inner)
            return self._output_of(inner)
        if self.line.startswith("${", self.at):
            return self._variable(self._until("}", self.at + 2))
        end = self.at + 1
        while end < len(self.line) and (self.line[end].isalnum() or self.line[end] == "_"):
            end += 1
        if self.line[self.at + 1 : self.at + 2].isdigit():
            end = self.at + 2  # `$10` is `$1` and a nought
        name = self.line[self.at + 1 : end]
        self.at = max(end, self.at + 1)
        if not name:
            special = self.line[self.at : self.at + 1]
            if special and special in "@*?!$#-":
                self.at += 1
                return self.variables.get(special, DYNAMIC)
            return "$"
        return self._value(name)

    def _variable(self, inner: str) -> str:
        for sign in (":-", ":=", "-", "="):
            name, found, default = inner.partition(sign)
            if found and name.isidentifier():
                return self.variables.get(name, "" if name == "HOME" else default) or self._value(name)
        for name in ("HOME", "PWD"):
            if inner.startswith((f"{name}:?", f"{name}?", f"{name}%")):
                return self._value(name)
        return self._value(inner) if inner.isidentifier() else self.variables.get(inner, DYNAMIC)

    def _value(self, name: str) -> str:
        if name == "HOME" and name not in self.variables:
            return "~"
        value = self.variables.get(name)
        if value is None:
            return DYNAMIC
        if name == "PWD" and self.folder is not None:
            value = _inside_of(value, self.folder)
        self.expanded += len(value)
        if self.expanded > _MOST_EXPANDED:
            return DYNAMIC  # `X=$X$X` again and again would fill the memory
        return value + "\x01" if " " in value else value  # unquoted, it falls apart into words

    def _output_of(self, inner: str) -> str:
        """What a substitution prints, where that is plain to see: `$(echo rm)`."""
        words = inner.split()
        if words == ["pwd"]:
            return self._value("PWD")
        if words[:1] in (["echo"], ["printf"]) and not any(sign in inner for sign in "|;&$`<>\\"):
            text = " ".join(word.strip("'\"") for word in words[1:] if not word.startswith("-n"))
            return text.replace("%s", "") + ("\x01" if " " in text else "")
        return DYNAMIC

    def _bracketed(self, opening: int, closing: str = ")") -> str:
        depth = 0
        position = opening
        opener = self.line[opening]
        while position < len(self.line):
            sign = self.line[position]
            if sign == "\\":
                position += 1
            elif sign == "'":
                end = self.line.find("'", position + 1)
                position = end if end >= 0 else len(self.line)
            elif sign == opener:
                depth += 1
            elif sign == closing:
                depth -= 1
                if depth == 0:
                    break
            position += 1
        self.at = position + 1
        return self.line[opening + 1 : position]

    def _inside(self, inner: str, parameters: Sequence[str] | None = None) -> None:
        if self.depth == _DEEPEST:
            raise RecursionError("substitutions are nested too deeply")
        nested = _Reader(inner, self.depth + 1)
        nested.variables = dict(self.variables)
        nested.folder = self.folder
        nested.expanded = self.expanded
        nested.functions, nested.spent = self.functions, self.spent
        if parameters is not None:
            nested.take_parameters(parameters)
        nested.read()
        self.expanded = nested.expanded
        self.found += nested.found
        self.flow += ["$(", *nested.flow, "$)"] if parameters is None else ["(", *nested.flow, ")"]


_OPEN_GROUPS = ("{", "if", "while", "until", "for", "case", "select")
_IN_GROUPS = ("then", "do", "else", "elif", "!")
_CLOSE_GROUPS = ("}", "fi", "done", "esac")
_MOST_SPENT, _COST_OF_CALL = 1 << 17, 1_000


def _one_of(words: Sequence[str]) -> str:
    return _ONE_OF + _OR.join(words) + _END


_DECLARING = ("export", "declare", "local", "readonly", "typeset")


def _without_grammar(words: list[str]) -> list[str]:
    """The program and its words, past what only says when it runs."""
    words = [word for word in words if word not in ("{", "}", "!", "then", "do", "else")]
    start = 0
    while start < len(words) and words[start] in _BEFORE_A_PROGRAM:
        start += 2 if words[start] == "function" or words[start + 1 : start + 2] == ["-p"] else 1
    return words[start:]


_BEFORE_A_PROGRAM = ("if", "while", "until", "elif", "time", "coproc", "function")


def _inside_of(before: str | None, folder: str) -> str:
    if before is None or folder.startswith(("/", "~")):
        return folder
    return f"{before}/{folder}" if len(before) < _LONGEST_PATH else DYNAMIC


_LONGEST_PATH = 4096


def is_assignment(word: str) -> bool:
    name, found, _ = word.partition("=")
    return bool(found) and name.isidentifier()


def _ansi(text: str) -> str:
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return DYNAMIC


def _one_of_each(words: list[str]) -> list[str]:
    """A word with a loop's variable in it as the words it becomes, one a round."""
    found: list[str] = []
    for word in words:
        head, is_loop, rest = word.partition(_ONE_OF)
        values, _, tail = rest.partition(_END)
        found += [head + value + tail for value in values.split(_OR)[:64]] if is_loop else [word]
    return found


def _braces(word: str) -> list[str]:
    """`{a,b}` as the words the shell makes of it; one list is followed, nested ones are not."""
    start, end = word.find("{"), word.find("}")
    inner = word[start + 1 : end] if 0 <= start < end else ""
    if "," not in inner or word[max(0, start - 1) : start] == "$":
        return [word]
    return [word[:start] + part + word[end + 1 :] for part in inner.split(",")][:64]


# ── what a program runs ───────────────────────────────────────────────────────────────────────────

# Past `sudo` and its like, and in the texts that shells and `eval` are given.

LONGEST_COMMAND = 128 * 1024
"""Characters: what Linux hands a program as one argument. Longer ones would take too long to read."""

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish", "ash")
RUN_TEXT = (*SHELLS, "su", "script", "ssh", "flatpak-spawn")
WRAPPERS = {
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
    "flock": "wE",
    "pkexec": "",
    "unshare": "",
    "chronic": "",
    "caffeinate": "tw",
    "systemd-run": "pu",
    "run0": "u",
    "npx": "p",
    "bunx": "p",
    "uvx": "p",
}
"""Programs that run another one, and their one-letter options that take a word."""
_LONG_WITH_ARGUMENT = (
    *("--user", "--group", "--chdir", "--prompt", "--host", "--chroot", "--close-from", "--role", "--type"),
    *("--signal", "--kill-after", "--adjustment", "--class", "--classdata", "--unset", "--arg-file"),
    *(
        "--delimiter",
        "--max-args",
        "--max-lines",
        "--max-procs",
        "--jobs",
        "--timeout",
        "--property",
        "--unit",
        "--with",
        "--from",
        "--python",
        "--package",
        "--project",
        "--directory",
    ),
)
RUNNERS = {
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"), ("run",)),
    **dict.fromkeys(("bundle", "npm", "pnpm", "yarn", "mise"), ("exec", "x", "dlx")),
}
"""Programs that run another one in their environment if told so by one of these words."""
_BEFORE_THE_PROGRAM = ("timeout", "chroot", "flock")
"""Those that take a word of their own there."""
DEEPEST_TEXT = 6


def letters(words: list[str]) -> str:
    return "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))


def all_programs(command: str, depth: int = 0, given: Sequence[str] = ()) -> Iterator[Simple]:
    """Those of the line, and those of texts that shells and `eval` in it are given to run."""
    for simple in programs(command, given) if depth <= DEEPEST_TEXT else ():
        yield simple
        for text, *words in texts_run_by(simple):
            yield from all_programs(text, depth + 1, words)


def program_of(simple: Simple) -> list[str]:
    """The words from the program on that really runs."""
    return real_program(simple.words)[0]


def texts_run_by(simple: Simple) -> list[list[str]]:
    """Each with the words that it is given."""
    words = program_of(simple)
    name = os.path.basename(words[0]) if words else ""
    if name == "eval":
        return [[" ".join(words[1:])]]
    if name not in RUN_TEXT:
        return []
    given = command_text(words, name in SHELLS)
    if given:
        return [given]
    printed = simple.after and printed_text(program_of(simple.after))
    return [[text] for text in (*simple.reads, *([printed] if printed else []))]


def real_program(words: list[str]) -> tuple[list[str], bool]:
    """The words from the program on that really runs, past `sudo`, `env A=b`, `timeout 5` and their like."""
    fed = False
    while words:
        name = os.path.basename(words[0])
        if words[1:2] and words[1] in RUNNERS.get(name, ()):
            words = past_options(words[2:], "p")
            continue
        if name not in WRAPPERS:
            return words, fed
        fed = fed or name in ("xargs", "parallel")
        words = past_options(words[1:], WRAPPERS[name])
        if name in _BEFORE_THE_PROGRAM and words:
            words = words[1:]
    return words, fed


def past_options(words: list[str], with_argument: str) -> list[str]:
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return words[position + 1 :]
        if word.startswith("-") and len(word) > 1:
            takes = len(word) == 2 and word[1] in with_argument
            if word.startswith("-S") and (
                len(word) == 2 or "S" in with_argument
            ):  # env: the rest is one text
                return " ".join([word[2:], *words[position + 1 :]]).split()
            position += 2 if takes or word in _LONG_WITH_ARGUMENT else 1
        elif "=" in word and word.partition("=")[0].isidentifier():
            position += 1
        else:
            break
    return words[position:]


def with_fed(simple: Simple, words: list[str]) -> list[str]:
    """The words of a program that `xargs` starts, with those it is given as far as these are plain."""
    given = _fed_words(simple)
    mark = _replaced(simple.words)
    if not any(mark in word for word in words if mark):
        return [*words, *given]
    filled: list[str] = []
    for word in words:
        most = 1 if len(filled) > _MOST_FED**2 else _MOST_FED
        filled += [word.replace(mark, one) for one in given[:most]] if mark in word and given else [word]
    return filled


_MOST_FED = 64


def _replaced(words: list[str]) -> str:
    """What stands for a word that is given, as told by `-I`."""
    for at, word in enumerate(words):
        if word.startswith("-I"):
            return word[2:] or "".join(words[at + 1 : at + 2])
    return "{}" if "parallel" in map(os.path.basename, words) else ""


def _fed_words(simple: Simple) -> list[str]:
    words = [word for text in simple.reads for word in text.split()]
    source = feeding(simple)
    if source is not None:
        words += [word for text in source.reads for word in text.split()]
        name, *given = program_of(source) or [""]
        words += _prints(os.path.basename(name), given)
    return words


def feeding(simple: Simple) -> Simple | None:
    """The program whose output it gets, past those that hand it on."""
    source = simple.after
    while source is not None and source.after is not None:
        if os.path.basename((program_of(source) or [""])[0]) not in _HANDS_ON:
            break
        source = source.after
    return source


_HANDS_ON = ("cat", "tee", "sort", "uniq", "head", "tail", "tac", "shuf", "grep")


def _prints(name: str, given: list[str]) -> list[str]:
    if name == "printf":
        return " ".join(given[1:] or given).replace("\\0", " ").replace("\\n", " ").split()
    if name in ("echo", "ls"):  # a folder that is listed stands for what is in it
        return [word for word in given if not word.startswith("-")]
    return []


def command_text(words: list[str], is_shell: bool = True) -> list[str]:
    """The text after `-c`, also in `-lc` and, of a shell, in `-ce`; and what are `$0`, `$1` … in it."""
    for position, word in enumerate(words[1:-1], start=1):
        if not word.startswith("-") or word.startswith("--"):
            continue
        if word.endswith("c") or (is_shell and word[1:].isalpha() and "c" in word):
            rest = words[position + 1 :]
            return rest[1:] if rest[:1] == ["--"] else rest
    return []


def printed_text(words: list[str]) -> str | None:
    if not words or os.path.basename(words[0]) not in ("echo", "printf"):
        return None
    return " ".join(words[1:]).replace("\\n", "\n")
