"""Claude Code on a Python web service: pages of a list overlap, and the user corrects the first cure."""

# ruff: noqa: E501 - what people and programs say is not broken into lines

from __future__ import annotations

from handoff.earlier import earlier_work
from handoff.filler import log, passing, source
from handoff.story import Asked, Case, Changed, Event, Looked, Ran, Refused, Said, Searched, plan

_TESTS = ("tests/test_orders.py", "tests/test_customers.py", "tests/test_auth.py", "tests/test_health.py")
_RED = """tests/test_orders.py::test_pages_do_not_overlap FAILED
    def test_pages_do_not_overlap(client, many_orders):
>       assert not seen & {row["id"] for row in page["items"]}
E       AssertionError: assert not {8412, 8413}
FAILED tests/test_orders.py::test_pages_do_not_overlap - AssertionError: assert not {8412, 8413}
1 failed, 61 passed in 4.80s"""
_OLD_QUERY = """    query = select(Order).where(Order.tenant_id == tenant)
    return session.scalars(query.offset(page * size).limit(size)).all()"""
_NEW_QUERY = """    query = select(Order).where(Order.tenant_id == tenant).order_by(Order.created_at, Order.id)
    if cursor is not None:
        query = query.where(tuple_(Order.created_at, Order.id) > (cursor.created_at, cursor.id))
    return session.scalars(query.limit(size + 1)).all()"""

_EARLIER = (
    ("app/customers/routes.py", "Add a filter by country to GET /v2/customers."),
    ("app/auth/tokens.py", "Refresh tokens must expire after 30 days, not 90."),
    ("app/mail/outbox.py", "Retry mails that bounced softly, at most 3 times."),
    ("app/health.py", "The health check should not open a new connection each time."),
    ("app/orders/export.py", "CSV export: always quote, Excel is confused by semicolons."),
    ("app/limits.py", "Rate limit per API key instead of per address please."),
)

_BEFORE: tuple[Event, ...] = (
    Asked(
        "GET /v2/orders returns some orders twice when a new one arrives between two pages. Please fix it."
    ),
    Said("I'll look at how the list is paged first."),
    Searched("offset\\(", "app/orders/repository.py:41:    return session.scalars(query.offset(page * size)"),
    Looked("app/orders/repository.py", source("python", "orders repository", 40) + _OLD_QUERY),
    Looked("app/orders/routes.py", source("python", "orders routes", 30)),
    Ran("uv run pytest -q", passing(_TESTS, 61, 4.4), about="See that all is well before"),
    Said("The list is paged with `offset`, so a row that arrives first moves every later row by one."),
    Asked("Don't touch the database schema, the DBA is on holiday until Monday."),
    plan(
        done=("Find how orders are paged",),
        doing="Write a test that shows the overlap",
        left=(
            "Page by cursor in list_orders",
            "Answer next_cursor in OrderPage",
            "Describe paging in docs/api.md",
        ),
    ),
    Changed(
        "tests/test_orders.py",
        "def test_list_is_sorted(client):",
        "def test_pages_do_not_overlap(client, many_orders):\n    seen = set()\n    ...\n\n\ndef test_list_is_sorted(client):",
    ),
    Ran("uv run pytest -q tests/test_orders.py", _RED, 1, "The new test must fail"),
    Said("Red, for the right reason: 8412 and 8413 come on both pages."),
    Refused(
        Changed("app/orders/models.py", "id: Mapped[int]", "id: Mapped[int]\n    position: Mapped[int]"),
        "no, that is a schema change. Use created_at and id, both are there already",
    ),
    Said(
        "Understood. I chose keyset paging over `created_at` and `id` because both columns are indexed together "
        "in `ix_orders_tenant_created`, so no migration is needed."
    ),
    Looked("app/paging.py", source("python", "paging", 25)),
    Changed(
        "app/paging.py",
        "class Page:",
        "class OrderCursor(NamedTuple):\n    created_at: datetime\n    id: int\n\n\nclass Page:",
    ),
    Changed(
        "app/orders/repository.py",
        "    query = select(Order)\n    return session.scalars(query.offset(page)",
        _NEW_QUERY,
        error="String to replace not found in file.",
    ),
    Changed("app/orders/repository.py", _OLD_QUERY, _NEW_QUERY),
    Ran(
        "uv run pytest -q tests/test_orders.py",
        "E   sqlalchemy.exc.ArgumentError: tuple_() needs column elements, got datetime\n1 failed, 61 passed in 4.71s",
        1,
    ),
    Changed(
        "app/orders/repository.py",
        "(cursor.created_at, cursor.id))",
        "tuple_(literal(cursor.created_at), literal(cursor.id)))",
    ),
    Ran("uv run pytest -q tests/test_orders.py", passing(_TESTS[:1], 24, 1.9)),
    Ran(
        "uv run mypy app",
        'app/orders/routes.py:88: error: Argument "cursor" has incompatible type "str"; expected "OrderCursor | None"\nFound 1 error in 1 file',
        1,
    ),
    plan(
        done=(
            "Find how orders are paged",
            "Write a test that shows the overlap",
            "Page by cursor in list_orders",
        ),
        doing="Answer next_cursor in OrderPage",
        left=("Describe paging in docs/api.md",),
    ),
    Ran(
        "git commit -am 'Page orders by cursor'",
        "[fix/order-paging 4be19f2] Page orders by cursor\n 3 files changed, 41 insertions(+), 6 deletions(-)",
    ),
    Ran("docker compose logs api --tail 200", log("api", 200)),
    Asked(
        "The mobile team still sends ?page=3 (MOB-2231). Keep that working for one release, with a Deprecation header."
    ),
    Said(
        "Then `parse_cursor` has to accept both, and the old parameter answers with the `Deprecation` header."
    ),
    Looked("app/orders/schemas.py", source("python", "orders schemas", 28)),
    Changed(
        "app/orders/schemas.py",
        "items: list[OrderOut]",
        "items: list[OrderOut]\n    next_cursor: str | None = None",
    ),
    Said(
        "Next: `encode_cursor` and `parse_cursor` in app/paging.py, then the route.",
        thought="base64 of created_at|id is opaque enough",
    ),
)

_AFTER: tuple[Event, ...] = (
    Changed(
        "app/paging.py",
        "class Page:",
        "def encode_cursor(cursor: OrderCursor) -> str: ...\n\n\ndef parse_cursor(text: str) -> OrderCursor: ...",
    ),
    Changed(
        "app/orders/routes.py",
        "page: int",
        "cursor: str | None  # see OrderCursor, parse_cursor\n# next_cursor in OrderPage",
    ),
    Ran("uv run mypy app", "Success: no issues found"),
    Ran("uv run pytest -q tests/test_orders.py", "25 passed in 1.9s"),
    Said(
        "`parse_cursor` takes both forms; `Deprecation` is sent for MOB-2231. `next_cursor` stands in `OrderPage`."
    ),
    Ran("uv run pytest -q", "63 passed in 4.6s"),
    Changed(
        "docs/api.md", "## Paging", "## Paging\n`next_cursor` comes from `list_orders`; OrderCursor is opaque"
    ),
    Ran("git commit --fixup 4be19f2", "ok"),
)

CASE = Case(
    name="web-api",
    agent="claude-code",
    folder="/home/dev/orders-api",
    branch="fix/order-paging",
    before=(*earlier_work("python", "uv run pytest -q", _EARLIER), *_BEFORE),
    after=_AFTER,
    size=6400,
    extra={
        "decisions": ("keyset paging over `created_at` and `id`", "because both columns are indexed together")
    },
)
