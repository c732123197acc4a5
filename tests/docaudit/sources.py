"""Random source files of three languages, every one of them valid, with all that makes splicing hard."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

NAMES = st.sampled_from(["alpha", "_beta", "gamma2", "délta", "x", "__init__", "get", "of"])
INDENTS = st.sampled_from(["    ", "  ", "\t", "   "])
NEWLINES = st.sampled_from(["\n", "\r\n"])
TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="ab \n\t\"'\\*/`{}$:#\r", max_size=60),
    st.sampled_from(
        [
            'ends with "quotes"',
            "ends with a backslash \\",
            '"""',
            "'''",
            "*/ done();",
            "/** nested */",
            "Args:\n    x: the x\n\nReturns:\n    all",
            "\\N{BULLET} \\x41 \\u0041 \\",
            "\ufefftext\u2028more\x85end",
            'x"""\nimport os\n"""',
            "${boom} `tick`",
            "\n\n  indented\n      more\n",
        ]
    ),
)


@dataclass(frozen=True)
class Layout:
    unit: str
    newline: str
    bom: bool

    def encode(self, lines: list[str]) -> bytes:
        text = self.newline.join(line.replace("\n", self.newline) for line in lines) + self.newline
        return (b"\xef\xbb\xbf" if self.bom else b"") + text.encode()


LAYOUTS = st.builds(Layout, INDENTS, NEWLINES, st.booleans())
Draw = st.DrawFn


@st.composite
def python_files(draw: Draw) -> bytes:
    layout = draw(LAYOUTS)
    lines = draw(
        st.sampled_from(
            [[], ["#!/usr/bin/env python"], ['"""The file."""', "import os"], ["x = (1,", "     2)"]]
        )
    )
    for _ in range(draw(st.integers(1, 4))):
        lines = [*lines, *_python_definition(draw, layout, "", 0)]
    return layout.encode(lines)


def _python_definition(draw: Draw, layout: Layout, indent: str, depth: int) -> list[str]:
    name = draw(NAMES)
    is_class = draw(st.booleans())
    lines = [f"{indent}@decorated(1)"] if draw(st.booleans()) else []
    if is_class:
        head = f"class {name}{draw(st.sampled_from(['', '()', '(object, metaclass=type)']))}:"
    else:
        parameters = draw(
            st.sampled_from(["", "self", "a, b=1", "*a, **k", "a: dict[str, int] = {1: 2}", "a=lambda: 1,"])
        )
        arrow = draw(st.sampled_from(["", " -> int", ' -> "x: y"']))
        if draw(st.booleans()):
            parameters = f"\n{indent}{layout.unit}{parameters}\n{indent}" if parameters else "\n"
        head = f"{draw(st.sampled_from(['', 'async ']))}def {name}({parameters}){arrow}:"
    if draw(st.integers(0, 4)) == 0:
        body = draw(st.sampled_from(["pass", "...", "x = 1; y = 2", "pass  # why", '"doc"', '"doc"; x = 1']))
        return [*lines, f"{indent}{head}{draw(st.sampled_from([' ', '  ', '']))}{body}"]
    lines.append(f"{indent}{head}{draw(st.sampled_from(['', '  # note: x', '   ']))}")
    return [*lines, *_python_body(draw, layout, indent + layout.unit, depth, is_class)]


def _python_body(draw: Draw, layout: Layout, indent: str, depth: int, is_class: bool) -> list[str]:
    lines = [*draw(st.sampled_from([[], [f"{indent}# first"], [""], ["# out of line", ""]]))]
    documentation = draw(
        st.sampled_from(
            [
                None,
                None,
                '"""Says."""',
                f'"""Says.\n\n{indent}More.\n{indent}"""',
                f"'''\n{indent}Below.\n{indent}'''",
                'r"""Raw \\d."""',
                '"one" "two"',
                "u'single'",
            ]
        )
    )
    if documentation is not None:
        lines.append(f"{indent}{documentation}{draw(st.sampled_from(['', '  # after', ' ; z = 1']))}")
    statements = draw(
        st.lists(
            st.sampled_from(
                [
                    ["pass"],
                    ["value = 'é'  # \u2603"],
                    ["if 1:", f"{layout.unit}pass", "else:", f"{layout.unit}pass"],
                    ['f"{1}"'],
                    ['text = """', "not: documentation", '"""'],
                    ["try:", f"{layout.unit}pass", "finally:", f"{layout.unit}pass"],
                ]
            ),
            min_size=1,
            max_size=3,
        )
    )
    for statement in statements:
        raw = statement[0].startswith("text")
        lines += [line if raw and at else f"{indent}{line}" for at, line in enumerate(statement)]
    if depth < 2 and draw(st.booleans()):
        lines += _python_definition(draw, layout, indent, depth + 1)
    if is_class and draw(st.booleans()):
        lines.append(f"{indent}attribute: int = 1")
    return lines


