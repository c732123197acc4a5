"""Gemini CLI on a TypeScript front end: a component is taken apart, without new packages."""

# ruff: noqa: E501, RUF001 - what people and programs say is not broken into lines

from __future__ import annotations

from handoff.earlier import earlier_work
from handoff.filler import listing, source
from handoff.story import Asked, Case, Changed, Event, Looked, Ran, Refused, Said, Searched, Wrote, plan

_VITEST = """ RUN  v3.2.4 /srv/code/board
 ✓ src/board/Board.test.tsx (14 tests) 310ms
 ❯ src/board/useCardDrag.test.ts (5 tests | 1 failed) 88ms
   × keeps the order when a card is dropped outside 31ms
     → expected [ 'c2', 'c1' ] to deeply equal [ 'c1', 'c2' ]
 Test Files  1 failed | 1 passed (2)
      Tests  1 failed | 18 passed (19)"""
_TSC = """src/board/Column.tsx(42,18): error TS2345: Argument of type 'string' is not assignable to parameter of type 'CardId'.
src/board/Column.tsx(57,7): error TS2322: Type 'DragEvent' is not assignable to type 'PointerEvent'."""

_EARLIER = (
    ("src/menu/Menu.tsx", "Close the menu when Escape is pressed."),
    ("src/theme/colors.ts", "Dark theme: the muted text fails the contrast check."),
    ("src/api/client.ts", "Show a toast when the server answers 503."),
    ("src/board/CardTitle.tsx", "Long card titles should wrap, not be cut."),
    ("src/search/SearchBox.tsx", "Debounce the search, 250 ms."),
)

_BEFORE: tuple[Event, ...] = (
    Asked(
        "Board.tsx has 900 lines. Split the drag and drop out of it, behaviour must stay exactly as it is."
    ),
    Ran("npx vitest run src/board", " ✓ src/board/Board.test.tsx (14 tests) 305ms\n Tests  14 passed (14)"),
    Looked("src/board/Board.tsx", source("typescript", "Board", 70)),
    Searched("onDragStart|onDrop", listing("src/board", ".tsx:12: onDrop={handleDrop}", 18)),
    Said(
        "Three things live in `Board`: the layout, the drag state and the keyboard moves. I'd move the drag state into a hook `useCardDrag`."
    ),
    Asked("ok. No new dependencies please, and keep data-testid attributes, QA relies on them"),
    plan(
        doing="Move drag state into useCardDrag",
        left=(
            "Move keyboard moves into useCardKeys",
            "Split Column out of Board",
            "Delete DragContext",
            "Run the visual tests",
        ),
    ),
    Wrote(
        "src/board/useCardDrag.ts",
        "import { useReducer } from 'react';\nexport type CardId = string & { readonly brand: unique symbol };\n"
        + source("typescript", "useCardDrag", 10),
    ),
    Wrote("src/board/useCardDrag.test.ts", source("typescript", "useCardDrag test", 8)),
    Ran("npx vitest run src/board", _VITEST, 1),
    Said(
        "The reducer applies the move on `dragend` even when `dropEffect` is none; the old code looked at `lastTarget` instead."
    ),
    Changed(
        "src/board/useCardDrag.ts",
        "case 'dragend':",
        "case 'dragend':\n  if (state.lastTarget === null) return initialDragState;",
    ),
    Ran(
        "npx vitest run src/board", " ✓ src/board/useCardDrag.test.ts (5 tests) 80ms\n Tests  19 passed (19)"
    ),
    Refused(
        Changed("package.json", '"react": "19.1.0"', '"react": "19.1.0",\n "@dnd-kit/core": "6.3.1"'),
        "I said no new dependencies",
    ),
    Said("Right, I take that back and stay with the native events."),
    Wrote("src/board/Column.tsx", source("typescript", "Column", 16)),
    Changed(
        "src/board/Board.tsx",
        "function BoardColumn(",
        "import { Column } from './Column';\n// moveCard and lastTarget live in useCardDrag now",
    ),
    Ran("npx tsc --noEmit", _TSC, 2),
    Changed("src/board/Column.tsx", "onMove: (id: string", "onMove: (id: CardId"),
    Ran(
        "npx tsc --noEmit",
        "src/board/Column.tsx(57,7): error TS2322: Type 'DragEvent' is not assignable to type 'PointerEvent'.",
        2,
    ),
    Ran(
        "npx eslint src/board --max-warnings 0",
        "/srv/code/board/src/board/useCardDrag.ts\n  31:5  error  React Hook useEffect has a missing dependency: 'moveCard'  react-hooks/exhaustive-deps",
        1,
    ),
    Asked(
        "Also: the ghost image flickers in Firefox 141, see issue #5120. Can you fix that while you are there?"
    ),
    Looked("src/board/ghost.ts", source("typescript", "ghost", 14)),
    Said(
        "`setDragImage` is called with an element that is not in the document yet; Firefox then draws nothing for a frame. I'll attach `ghostLayer` before the call, since Chrome does not mind."
    ),
    plan(
        done=("Move drag state into useCardDrag", "Split Column out of Board"),
        doing="Fix the ghost image in Firefox (#5120)",
        left=("Move keyboard moves into useCardKeys", "Delete DragContext", "Run the visual tests"),
    ),
    Changed(
        "src/board/ghost.ts",
        "event.dataTransfer.setDragImage(",
        "document.body.append(ghostLayer);\nevent.dataTransfer.setDragImage(",
    ),
)

_AFTER: tuple[Event, ...] = (
    Changed(
        "src/board/Column.tsx",
        "onPointer",
        "onDragOver={(event: DragEvent) => moveCard(event)}  // CardId, lastTarget",
    ),
    Ran("npx tsc --noEmit", ""),
    Ran("npx eslint src/board --max-warnings 0", ""),
    Changed("src/board/useCardDrag.ts", "[]", "[moveCard]  // useCardDrag, initialDragState"),
    Ran("npx vitest run src/board", "19 passed"),
    Changed("src/board/ghost.ts", "append", "ghostLayer.remove()  // setDragImage, #5120"),
    Said(
        "`ghostLayer` is taken out again after `setDragImage`; #5120 is done. Now `useCardKeys`, then `DragContext` goes."
    ),
    Wrote("src/board/useCardKeys.ts", "import { moveCard } from './useCardDrag'; // CardId"),
    Ran("git rm src/board/DragContext.tsx", ""),
)

CASE = Case(
    name="web-ui",
    agent="gemini",
    folder="/srv/code/board",
    branch="split-board",
    before=(*earlier_work("typescript", "npx vitest run", _EARLIER), *_BEFORE),
    after=_AFTER,
    size=5600,
    extra={"decisions": ("I'll attach `ghostLayer` before the call", "stay with the native events")},
)
