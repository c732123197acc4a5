from __future__ import annotations

from findings.sessions import Session


def texts(session: Session, *, value: bool = False) -> list[str]:
    return [name.text for name in session.found().names if name.value is value]


def test_new_and_talked_about_names_come_first():
    session = Session().agent("Old `ancientThing` here.")
    for _ in range(150):
        session.shell("true")
    session.agent("Now `paintDoor()` and `brush.size` matter.").edit("door.py", new="paintDoor(brushWidth)")
    names = texts(session)
    assert names[0] == "paintDoor()"
    assert names.index("brush.size") < names.index("ancientThing")


def test_a_name_knows_its_file():
    session = Session().edit("src/door.py", new="hingeOil = 3", old="hingeOil = 2").agent("hingeOil it is")
    (name,) = [name for name in session.found().names if name.text == "hingeOil"]
    assert name.path == "src/door.py"


def test_plain_words_and_generated_ids_are_no_names():
    session = Session().shell("run", "painting toolu_01Ab2Cd3 the shed withCare escaped\\nNewline")
    assert texts(session) == ["withCare"]


def test_values_with_what_stands_beside_them():
    log = "1a2b3c4 Paint the shed\n5d6e7f8 Oil the hinge\ndeadbee defaced facade"
    session = Session().shell("git log --oneline", log).user("see #421 and https://example.com/kim/shed")
    found = {name.text: name.gloss for name in session.found().names if name.value}
    assert found["1a2b3c4"] == "Paint the shed"
    assert found["#421"] == ""
    assert "https://example.com/kim/shed" in found
    assert "deadbee" not in found  # no digit: a word, not an id


def test_the_window_is_bounded():
    session = Session()
    for number in range(120):
        session.tool("Read", f"oldName{number} " * 3000, file_path="big.py")
    session.agent("`freshName`")
    names = texts(session)
    assert "freshName" in names
    assert "oldName0" not in names
