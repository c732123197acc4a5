"""Which functions, classes and methods are found in a file, and their documentation."""

from __future__ import annotations

import pytest

from holdfast.docaudit.items import CodeItem, analyse
from holdfast.docaudit.languages import Source, language_of


def found(text: str, language: str) -> list[CodeItem]:
    return analyse(Source(f"a.{language}", language, text.encode()))


def names(text: str, language: str) -> list[tuple[str, str, str | None]]:
    return [(item.kind, item.name, item.documentation) for item in found(text, language)]


def test_python() -> None:
    text = '''\
@decorated
async def first(a):
    # why
    r"""Raw \\d."""
    def inner():
        """Not asked about."""

class Shop(Base):
    """Sells.

        Indented.
    """

    @property
    def size(self): return 1
    @size.setter
    def size(self, value): pass
    @typing.overload
    def sell(self, a: int): ...
    def sell(self, a): "joined " "text"

    def wrapped(self):
        ("""In parentheses, """
         "joined.")

    class Inner:
        def __init__(self): f"no {1} documentation"

if True:
    def guarded(): b"bytes are none"
else:
    def guarded(): pass
'''
    assert names(text, "python") == [
        ("function", "first", "Raw \\d."),
        ("class", "Shop", "Sells.\n\nIndented."),
        ("method", "Shop.size", None),
        ("method", "Shop.sell", "joined text"),
        ("method", "Shop.wrapped", "In parentheses, joined."),
        ("class", "Shop.Inner", None),
        ("method", "Shop.Inner.__init__", None),
        ("function", "guarded", None),
        ("function", "guarded#2", None),
    ]


def test_javascript() -> None:
    text = """\
/** @file About. */

/** Starts. */
export default async function () {}
/**
 * Stops.
 *
 * @param {number} a - why
 */
function* stop(a) { if (a) { for (;;) {} } }
// none
class Shop extends Base {
  /** Sells. */
  sell() {}
  #hidden() {}
  static count = 1;
  handler = () => 1;
}
const a = 1, b = () => 1;
/** Adds. */
const add = (x) => x;
module.exports.close = function () {};
export const Named = class {};
"""
    assert names(text, "javascript") == [
        ("function", "default", "Starts."),
        ("function", "stop", "Stops.\n\n@param {number} a - why"),
        ("class", "Shop", None),
        ("method", "Shop.sell", "Sells."),
        ("method", "Shop.#hidden", None),
        ("method", "Shop.handler", None),
        ("function", "add", "Adds."),
        ("function", "module.exports.close", None),
        ("class", "Named", None),
    ]
    assert {item.name: item.branches for item in found(text, "javascript")}["stop"] == 2


@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_typescript(language: str) -> None:
    text = """\
/** Finds. */
function find(a: string): void;
function find(a: number): void;
function find(a: any) { if (a) {} }
/** Decorated. */
@injectable()
export class Shop<T> {
  /** Sells. */
  @log() private sell(x: T): void {}
  open(): void;
  open(a?: number): void {}
}
export abstract class Base { abstract run(): void; }
declare function ambient(): void;
namespace Deep { export function inner() {} }
/** Has an area. */
export interface Shape { area(): number }
type Sizes = "small" | "large";
/** Colours. */
declare const enum Colour { Red }
"""
    assert names(text, language) == [
        ("function", "find", "Finds."),
        ("class", "Shop", "Decorated."),
        ("method", "Shop.sell", "Sells."),
        ("method", "Shop.open", None),
        ("class", "Base", None),
        ("method", "Base.run", None),
        ("function", "ambient", None),
        ("function", "Deep.inner", None),
        ("interface", "Shape", "Has an area."),
        ("type", "Sizes", None),
        ("enum", "Colour", "Colours."),
    ]
    assert found(text, language)[0].branches == 1


def test_members_of_objects_and_wrapped_components() -> None:
    text = """\
export const api = {
  /** Gets. */
  get(url) { if (url) {} },
  "post": async (url) => url,
  size: 1,
  deep: { close: function () {} },
} as const;
module.exports = { helper() {} };
/** A button. */
export default memo(forwardRef(function Button(props) { return props.a ? 1 : 2; }));
const Card = React.memo(() => 1);
const later = setTimeout(() => 1);
"""
    assert names(text, "tsx") == [
        ("method", "api.get", "Gets."),
        ("method", 'api."post"', None),
        ("method", "api.deep.close", None),
        ("method", "module.exports.helper", None),
        ("function", "Button", "A button."),
        ("function", "Card", None),
    ]


def test_lines_begin_with_decorators_and_what_is_public() -> None:
    [item, method, special] = found(
        "\n@d\nclass _A:\n    def f(self):\n        pass\n    def __len__(self): ...\n", "python"
    )
    assert (item.line, item.end_line, item.lines) == (2, 6, 5)
    assert (item.public, method.public, special.public) == (False, False, False)
    assert [one.public for one in found("class A {\n #x() {}\n x() {}\n x() {}\n}", "javascript")] == [
        True, False, True, True,
    ]  # fmt: skip


def test_very_deep_nesting_is_no_trouble() -> None:
    text = "def f():\n" + "".join(f"{' ' * depth}if 1:\n" for depth in range(1, 80)) + " " * 80 + "pass\n"
    assert found(text, "python")[0].branches == 79


def test_by_the_ending_of_the_name() -> None:
    assert [language_of(name) for name in ("a.py", "b/c.TSX", "d.mjs", "e.cts", "f.txt", "g", ".py/h")] == [
        "python", "tsx", "javascript", "typescript", None, None, None,
    ]  # fmt: skip
