"""A reminder after a while; a process that dies meanwhile does not begin the wait anew."""

from dbos import DBOS, DBOSConfig

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.workflow()
def remind(what: str) -> str:
    DBOS.sleep(0.01)
    return f"remember {what}"


DBOS.launch()
print(remind("the tide"))
DBOS.destroy()
