"""A flow inside a flow."""

from dbos import DBOS, DBOSConfig

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.step()
def note(what: str) -> str:
    return what


@DBOS.workflow()
def review(text: str) -> str:
    return note(f"{note(f'{text}, read')}, judged")


@DBOS.workflow()
def book() -> str:
    return review(note("a chapter"))


DBOS.launch()
print(book())
DBOS.destroy()
