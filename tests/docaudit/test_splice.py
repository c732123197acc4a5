"""Documentation put into files: the new text, and every other byte as it was, in all three languages."""

from __future__ import annotations

import ast
import random
import sysconfig
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Token

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.docaudit.items import analyse
from holdfast.docaudit.languages import Source, SourceError, clean, parse
from holdfast.docaudit.splice import SpliceError, splice
from soak import repeated

from .sources import TEXTS, javascript_files, python_files

EXAMPLES = repeated(150)


def put(source: Source, name: str, text: str) -> bytes:
    """Splice, and check what must hold of every result."""
    done = splice(source, name, text)
    old, new = source.data, done.data
    assert new[: done.start] == old[: done.start]
    assert new[done.new_end :] == old[done.old_end :]
    assert not parse(new, source.language).root_node.has_error
    after = analyse(Source(source.filepath, source.language, new))
    before = analyse(source)
    assert [(one.name, one.kind) for one in after] == [(one.name, one.kind) for one in before]
    wanted = clean(text) if source.language == "python" else clean(text).replace("*\\/", "*/")
    for one, other in zip(before, after, strict=True):
        assert other.documentation == (wanted if one.name == name else one.documentation)
    newline = b"\r\n" if b"\r\n" in old else b"\n"
    added = new[done.start : done.new_end]
    assert added.count(b"\n") == added.count(newline)
    return new


class _WithoutDocstrings(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] if isinstance(first.value.value, str) else node.body
        return node


def python_code(data: bytes) -> str:
    """What Python itself makes of a file, documentation left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # strange escapes are the file's own
        return ast.dump(_WithoutDocstrings().visit(ast.parse(data)))


def javascript_code(data: bytes, language: str) -> list[tuple[object, str]]:
    """What another reader makes of it, comments and white space left out."""
    tokens = get_lexer_by_name("typescript" if language == "tsx" else language).get_tokens(data.decode())
    return [
        (kind, value.strip()) for kind, value in tokens if kind not in Comment and value.strip()
    ]  # fmt: skip


@settings(max_examples=EXAMPLES)
@given(data=python_files(), text=TEXTS, chosen=st.integers(0, 20))
def test_python(data: bytes, text: str, chosen: int) -> None:
    source = Source("a.py", "python", data)
    items = analyse(source)
    name = items[chosen % len(items)].name
    if not clean(text):
        with pytest.raises(InvalidInputError, match="empty"):
            splice(source, name, text)
        return
    new = put(source, name, text)
    assert python_code(new) == python_code(data)
    # And once more, over what is there now.
    again = put(Source("a.py", "python", new), name, "Another.")
    assert python_code(again) == python_code(data)


@pytest.mark.parametrize("language", ["javascript", "typescript", "tsx"])
@settings(max_examples=EXAMPLES)
@given(data=st.data(), text=TEXTS.filter(clean), chosen=st.integers(0, 20))
def test_javascript_and_typescript(language: str, data: st.DataObject, text: str, chosen: int) -> None:
    content = data.draw(javascript_files(typed=language != "javascript"))
    source = Source(f"a.{language}", language, content)
    items = analyse(source)
    if not items:
        return
    name = items[chosen % len(items)].name
    new = put(source, name, text)
    assert javascript_code(new, language) == javascript_code(content, language)
    again = put(Source(source.filepath, language, new), name, "Another.")
    assert javascript_code(again, language) == javascript_code(content, language)


STDLIB = Path(sysconfig.get_path("stdlib"))
REAL = ("argparse.py", "dataclasses.py", "enum.py", "textwrap.py", "typing.py", "json/decoder.py", "ast.py")


@pytest.mark.parametrize("name", REAL)
def test_real_files(name: str) -> None:
    data = (STDLIB / name).read_bytes()
    source = Source(name, "python", data)
    code = python_code(data)
    items = analyse(source)
    for item in random.sample(items, min(len(items), repeated(1 + len(items) // 8))):
        assert python_code(put(source, item.name, 'Says "so" \\ here.\n\nAnd more.')) == code


def spliced(data: bytes, name: str, text: str, language: str = "python") -> bytes:
    return put(Source(f"a.{language}", language, data), name, text)


def test_where_and_how_a_docstring_goes() -> None:
    assert spliced(b"def f(x):  # c\n    # d\n    return x\n", "f", "Says.") == (
        b'def f(x):  # c\n    """Says."""\n    # d\n    return x\n'
    )
    assert spliced(b"def f():\r\n\treturn 1\r\n", "f", "Says.\n\nMore.") == (
        b'def f():\r\n\t"""Says.\r\n\r\n\tMore.\r\n\t"""\r\n\treturn 1\r\n'
    )
    assert spliced(b"class A: pass\n", "A", "Says.") == b'class A: \n    """Says."""\n    pass\n'
    assert spliced(b"def f():\n  'old'; x = 1\n", "f", "New.") == b'def f():\n  """New."""; x = 1\n'
    assert spliced(b"def f():\n    ('old '\n     'text')\n", "f", "New.") == b'def f():\n    ("""New.""")\n'


def test_a_docstring_has_the_form_of_its_file() -> None:
    other = b"def g():\n    '''\n    Below.\n\n    More.\n    '''\n"
    assert spliced(other + b"def f():\n    pass\n", "f", "One.\n\nTwo.") == (
        other + b"def f():\n    '''\n    One.\n\n    Two.\n    '''\n    pass\n"
    )


def test_where_and_how_a_comment_goes() -> None:
    assert spliced(b"export class A {\n  @d() f() {}\n}\n", "A.f", "Says.\n\n@returns x", "typescript") == (
        b"export class A {\n  /**\n   * Says.\n   *\n   * @returns x\n   */\n  @d() f() {}\n}\n"
    )
    assert spliced(b"/** Old. */\nexport const f = () => 1;\n", "f", "New */.", "javascript") == (
        b"/** New *\\/. */\nexport const f = () => 1;\n"
    )
    for data, name, place in (
        (b"export interface A { b: 1 }\n", "A", b"export"),
        (b"enum A { B }\n", "A", b"enum"),
        (b"export default memo(function A() {})\n", "A", b"export"),
        (b"const a = {\n  b() {},\n}\n", "a.b", b"b()"),
    ):
        before, found, after = data.partition(place)
        indent = before.rpartition(b"\n")[2]
        said = spliced(data, name, "Says.", "typescript")
        assert said == before + b"/** Says. */\n" + indent + found + after


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"# caf\xe9\ndef f(): pass\n", r"a\.py is not UTF-8 \(line 1\)"),
        ("def f(): pass\n".encode("utf-16"), "UTF-16"),
        (b"def f():\n    x = '\0'\n", "NUL bytes"),
        (b"# -*- coding: latin-1 -*-\ndef f(): pass\n", "encoding latin-1"),
    ],
)
def test_what_is_not_utf8_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SourceError, match=reason):
        splice(Source("a.py", "python", data), "f", "Says.")


def test_what_does_not_parse_is_refused() -> None:
    with pytest.raises(SpliceError, match=r"cannot be parsed \(line 3\)"):
        splice(Source("a.py", "python", b"def f():\n    pass\nclass :\n"), "f", "Says.")


def test_an_item_that_is_gone() -> None:
    with pytest.raises(NotFoundError, match="no longer contains g"):
        splice(Source("a.py", "python", b"def f(): pass\n"), "g", "Says.")


@given(text=TEXTS)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_the_other_reader_sees_what_it_should() -> None:
    assert javascript_code(b"/* a */ let x", "javascript") != javascript_code(b"let y", "javascript")
    assert Token.Comment.Multiline in Comment
