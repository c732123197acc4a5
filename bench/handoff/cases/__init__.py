"""Invented sessions of different projects, one a file."""

from handoff.cases import analysis, migration, ops, release, review, web_api, web_ui

ALL = (web_api.CASE, web_ui.CASE, release.CASE, ops.CASE, analysis.CASE, migration.CASE, review.CASE)