@st.composite
def javascript_files(draw: Draw, *, typed: bool) -> bytes:
    layout = draw(LAYOUTS)
    lines = [*draw(st.sampled_from([[], ["'use strict';"], ["/** @file About. */", ""], ["// hello"]]))]
    for _ in range(draw(st.integers(1, 4))):
        lines += _javascript_member(draw, layout, typed)
    if draw(st.booleans()):
        lines.append(draw(st.sampled_from(["const z = 1; function last() {}", "var q = 1"])))
    return layout.encode(lines)


def _comment(draw: Draw, indent: str) -> list[str]:
    return draw(
        st.sampled_from(
            [
                [],
                [],
                [f"{indent}/** Says. */"],
                [f"{indent}/**", f"{indent} * Says.", f"{indent} * @returns x", f"{indent} */"],
                [f"{indent}// not documentation"],
                [f"{indent}/* nor this */"],
                [f"{indent}/** Says. */", f"{indent}// and a note", ""],
            ]
        )
    )


def _javascript_member(draw: Draw, layout: Layout, typed: bool) -> list[str]:
    name = draw(NAMES)
    of_type = ": number" if typed else ""
    kind = draw(st.sampled_from(["function", "arrow", "class", "class", "assigned", "plain"]))
    export = draw(st.sampled_from(["", "export "])) if kind in ("function", "arrow", "class") else ""
    unit = layout.unit
    if kind == "function":
        start = draw(st.sampled_from(["function ", "async function ", "function* "]))
        body = draw(
            st.sampled_from([["{}"], ["{", f"{unit}if (a) {{ return 1 }}", f"{unit}return `${{a}}`", "}"]])
        )
        return [*_comment(draw, ""), f"{export}{start}{name}(a{of_type}) {body[0]}", *body[1:]]
    if kind == "arrow":
        end = draw(st.sampled_from([";", "", ", other = 2;"]))
        return [*_comment(draw, ""), f"{export}const {name} = (a{of_type}) => a + 1{end}"]
    if kind == "assigned":
        return [*_comment(draw, ""), f"exports.{name} = function (a) {{ return /x*\\//.test(a) }};"]
    if kind == "plain":
        return [
            draw(
                st.sampled_from(
                    ["let r = /a\\/*b/;", "if (r) { r = 1 }", "", "label: for (;;) { break label }"]
                )
            )
        ]
    lines = [*_comment(draw, "")]
    if typed and draw(st.booleans()):
        lines.append("@decorated()")
    lines.append(f"{export}class {name} {{")
    for _ in range(draw(st.integers(0, 3))):
        lines += _comment(draw, unit)
        lines.append(unit + _class_member(draw, typed))
    return [*lines, "}"]


def _class_member(draw: Draw, typed: bool) -> str:
    name = draw(NAMES)
    plain = [
        f"{name}(a) {{ return a }}",
        f"static async {name}() {{}}",
        f"#{name}() {{}}",
        f"get {name}() {{ return 1 }} set {name}(v) {{}}",
        f"{name} = () => 1;",
        "constructor() { this.a = 1 }",
        f"'{name} quoted'() {{}}",
        f"*{name}() {{ yield 1 }}",
        "count = 1;",
    ]
    more = [
        f"private {name}<T>(a: T, b?: string): T {{ return a }}",
        f"@decorated() public {name}(): void {{}}",
        f"readonly {name} = (a: number): number => a;",
        f"{name}(a: string): void; {name}(a: any): void {{}}",
    ]
    return draw(st.sampled_from([*plain, *more] if typed else plain))
