"""For working on contexts: which facts are missed. Run as `python -m handoff [NAME]` in bench/."""

from __future__ import annotations

import sys

from measure import scratch_folder

from handoff import SHARES, context_of
from handoff.cases import ALL
from handoff.facts import facts_of
from handoff.formats import SUFFIX, write_one

with scratch_folder() as folder:
    for case in ALL:
        if sys.argv[1:] and case.name not in sys.argv[1:]:
            continue
        transcript = folder / f"{case.name}{SUFFIX[case.agent]}"
        write_one(case.agent, case, transcript)
        for share, part in SHARES.items():
            context = " ".join(context_of(transcript, int(case.size * part)).split())
            for category, wanted in facts_of(case).items():
                for fact in wanted:
                    if " ".join(fact.split()) not in context:
                        print(f"{case.name} {share} {category}: {fact}")
