"""Manual pages are made from the parser, and groff has nothing to say against them."""

import shutil
import subprocess

import pytest

from brimline.cli.parser import COMMANDS
from scripts.man_pages import man_pages


def test_every_command_has_a_page_with_its_options_and_exit_codes() -> None:
    pages = man_pages()

    assert [name for name in COMMANDS if f"brimline-{name}.1" not in pages] == []
    page = pages["brimline-fleet-collect.1"]
    assert page.startswith('.TH BRIMLINE-FLEET-COLLECT 1 "" "brimline ')
    assert ".TP\n\\-\\-landing " in page
    assert ".SH EXIT CODES\n.nf\n  0    done" in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_no_warning() -> None:
    warned = {}
    for name, page in man_pages().items():
        done = subprocess.run(
            ["groff", "-Kutf8", "-man", "-ww", "-Tutf8", "-z"], input=page, capture_output=True, text=True, check=True
        )
        warned[name] = done.stderr

    assert {name: said for name, said in warned.items() if said} == {}
