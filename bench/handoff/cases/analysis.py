"""Claude Code on data: why did renewals fall? Scripts and tables, a wrong join, a correction by the user."""

# ruff: noqa: E501 - what people and programs say is not broken into lines

from __future__ import annotations

from handoff.earlier import earlier_work
from handoff.filler import source, table
from handoff.story import Asked, Case, Changed, Event, Looked, Ran, Said, Wrote, plan

_COLUMNS = ("plan_fee", "seats", "logins_30d", "tickets", "discount")
_KEYERROR = """Traceback (most recent call last):
  File "/data/churn/cohorts.py", line 58, in <module>
    renewed = joined.groupby("signup_month")["renewed"].mean()
KeyError: 'Column not found: renewed'"""
_MERGE = """Traceback (most recent call last):
  File "/data/churn/cohorts.py", line 41, in <module>
    joined = accounts.merge(events, on="account_id", validate="1:1")
pandas.errors.MergeError: Merge keys are not unique in right dataset; not a one-to-one merge"""

_EARLIER = (
    ("load.py", "Read the event export of last week, the columns changed again."),
    ("clean.py", "Drop accounts without a country, there are only 12."),
    ("plots.py", "Axis labels in euros, not cents."),
    ("weekly.py", "Weekly table per region, Monday is the first day."),
)

_BEFORE: tuple[Event, ...] = (
    Asked(
        "Renewals dropped in Q4. data/accounts.parquet and data/events.parquet have everything. I need one chart and three sentences for Thursday."
    ),
    Ran(
        "python -c \"import pandas as pd; print(pd.read_parquet('data/accounts.parquet').describe())\"",
        table(_COLUMNS, 8),
    ),
    Ran(
        "python -c \"import pandas as pd; print(pd.read_parquet('data/events.parquet').head(60))\"",
        table(("account_id", "kind", "at"), 60),
    ),
    plan(
        doing="Join accounts with their events",
        left=(
            "Renewal rate by signup month",
            "Compare with the price change of October",
            "Draw chart.png",
            "Three sentences in findings.md",
        ),
    ),
    Wrote("cohorts.py", source("python", "cohorts", 14)),
    Ran("python cohorts.py", _MERGE, 1),
    Said(
        "An account has many events, so a one-to-one merge cannot work. I'll reduce `events` to the last renewal attempt of each account first."
    ),
    Changed(
        "cohorts.py",
        "joined = accounts.merge(",
        "last_attempt = events.sort_values('at').groupby('account_id').tail(1)\njoined = accounts.merge(",
    ),
    Ran("python cohorts.py", _KEYERROR, 1),
    Changed("cohorts.py", '["renewed"]', '["renewed_at"]'),
    Ran("python cohorts.py", table(("signup_month", "accounts", "renewal_rate"), 24, 3)),
    Said(
        "The rate falls from 0.83 to 0.71 for accounts that signed up before `2024-07`, and hardly at all for the later ones."
    ),
    Asked(
        "Trial accounts must not count, they never renew. Filter on is_trial. And use medians, the finance people distrust means."
    ),
    Changed(
        "cohorts.py",
        "last_attempt = events",
        "accounts = accounts[~accounts.is_trial]\nlast_attempt = events",
    ),
    Ran("python cohorts.py", table(("signup_month", "accounts", "renewal_rate"), 24, 4)),
    Looked(
        "notes/pricing.md",
        "# Price change\nOn 2025-10-01 the plan `team-legacy` went from 9 to 14 per seat.\n"
        + table(_COLUMNS, 40, 2),
    ),
    Said(
        "Without trials the drop is 0.86 to 0.74 and sits entirely in `team-legacy`. I split by `plan_code` rather than by month because the price change hit only that plan."
    ),
    plan(
        done=("Join accounts with their events", "Renewal rate by signup month"),
        doing="Compare with the price change of October",
        left=("Draw chart.png", "Three sentences in findings.md", "Check the result on data/holdout.parquet"),
    ),
    Wrote(
        "by_plan.py",
        "import pandas as pd\n\ndef rate_by_plan(joined: pd.DataFrame) -> pd.DataFrame: ...\n"
        + source("python", "by_plan", 6),
    ),
    Ran("python by_plan.py --plan team-legacy", table(("seats", "renewal_rate", "median_fee"), 30, 5)),
    Ran(
        "python -m pytest -q test_by_plan.py",
        "ERROR test_by_plan.py - ModuleNotFoundError: No module named 'pyarrow'\n1 error in 0.41s",
        1,
    ),
    Ran("pip install pyarrow==21.0.0", "Successfully installed pyarrow-21.0.0"),
    Ran("python -m pytest -q test_by_plan.py", "4 passed in 0.92s"),
    Asked(
        "Small teams matter most: show seats < 5 apart. Colours: only the two of our brand, #0B5FFF and #8A94A6."
    ),
    Said("I'll add `seat_band` with a cut at 5 and draw two lines in chart.png."),
    Changed(
        "by_plan.py",
        "def rate_by_plan(",
        "def seat_band(seats: pd.Series) -> pd.Series:\n    return seats.lt(5).map({True: 'small', False: 'large'})\n\n\ndef rate_by_plan(",
    ),
)

_AFTER: tuple[Event, ...] = (
    Changed(
        "by_plan.py",
        "rate_by_plan",
        "rate_by_plan(joined, seat_band(joined.seats))  # renewal_rate by plan_code",
    ),
    Ran("python by_plan.py --plan team-legacy", "ok"),
    Ran("python -m pytest -q test_by_plan.py", "5 passed"),
    Wrote(
        "chart.py",
        "COLOURS = ('#0B5FFF', '#8A94A6')\nfrom by_plan import rate_by_plan, seat_band  # renewal_rate, team-legacy",
    ),
    Said("`seat_band` shows it: small teams on `team-legacy` left. chart.png has #0B5FFF for them."),
    Wrote("findings.md", "Median renewal_rate fell in team-legacy; is_trial is left out; by plan_code"),
    Ran("python cohorts.py", "ok"),
)

CASE = Case(
    name="analysis",
    agent="claude-code",
    folder="/data/churn",
    branch="main",
    before=(*earlier_work("python", "python -m pytest -q", _EARLIER), *_BEFORE),
    after=_AFTER,
    size=6000,
    extra={
        "decisions": (
            "I split by `plan_code` rather than by month",
            "because the price change hit only that plan",
        )
    },
)
