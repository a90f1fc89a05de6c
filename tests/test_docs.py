"""The documents are tested like the code: what they name exists, what they quote is what the program says."""

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from brimline.model import Reason
from brimline.model.topic_use import Stays
from brimline.sandbox.jars.lock import read_lock
from scripts.reference import PAGES

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TEST_NAMES = re.compile(r"`(tests/[\w/-]+\.(?:py|json))(?:::(\w+))?`")
PROMISING = [ROOT / "docs" / "promises.md", ROOT / "docs" / "kips.md"]
"""What they claim they claim of a test: so they say of each whether ``make test`` runs it."""
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


COLLECT = """
import json, sys, pytest
class Marks:
    def pytest_collection_finish(self, session):
        marks = {item.nodeid: item.get_closest_marker("long") is not None for item in session.items}
        print("", json.dumps(marks), sep="\\n")
sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:randomly", *sys.argv[1:]], plugins=[Marks()]))
"""
LONG = r" ?\blong(?=[:;,)])"
"""How it is said, and not in "as long as"."""
Cases = dict[str, list[tuple[str, bool]]]
"""A test's file and name → of each of its cases what it is called, and whether it is long. Also by the file alone."""


@pytest.fixture(scope="module")
def cases() -> Cases:
    """Of all cited files in which something is long."""
    cited = {file for document in PROMISING for file, _ in TEST_NAMES.findall(document.read_text())}
    files = sorted(file for file in cited if "mark.long" in (ROOT / file).read_text())
    done = subprocess.run(
        [sys.executable, "-c", COLLECT, *files], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found: Cases = defaultdict(list)
    (collected,) = (line for line in done.stdout.splitlines() if line.startswith("{"))
    for node, is_long in json.loads(collected).items():
        test, _, case = node.partition("[")
        for key in (test, test.partition("::")[0]):
            found[key].append((case.rstrip("]"), is_long))
    return found


@pytest.mark.parametrize("document", PROMISING, ids=lambda path: path.name)
def test_what_make_test_does_not_run_is_called_long(document: Path, cases: Cases) -> None:
    """Beside the test if all of it is; else each version that is, wherever its file is named."""
    blocks = re.split(r"\n(?=\n|\||- )", document.read_text())  # paragraphs, rows of tables, points of lists
    silent = []
    for block in blocks:
        for file, name in TEST_NAMES.findall(block):
            known = cases.get(f"{file}::{name}" if name else file, [])
            if any(is_long for _, is_long in known) and (not name or all(is_long for _, is_long in known)):
                if not re.search(LONG, block):
                    silent.append(f"{file}::{name}")
            else:
                beside = [each for each in blocks if file in each]
                versions = {
                    version for case, is_long in known if is_long for version in re.findall(r"\d\.\d\.\d", case)
                }
                silent += [f"{file}::{name} on {version}" for version in versions if not is_told(version, beside)]

    assert silent == []


def is_told(version: str, blocks: list[str]) -> bool:
    return any(re.search(rf"{re.escape(version)}(?: and \d\.\d\.\d)?{LONG}", block) for block in blocks)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    broken = [
        target
        for target in LINKS.findall(document.read_text())
        if "://" not in target and not (document.parent / target).exists()
    ]

    assert broken == []


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text()
    prose = re.sub(r"^```.*?^```|^\|.*?$", "", text, flags=re.MULTILINE | re.DOTALL)

    assert len(prose.split()) <= 1000


def test_the_readme_names_every_kafka_package_and_extra() -> None:
    text = (ROOT / "README.md").read_text()
    rows = dict(re.findall(r"^\| (Kafka|packages|extras) \| (.*) \|$", text, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {re.split("[<>=]", each)[0] for each in project["dependencies"]}

    assert set(re.findall(r"\d+\.\d+\.\d+", rows["Kafka"])) == set(read_lock())
    assert set(rows["packages"].partition(".")[0].split(", ")) == required
    assert set(re.findall(r"`\[(\w+)\]`", rows["extras"])) == set(project["optional-dependencies"])


def test_every_reason_is_explained() -> None:
    text = (ROOT / "docs" / "log-dirs.md").read_text()

    missing = [r.label for r in Reason if r is not Reason.KNOWN and f"| `{r.label}` | {r.sentence} |" not in text]
    assert missing == []


def test_every_reason_for_not_shrinking_is_explained() -> None:
    text = (ROOT / "docs" / "topics.md").read_text()

    assert [each.label for each in Stays if f"| `{each.label}` | " not in text] == []


def test_every_dependency_has_a_reason() -> None:
    declared = re.findall(r'^\s+"([a-z-]+)[=<>]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    explained = (ROOT / "docs" / "dependencies.md").read_text()

    assert len(declared) >= 3
    assert [package for package in declared if package not in explained] == []
