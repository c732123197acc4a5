"""Ten pages, at most three at a time."""

from dbos import DBOS, DBOSConfig

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.workflow()
def fetch(number: int) -> int:
    return number**2


@DBOS.workflow()
def all_pages(count: int) -> list[int]:
    handles = [DBOS.enqueue_workflow("pages", fetch, number) for number in range(count)]
    return [handle.get_result() for handle in handles]


DBOS.launch()
DBOS.register_queue("pages", worker_concurrency=3)
print(all_pages(10))
DBOS.destroy()
