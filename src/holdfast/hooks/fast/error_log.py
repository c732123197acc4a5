"""Where failures of hooks go: a bounded file that nobody has to read, never the agent's session."""

import os

from holdfast.hooks.fast import notes

_BOUND = 256 * 1024


def note(state: str, words: str) -> None:
    """Add an entry; silently nothing where even that fails, since there is nowhere left to say it."""
    try:
        path = os.path.join(state, "hook-errors.log")
        try:
            if os.stat(path).st_size > _BOUND:
                os.replace(path, path + ".1")
        except FileNotFoundError:
            pass
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | notes.NO_FOLLOW, 0o600)
        try:
            os.write(descriptor, words.encode("utf-8", "backslashreplace")[: _BOUND // 16] + b"\n")
        finally:
            os.close(descriptor)
    except OSError:
        return


def describe(error: BaseException, doing: str) -> str:
    """With the way it took, but without loading `traceback`."""
    from time import gmtime, strftime

    way: list[str] = []
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        way.append(f"{code.co_filename.rpartition('/')[2]}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    moment = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime())
    return f"{moment} {doing}: {type(error).__name__}: {error} [{' > '.join(way)}]"
