"""`holdfast` and `python -m holdfast`."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:  # nothing else to load for this
        from holdfast._version import __version__

        sys.stdout.write(f"holdfast {__version__}\n")
        return
    from holdfast.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
