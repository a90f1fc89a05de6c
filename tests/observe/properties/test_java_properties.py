"""The reader against the rules of java.util.Properties, and against java.util.Properties itself."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from brimline.model import BadInput
from brimline.observe.properties.java_properties import JavaProperties, PropertyEntry, load_properties, parse_properties
from tests.waiting import PATIENCE_SECONDS


def as_dict(text: str) -> dict[str, str]:
    return dict(parse_properties(text.encode("iso-8859-1"), "test.properties"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b=c", {"a": "b=c"}),
        ("a  :  b", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("  \t\f a=b", {"a": "b"}),
        ("# no\n! no\n  # no\na=b#yes", {"a": "b#yes"}),
        ("# no \\\na=b", {"a": "b"}),
        ("a=b,\\\n    c,\\\n\td", {"a": "b,c,d"}),
        ("a=b\\\n#c", {"a": "b#c"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\rc=d\r\ne=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e4\\u20AC", {"a": "ä€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("\\\n# a comment after an empty continued line\na=b", {"a": "b"}),
        ("", {}),
    ],
)
def test_reads_as_java_does(text: str, expected: dict[str, str]) -> None:
    assert as_dict(text) == expected


def test_an_entry_knows_the_first_line_of_its_logical_line() -> None:
    properties = parse_properties(b"# x\n\na=1,\\\n  2\nb=3\n", "server.properties")

    assert [(entry.key, entry.value, entry.line) for entry in properties.entries] == [("a", "1,2", 3), ("b", "3", 5)]
    assert properties.entry("b").where == "server.properties line 5"


@pytest.mark.parametrize(
    ("value", "dropped"),
    [(r"a", ""), (r"\d+\.x", "d."), (r"\\d", ""), (r"\\\w", "w"), (r"\t\u0041\:\=\ \#\!", "")],
)
def test_an_entry_knows_which_characters_lost_a_backslash_that_means_nothing(value: str, dropped: str) -> None:
    assert parse_properties(f"a={value}\n".encode(), "server.properties").entry("a").dropped == dropped


def test_the_last_duplicate_wins_and_all_stay_visible() -> None:
    properties = parse_properties(b"a=1\nb=2\na=3\n", "server.properties")

    assert properties["a"] == "3"
    assert {key: [entry.line for entry in entries] for key, entries in properties.duplicates().items()} == {"a": [1, 3]}


def test_an_overlay_wins_and_is_no_duplicate() -> None:
    file = parse_properties(b"a=1\nb=2\n", "client.properties")
    option = JavaProperties([PropertyEntry("a", "9", "--command-property")])

    both = file.overlaid(option)

    assert dict(both) == {"a": "9", "b": "2"}
    assert both.entry("a").where == "--command-property"
    assert both.duplicates() == {}


def test_bytes_are_latin_1_unless_a_byte_order_mark_says_utf_8() -> None:
    assert parse_properties("a=ä".encode("iso-8859-1"), "f")["a"] == "ä"
    assert parse_properties("a=ä".encode(), "f")["a"] == "Ã¤"
    assert parse_properties("\ufeffa=ä".encode(), "f") == {"a": "ä"}


@pytest.mark.parametrize("value", ["\\u12zz", "\\u12", "\\u", "\\uu0041", "\\u 041", "\\u+041"])
def test_a_malformed_escape_names_file_and_line(value: str) -> None:
    with pytest.raises(BadInput, match=r"^client\.properties line 2: .* four hexadecimal digits$"):
        parse_properties(f"a=b\nc={value}\n".encode(), "client.properties")


def test_broken_utf_8_after_a_byte_order_mark_names_the_line() -> None:
    with pytest.raises(BadInput, match=r"^f line 2: not UTF-8"):
        parse_properties(b"\xef\xbb\xbfa=b\nc=\xff\n", "f")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"cannot read the properties file .*absent.properties: No such file or directory"
    ):
        load_properties(tmp_path / "absent.properties")
    with pytest.raises(BadInput, match="Is a directory"):
        load_properties(tmp_path)


ORACLE = """
import java.io.*;
import java.util.*;

public class Oracle {
    public static void main(String[] args) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(args[0])));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(args[1])));
        int cases = in.readInt();
        for (int i = 0; i < cases; i++) {
            byte[] file = new byte[in.readInt()];
            in.readFully(file);
            Properties properties = new Properties();
            try {
                properties.load(new ByteArrayInputStream(file));
                out.writeInt(properties.size());
                for (String key : new TreeSet<>(properties.stringPropertyNames())) {
                    write(out, key);
                    write(out, properties.getProperty(key));
                }
            } catch (IllegalArgumentException malformed) {
                out.writeInt(-1);
            }
        }
        out.close();
    }

    static void write(DataOutputStream out, String text) throws IOException {
        out.writeInt(text.length());
        out.writeChars(text);
    }
}
"""

interesting = st.lists(
    st.sampled_from(
        [*"ab#!=: \t\f\r\n\\\\\\u0e4dDtrnfz", "\\u00e4", "\\ud83d\\ude00", "\\ud800", "\xe4", "\r\n", "\\\n", "\\\r\n"]
    ),
    max_size=40,
).map("".join)


def generated_files(count: int) -> list[bytes]:
    found: list[bytes] = []

    @settings(max_examples=count, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(interesting)
    def collect(text: str) -> None:
        found.append(text.encode("iso-8859-1"))

    collect()
    return found


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: java.util.Properties cannot be asked")
def test_java_itself_reads_the_same(tmp_path: Path) -> None:
    files = generated_files(3000)
    source, asked, answered = tmp_path / "Oracle.java", tmp_path / "asked", tmp_path / "answered"
    source.write_text(ORACLE)
    asked.write_bytes(len(files).to_bytes(4, "big") + b"".join(len(file).to_bytes(4, "big") + file for file in files))

    subprocess.run(["java", str(source), str(asked), str(answered)], check=True, timeout=PATIENCE_SECONDS)

    answers = answered.read_bytes()
    position = 0

    def number() -> int:
        nonlocal position
        position += 4
        return int.from_bytes(answers[position - 4 : position], "big", signed=True)

    def text() -> str:
        nonlocal position
        length = 2 * number()
        position += length
        return answers[position - length : position].decode("utf-16-be", "surrogatepass")

    for file in files:
        size = number()
        expected = None if size < 0 else {text(): text() for _ in range(size)}
        try:
            ours: dict[str, str] | None = dict(parse_properties(file, "generated"))
        except BadInput:
            ours = None
        assert ours == expected, file
    assert position == len(answers)
