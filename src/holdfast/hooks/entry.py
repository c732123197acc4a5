"""`holdfast-hook AGENT EVENT`: payload on stdin, answer on stdout. Also run by its path."""

import sys


def main() -> int:
    from holdfast.hooks.program import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.dont_write_bytecode = False
    sys.path[0] = __file__.rpartition("/holdfast/hooks/")[0] or "."
    raise SystemExit(main())
