"""The program, which gets a SIGKILL at a point: `dying.py POINT ARGUMENT…`."""

from __future__ import annotations

import sys

from holdfast.__main__ import main
from holdfast.testing import die_at

if __name__ == "__main__":
    die_at(sys.argv.pop(1))
    main()
