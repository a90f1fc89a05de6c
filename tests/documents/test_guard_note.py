"""A guard's note for others: as it was written, and never more than Kafka takes."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from brimline.decide.reclaim.brakes import Brakes
from brimline.documents.guard_note import MOST_BYTES, GuardNote, NotedPause, NoteRefused, note_text, read_note

AT = datetime(2026, 1, 30, 11, 2, 13, tzinfo=UTC)
NOTE = GuardNote(
    written_at=AT,
    paused=NotedPause.of("root", "a replay", AT),
    brakes=Brakes(min_retention_ms=86_400_000, protected_topics=("audit-\\d+",), spares_for_ever=True),
)


def test_it_is_read_as_it_was_written() -> None:
    assert read_note(note_text(NOTE)) == NOTE


def test_members_that_are_not_known_do_no_harm() -> None:
    document = json.loads(note_text(NOTE)) | {"later": 1}

    assert read_note(json.dumps(document)) == NOTE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        json.dumps({"version": 2, "writtenAt": "2026-01-30T11:02:13Z", "brakes": {}}),
        json.dumps({"version": 1, "writtenAt": "2026-01-30T11:02:13Z"}),
        json.dumps({"version": 1, "writtenAt": "yesterday", "brakes": {}}),
        json.dumps({"version": 1, "writtenAt": "2026-01-30T11:02:13Z", "brakes": {"protectedTopics": ["("]}}),
        json.dumps({"version": 1, "writtenAt": "2026-01-30T11:02:13Z", "brakes": {"minRetentionMs": "1"}}),
        json.dumps({"version": 1, "writtenAt": "0001-01-01T00:00:00+14:00", "brakes": {}}),
        *(
            json.dumps({"version": 1, "writtenAt": "2026-01-30T11:02:13Z", "brakes": {"protectedTopics": [pattern]}})
            for pattern in ("a{99999999999999}", "(" * 900 + ")" * 900, "([a-z]+)+!", ".*.*.*.*", "(a)\\1", "(?=a).*")
        ),
    ],
)
def test_whatever_is_no_note_of_ours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_note(text)


def test_too_many_patterns_are_said_to_be_too_many() -> None:
    many = replace(NOTE, brakes=Brakes(protected_topics=tuple(f"topic-{number}" for number in range(500))))

    with pytest.raises(NoteRefused, match=r"shorten brimline\.reclaim\.protected\.topics"):
        note_text(many)


def test_a_pattern_that_could_keep_others_busy_is_not_told() -> None:
    with pytest.raises(NoteRefused, match="would be slow to match"):
        note_text(replace(NOTE, brakes=Brakes(protected_topics=("(a|b)*",))))


def test_a_long_reason_is_cut() -> None:
    paused = NotedPause.of("ü" * 5000, "ß" * 5000, AT)

    assert len(note_text(replace(NOTE, paused=paused)).encode()) <= MOST_BYTES
