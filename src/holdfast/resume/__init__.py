"""The resume context: what the next agent reads, within a budget.

`conversation`, `state` and `work` each turn some of what was gathered into blocks of items; `compiler`
puts those together that are worth most.
"""
