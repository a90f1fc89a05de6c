"""What the demo says of itself: only what was observed counts, and a pipe gets plain lines."""

import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from rich.text import Text

from scripts import demo, demo_acts
from scripts.demo_stage import Disk, Scoreboard, Seen, Stage, Unsettled, chart
from scripts.demo_svg import Film

RECORDED = Path(__file__).parents[2] / "docs" / "demo.svg"


def stage_on(out: io.StringIO, film: Film | None = None) -> Stage:
    console = Console(file=out, width=80, highlight=False)
    return Stage(console, Scoreboard({"61": "KIP-61", "827": "KIP-827"}), on_frame=film.take if film else None)


@pytest.mark.parametrize("missed", [*demo_acts.TITLES, None])
def test_exit_0_only_if_every_act_was_observed(
    missed: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(stage: Stage, *, keep: bool) -> None:
        assert not keep
        for key in demo_acts.TITLES:
            if key != missed:
                stage.observed(key, "7 MiB")

    monkeypatch.setattr(demo, "play", play)

    assert demo.main([]) == (0 if missed is None else 1)

    said = capsys.readouterr().err
    assert said == ("" if missed is None else f"demo: not observed: {demo_acts.TITLES[missed]}\n")


def test_what_did_not_hold_was_not_observed() -> None:
    board = Scoreboard({"61": "KIP-61", "827": "KIP-827", "stock": "stock Kafka"})

    board.observed("61", "nothing was deleted", holds=False)
    board.observed("827", "7 MiB", holds=True)
    board.not_here("stock", "no small disks")

    assert board.missing == ["KIP-61"]


def test_an_act_that_does_not_come_to_its_end_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(_stage: Stage, *, keep: bool) -> None:
        raise Unsettled(f"nothing seen, keep={keep}")

    monkeypatch.setattr(demo, "play", play)

    assert demo.main(["--keep"]) == 1
    assert "demo: nothing seen, keep=True" in capsys.readouterr().err


def test_a_pipe_gets_plain_lines() -> None:
    out = io.StringIO()
    disks = [Disk(name="/data/a", percent=50.0, text="50.0 %")]

    with stage_on(out) as stage:
        stage.looks = [lambda: Seen(title="stock Kafka", disks=disks, facts={"broker": Text("alive", "green")})]
        stage.act("A ceiling")
        stage.watch(3.3)
        stage.observed("61", "7 MiB deleted")

    lines = [line.strip() for line in out.getvalue().splitlines() if line.strip()]
    assert lines == [
        "── A ceiling",
        "3 s    stock Kafka: /data/a 50.0 %, broker alive",
        "3 s  ✓ KIP-61: 7 MiB deleted",
        "✓ KIP-61  7 MiB deleted",
        "✗ KIP-827 not observed",
    ]


def test_a_chart_has_a_row_for_each_tenth_and_its_marks() -> None:
    lines = [line.plain for line in chart("used", [(0, False)] * 28 + [(45, False), (100, True)], {80: "limit"})]

    assert lines[0].strip() == "used"
    assert lines[1] == "      │" + " " * 58 + "██ "
    assert lines[2] == "   80 ┤" + "┄" * 58 + "██ limit"
    assert lines[6] == "      │" + " " * 56 + "▄▄██ "
    assert lines[10].startswith("    0 ┤")


def test_a_film_is_one_picture_of_different_lines() -> None:
    film = Film()

    with stage_on(io.StringIO(), film) as stage:
        stage.say("<three> & four", "green")
        stage.observed("61", "7 MiB deleted")

    picture = ET.fromstring(film.svg())
    text = ["".join(each.itertext()) for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert len(text) == len(set(text))
    assert any("<three> & four" in line for line in text)


def test_the_recorded_demo_is_small_and_saw_everything() -> None:
    picture = ET.fromstring(RECORDED.read_text())

    said = " ".join(picture.itertext())
    assert RECORDED.stat().st_size < 100_000
    assert "✗" not in said
    assert not [title for title in demo_acts.TITLES.values() if title not in said]
