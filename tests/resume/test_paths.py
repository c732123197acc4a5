from __future__ import annotations

from holdfast.resume.rendering import Paths


def test_paths_start_at_the_folder_of_the_session():
    paths = Paths("/home/kim/shed/")
    assert paths("/home/kim/shed/src/door.py") == "`src/door.py`"
    assert paths("/etc/hosts") == "`/etc/hosts`"


def test_scratch_files_and_other_folders_are_not_the_work():
    paths = Paths("/home/kim/shed")
    inside = [
        paths.is_inside(path) for path in ("/home/kim/shed/a.py", "b.py", "/tmp/x.py", "/home/kim/house/a.py")
    ]
    assert inside == [True, True, False, False]


def test_a_folder_among_temporary_ones_has_its_own_files():
    paths = Paths("/tmp/shed")
    assert paths.is_inside("/tmp/shed/a.py")
    assert not paths.is_inside("/tmp/b.py")
    assert Paths("/home/kim/shed").is_inside("/home/kim/shed/.claude/commands/x.md")
