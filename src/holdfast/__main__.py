"""`holdfast` and `python -m holdfast`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    if sys.argv[1:] == ["--version"]:  # nothing else to load for this
        from holdfast._version import __version__

        try:  # noqa: SIM105 - contextlib would cost more than all of this
            os.write(1, f"holdfast {__version__}\n".encode())
        except BrokenPipeError:
            pass
        return
    from holdfast.base.process import learn_of_children
    from holdfast.cli.main import run

    learn_of_children()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
