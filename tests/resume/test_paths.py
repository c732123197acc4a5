from __future__ import annotations

from holdfast.resume.rendering import short_paths


def test_two_parts_where_they_suffice_more_where_not():
    labels = short_paths(["/p/web/src/a.py", "/p/api/src/a.py", "/p/b.py", "c.py"])
    assert labels == {
        "/p/web/src/a.py": "web/src/a.py",
        "/p/api/src/a.py": "api/src/a.py",
        "/p/b.py": "p/b.py",
        "c.py": "c.py",
    }


def test_odd_paths_have_labels_too():
    assert set(short_paths(["", "/", "a\nb", "c:\\d\\e.py"]).values()) == {"/", "a b", "d/e.py"}
