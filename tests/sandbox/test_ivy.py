from xml.etree import ElementTree as ET

import pytest

from brimline.sandbox import MissingPart, ivy
from brimline.sandbox.lock import Coordinates


def test_a_module_with_two_jars_is_one_dependency() -> None:
    plain = Coordinates("g", "a", "1")
    test = Coordinates("g", "a", "1", "test")

    (element,) = ivy._exact_dependencies([test, plain])

    parsed = ET.fromstring(element.replace("m:classifier", "classifier"))
    assert parsed.attrib["transitive"] == "false"
    assert [artifact.get("classifier") for artifact in parsed] == [None, "test"]


def test_without_pyspark_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "find_spec", lambda _: None)

    with pytest.raises(MissingPart, match=r"brimline\[sandbox\]"):
        ivy.find_ivy()


def test_ivys_complaint_is_the_line_that_names_a_failure() -> None:
    output = ":: resolving\n\t:: UNRESOLVED\n\tgroup#name;1: not found\n"

    assert ivy._complaint(output) == "group#name;1: not found"
