"""Documentation of a project's code: rated (`audit`), ranked (`plan`), written (`improve`).

    languages ─► source ─► items ─► search          what there is, with or without documentation
                             └─► splice ◄─ literals   put one text in, keep every other byte
    ratings of an audit ─► ranking ─► improve ◄─ propose ◄─ style

Audits and improvements are item sessions: items are the tasks, ratings and outcomes the entries, and where
one stands is derived from those. Nothing here touches the terminal.
"""
