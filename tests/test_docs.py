"""The documents are tested like the code: what they name exists, what they quote is what the program says."""

import re
import sys
from pathlib import Path

import pytest

from brimline.model import Reason
from scripts.reference import PAGES

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TEST_NAMES = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
LINKS = re.compile(r"\]\((?!#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays out its help differently from Python 3.13 on")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_reference_page_is_what_the_program_says(page: Path) -> None:
    assert page.read_text() == "".join(PAGES[page]()), "run: .venv/bin/python -m scripts.reference"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_test_that_a_document_names_exists(document: Path) -> None:
    missing = [
        f"{file}::{name}"
        for file, name in TEST_NAMES.findall(document.read_text())
        if not (ROOT / file).is_file() or (name and f"def {name}(" not in (ROOT / file).read_text())
    ]

    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    broken = [
        target
        for target in LINKS.findall(document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]

    assert broken == []


def test_every_reason_is_explained() -> None:
    text = (ROOT / "docs" / "log-dirs.md").read_text()

    missing = [r.label for r in Reason if r is not Reason.KNOWN and f"| `{r.label}` | {r.sentence} |" not in text]
    assert missing == []


def test_every_dependency_has_a_reason() -> None:
    declared = re.findall(r'^\s+"([a-z-]+)[=<>]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    explained = (ROOT / "docs" / "dependencies.md").read_text()

    assert len(declared) >= 3
    assert [package for package in declared if package not in explained] == []
