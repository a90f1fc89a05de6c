"""A notice that appears, changes its weight or goes is an event; new figures in its text are not."""

import logging
from dataclasses import replace

from brimline.documents.codec import from_json, to_json
from brimline.documents.notices import Notice, NoticeLog, Weight

HELD = Notice(feature="cleaner", key="held", weight=Weight.NOTE, word="HELD", text="held at 91 %", facts={"at": 91})


def told(*steps: list[Notice]) -> list[tuple[int, str]]:
    said: list[tuple[int, str]] = []
    log = NoticeLog(lambda level, event, _sentence: said.append((level, event)))
    for notices in steps:
        log.tell(notices)
    return said


def test_it_appears_and_goes() -> None:
    assert told([HELD], [HELD], []) == [(logging.INFO, "notice-held"), (logging.INFO, "notice-over")]


def test_new_figures_are_no_news() -> None:
    assert told([HELD], [replace(HELD, text="held at 92 %", facts={"at": 92})]) == [(logging.INFO, "notice-held")]


def test_another_weight_or_word_is() -> None:
    worse = replace(HELD, weight=Weight.PROBLEM)

    assert told([HELD], [worse], [replace(worse, word="CLEANS")])[1:] == [
        (logging.ERROR, "notice-held"),
        (logging.ERROR, "notice-cleans"),
    ]


def test_the_same_key_of_another_feature_is_another_notice() -> None:
    other = replace(HELD, feature="reserve")

    assert len(told([HELD], [HELD, other])) == 2


def test_that_something_fine_goes_is_not_worth_a_line() -> None:
    fine = replace(HELD, weight=Weight.FINE)

    assert told([fine], []) == [(logging.DEBUG, "notice-held")]


def test_it_comes_back_from_json_as_it_was() -> None:
    assert from_json(Notice, to_json(HELD)) == HELD
