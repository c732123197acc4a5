"""Book a journey; where a step cannot be had, those before it are undone."""

from dbos import DBOS, DBOSConfig

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.step()
def note(what: str) -> str:
    return what


@DBOS.step()
def car(cars: int) -> bool:
    return cars > 0


@DBOS.workflow()
def journey(cars: int) -> list[object]:
    done: list[object] = [note("hotel booked"), note("flight booked"), car(cars)]
    if not done[-1]:
        done += [note("flight cancelled"), note("hotel cancelled")]
    return done


DBOS.launch()
print(journey(0))
DBOS.destroy()
