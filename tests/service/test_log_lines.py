"""One event a line, for people and for programs."""

import io
import json
import logging

import pytest

from brimline.service.log_lines import LOGGER, say, set_up


def said(log_format: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    set_up(stream, log_format, level)
    return stream


def test_a_line_for_people() -> None:
    stream = said("text")

    say(logging.WARNING, "disk-full", "/a is full", log_dirs="/a", used=99.5, note="two words", none=None)

    line = stream.getvalue()
    assert line.endswith(' WARNING disk-full /a is full  log_dirs=/a used=99.5 note="two words" none=null\n')
    assert line[:11].endswith("T")


def test_a_line_for_programs() -> None:
    stream = said("json")

    say(logging.INFO, "started", "watching", port=1)

    line = json.loads(stream.getvalue())
    assert (line["level"], line["event"], line["message"], line["port"]) == ("info", "started", "watching", 1)


def test_an_event_is_one_line_whatever_it_says() -> None:
    stream = said("text")

    say(logging.INFO, "config", "two\nlines \x1b[2J", path="a\nb\x1b")

    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().rstrip("\n").isprintable()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_login_is_never_said_in_a_traceback_neither(log_format: str) -> None:
    stream = said(log_format)
    uri = "s3://KEY:HIDDEN@bucket/a?secret_key=HIDDEN"

    say(logging.INFO, "config", f"a {uri} b", place=uri)
    try:
        raise OSError(f"cannot open {uri}")
    except OSError:
        LOGGER.exception("the task ended: %s", uri)

    assert "HIDDEN" not in stream.getvalue()
    assert stream.getvalue().count("s3://…@bucket/a?secret_key=…") == 4


def test_the_level_leaves_out_what_is_below() -> None:
    stream = said("text", "error")

    say(logging.WARNING, "disk-full", "not said")

    assert stream.getvalue() == ""
