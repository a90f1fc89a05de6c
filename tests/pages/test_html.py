"""Whatever stands in a name, a page shows it as text, and asks nobody for anything."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimline.pages.html import HEADERS, SCRIPT, STYLE, page, tag

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "&lt;b&gt;",
    "a\u202eb\x00\n\x1b[2J",
    "\ud800",
]


class Parsed(HTMLParser):
    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text(name: str) -> None:
    document = page(name, tag("p", name, title=name)).decode()

    found = Parsed(document)
    assert [each for each, _ in found.tags] == [
        "html",
        "head",
        *["meta"] * 3,
        "title",
        "link",
        "style",
        "script",
        "body",
        "a",
        "p",
    ]
    assert set(found.tags[-1][1]) == {"title"}
    assert "\x00" not in document
    assert "\u202e" not in document


@given(st.text())
def test_any_text_is_one_text(name: str) -> None:
    found = Parsed(tag("p", name, title=name))

    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    assert found.tags == [("p", {"title": shown})]
    assert found.text == shown


def test_what_is_not_there_is_left_out() -> None:
    assert tag("td", None, [], 0, class_=None, hidden=False, open=True, colspan=2) == '<td open colspan="2">0</td>'


def test_the_policy_lets_nothing_in_but_the_style_of_the_page_itself() -> None:
    policy = HEADERS["Content-Security-Policy"]
    document = page("t").decode()
    style = re.findall("<style>(.*?)</style>", document, re.DOTALL)

    digest = base64.b64encode(hashlib.sha256(style[0].encode()).digest()).decode()
    assert style == [STYLE]
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{digest}'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


def test_the_script_is_a_file_that_asks_nobody_but_its_server() -> None:
    script = SCRIPT.decode()

    assert re.findall(r"https?:|//[a-z]", script.replace("\n//", "")) == []
    assert re.findall(r"\b(?:eval|Function|localStorage|cookie)\b", script) == []


def test_the_style_loads_nothing() -> None:
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    assert "prefers-color-scheme: dark" in STYLE
