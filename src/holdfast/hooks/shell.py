"""Read a shell command line as far as a guard needs it: which programs run, on what, and where output goes.

No shell: nothing is run or looked up. Quotes, escapes, substitutions, here-documents, brace lists and plain
variables set on the same line are followed, since that is how harm is disguised, mostly by accident.
"""

_SEPARATORS = (";", "&", "|", "\n", "(", ")")
_BLANK = " \t\r"
DYNAMIC = "\x00"
"""Stands in a word for text that only the shell will know."""
_ONE_OF, _OR, _END = "\x02", "\x03", "\x04"
"""Around and between the values that a loop's variable takes in turn."""


class Simple:
    """One program with its words; `after` is the program whose output it reads, if it is in a pipe."""

    __slots__ = ("after", "fetches", "folder", "reads", "words", "writes")

    def __init__(self, words: list[str], writes: list[str], reads: list[str], after: "Simple | None") -> None:
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


def parse(line: str, cwd: str = "") -> list[Simple]:
    """All programs of the line in order, those inside of substitutions before the one they are for."""
    reader = _Reader(line)
    if cwd:
        reader.variables["PWD"] = cwd
    reader.read()
    return reader.found


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
        self.words: list[str] = []
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.waiting_documents: list[str] = []
        self.before: Simple | None = None
        self.folder: str | None = None
        self.around: list[str | None] = []
        """The folders that the subshells around this place began in."""
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
                self._word_or_descriptor()
        self._finish(piped=False)

    def _separator(self, sign: str) -> None:
        piped = sign == "|" and not self.line.startswith("||", self.at)
        self.at += 2 if self.line[self.at : self.at + 2] in ("&&", "||", "|&", ";;") else 1
        self._finish(piped)
        if sign == "(":
            self.around.append(self.folder)
        elif sign == ")" and self.around:  # a pattern of `case` opens none
            self.folder = self.around.pop()
        if sign == "\n":
            self._documents()

    def _finish(self, piped: bool) -> None:
        words = _without_grammar(self.words)
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            self.variables[words[1]] = _ONE_OF + _OR.join(words[3:]) + _END
        assigned = 0
        while assigned < len(words) and _is_assignment(words[assigned]):
            assigned += 1
        self._assign(words[:assigned])
        words = words[assigned:]
        if words[:1] and words[0] in _DECLARING:
            self._assign([word for word in words[1:] if _is_assignment(word)])
        if words or self.writes:
            simple = Simple(words, self.writes, self.reads, self.before)
            simple.folder = self.folder
            self.found.append(simple)
            if words[:1] and words[0] in ("cd", "pushd", "popd"):
                self._go(words)
            self.before = simple if piped else None
        elif not piped:
            self.before = None
        self.words, self.writes, self.reads = [], [], []

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
        last = self.words[-1] if self.words else ""
        if (
            last.isdigit()
            and self.line[self.at : self.at + 1] in ("<", ">")
            and self.line[start : self.at] == last
        ):
            self.words.pop()  # the descriptor of a redirection

    def _redirection(self) -> None:
        sign = self.line[self.at]
        if self.line.startswith(("<(", ">("), self.at):
            inner = self._bracketed(self.at + 1)
            self._inside(inner)
            self.words.append(DYNAMIC + ("<" if sign == "<" else ">"))
            return
        for form in ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">|", ">&", "<&", ">", "<"):
            if self.line.startswith(form, self.at):
                break
        self.at += len(form)
        while self.at < len(self.line) and self.line[self.at] in _BLANK:
            self.at += 1
        target = self._word().replace("\x01", "")
        if form in ("<<", "<<-"):
            self.waiting_documents.append(target)
        elif form == "<<<":
            self.reads.append(target)
        elif ">" in form and not target.isdigit():
            self.writes.append(target)

    def _documents(self) -> None:
        """The bodies of here-documents begin on the line after their command."""
        for mark in self.waiting_documents:
            body: list[str] = []
            while self.at < len(self.line):
                end = self.line.find("\n", self.at)
                end = end if end >= 0 else len(self.line)
                text = self.line[self.at : end]
                self.at = end + 1
                if text.strip("\t ") == mark:
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
        name = self.line[self.at + 1 : end]
        self.at = max(end, self.at + 1)
        if not name:
            if self.line[self.at : self.at + 1] in ("@", "*", "?", "!", "$", "#", "-"):
                self.at += 1
                return DYNAMIC
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
        return self._value(inner) if inner.isidentifier() else DYNAMIC

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

    def _bracketed(self, opening: int) -> str:
        depth = 0
        position = opening
        while position < len(self.line):
            sign = self.line[position]
            if sign == "\\":
                position += 1
            elif sign == "'":
                end = self.line.find("'", position + 1)
                position = end if end >= 0 else len(self.line)
            elif sign == "(":
                depth += 1
            elif sign == ")":
                depth -= 1
                if depth == 0:
                    break
            position += 1
        self.at = position + 1
        return self.line[opening + 1 : position]

    def _inside(self, inner: str) -> None:
        if self.depth == _DEEPEST:
            raise RecursionError("substitutions are nested too deeply")
        nested = _Reader(inner, self.depth + 1)
        nested.variables = dict(self.variables)
        nested.folder = self.folder
        nested.expanded = self.expanded
        nested.read()
        self.expanded = nested.expanded
        self.found += nested.found


_DECLARING = ("export", "declare", "local", "readonly", "typeset")


def _without_grammar(words: list[str]) -> list[str]:
    """The program and its words, past what only says when it runs."""
    words = [word for word in words if word not in ("{", "}", "!", "then", "do", "else")]
    while words and words[0] in ("if", "while", "until", "elif", "time", "coproc", "function"):
        skipped = 2 if words[0] == "function" or words[1:2] == ["-p"] else 1
        words = words[skipped:]
    return words


def _inside_of(before: str | None, folder: str) -> str:
    if before is None or folder.startswith(("/", "~")):
        return folder
    return f"{before}/{folder}" if len(before) < _LONGEST_PATH else DYNAMIC


_LONGEST_PATH = 4096


def _is_assignment(word: str) -> bool:
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
