from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from holdfast.base.errors import DamagedDataError, InvalidInputError, NotFoundError
from holdfast.transcripts import detect, open_transcript
from transcripts.claude_files import file_of, said, typed

SESSION = file_of(typed("Paint the shed", parentUuid=None), said("Painting."))


@pytest.mark.parametrize(
    ("head", "agent"),
    [
        (SESSION, "claude-code"),
        (b'{"timestamp":"t","type":"session_meta","payload":{}}\n', "codex"),
        (b'{"sessionId":"s","projectHash":"h","startTime":"t"}\n', "gemini"),
        (b"SQLite format 3\x00rest", "opencode"),
        (b"", "claude-code"),
    ],
)
def test_detects_the_agent_by_the_first_bytes(head: bytes, agent: str):
    assert detect(head) == agent


@pytest.mark.parametrize(
    ("path", "agent"),
    [
        (".codex/sessions/rollout-1.jsonl", "codex"),
        (".gemini/tmp/x.jsonl", "gemini"),
        ("a/b.jsonl", "claude-code"),
    ],
)
def test_an_empty_file_is_told_by_its_name(path: str, agent: str):
    assert detect(b"", Path(path)) == agent


@pytest.mark.parametrize("name", ["plain.jsonl", "packed.jsonl.gz"])
def test_opens_plain_and_packed_files(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(gzip.compress(SESSION) if name.endswith("gz") else SESSION)
    report, messages = open_transcript(path)
    assert [message.text for message in messages] == ["Paint the shed", "Painting."]
    assert (report.agent, report.lines) == ("claude-code", 2)


def test_a_cut_archive_gives_what_is_whole(tmp_path: Path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(SESSION * 5000)[:-40])
    report, messages = open_transcript(path)
    assert next(messages).text == "Paint the shed"
    list(messages)
    assert report.torn


def test_what_cannot_be_opened_is_a_clear_error(tmp_path: Path):
    with pytest.raises(NotFoundError) as missing:
        open_transcript(tmp_path / "nowhere.jsonl")
    assert missing.value.hint
    with pytest.raises(InvalidInputError):
        open_transcript(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(SESSION)
    with pytest.raises(InvalidInputError, match="no reader"):
        open_transcript(tmp_path / "a.jsonl", "hal")
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    with pytest.raises(DamagedDataError):
        open_transcript(tmp_path / "bad.gz")
