"""What each kind of knowledge is worth to the next session, in points.

An item's worth is how likely the next session needs it times how hard it would be to find
again. Open work cannot be found anywhere else; a name can be searched for. Within a kind,
worth falls with rank.
"""

from __future__ import annotations

PINNED = 40.0
LATEST_REQUEST = 40.0
ISSUE = 30.0
ISSUE_TEXT = 4.0
TOOK_OVER = 20.0
DRIFT = 20.0  # what has changed since misleads most
STOPPED_BECAUSE = 6.0
FIRST_REQUEST = 3.5
PREVIOUS_REQUEST = 3.5
SAID = 1.8
SAID_AS_RULE = 2.8  # a constraint or a correction
OUTCOME = 0.8

OPEN_TODO = 9.0
DONE_TODO = 0.5

CHOICE = 0.9
INSIGHT = 0.6

OPEN_ERROR = 4.2
SETTLED_ERROR = 3.8
LOOKUP = 0.3
ERROR_DETAIL = 0.4

BRANCH = 1.5
COMMIT = 1.2
UNCOMMITTED = 0.6

TEST_RUN = 1.6
FAILING_TEST = 2.0

EDITED_FILE = 3.0
READ_FILE = 0.7

COMMAND = 0.9
VARIANT = 0.7  # of a command that is listed already

NAME = 0.2  # met anywhere
ANY_NAME = 0.022  # however far down the list
TALKED_NAME = 0.5  # the agent itself talked about it
VALUE = 0.6
GLOSS = 0.12

LAST_STEP = 1.6
OPEN_CALL = 6.0  # what it did, nobody has seen
LAST_WORDS = 6.0  # they are where things stand
LAST_EDIT = 2.6
STEP = 0.45
NEXT_STEP = 1.4

RECORDED_SAID = 12.0  # while winding down, on purpose
RECORDED_NOTE = 4.0
RECORDED_CALL = 1.2

REVIEW = 1.5
EARLIER = 0.5


def falling(worth: float, rank: int, half: float) -> float:
    """Half the worth every ``half`` ranks."""
    return worth * 0.5 ** (rank / half)
