"""``sasl.jaas.config`` as Kafka reads it, with the JDK's own tokenizer as the judge."""

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from brimline.observe.client.login import LoginModule, parse_jaas_config
from tests.waiting import PATIENCE_SECONDS


def test_words_quotes_escapes_and_comments() -> None:
    module = parse_jaas_config('x.Y required /* c */ a=b c="d \\"e\\101" f=\'g;\' // end\n;')

    assert module == LoginModule("x.Y", {"a": "b", "c": 'd "eA', "f": "g;"})
    assert "g;" not in repr(module)


ORACLE = """
import java.io.*;
import java.nio.file.*;
import java.util.*;

/** The tokens that Kafka's JaasConfig sees, by the JDK's own StreamTokenizer set up as Kafka does. */
public class Oracle {
    public static void main(String[] args) throws Exception {
        StringBuilder out = new StringBuilder();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            String text = new String(Base64.getDecoder().decode(line), "UTF-8");
            StreamTokenizer tokens = new StreamTokenizer(new StringReader(text));
            tokens.slashSlashComments(true);
            tokens.slashStarComments(true);
            tokens.wordChars('-', '-');
            tokens.wordChars('_', '_');
            tokens.wordChars('$', '$');
            List<String> options = new ArrayList<>();
            tokens.nextToken();
            tokens.nextToken();
            while (tokens.nextToken() != StreamTokenizer.TT_EOF && tokens.ttype != ';') {
                String key = tokens.sval;
                if (key == null || tokens.nextToken() != '=' || tokens.nextToken() == StreamTokenizer.TT_EOF
                        || tokens.sval == null) {
                    options = null;
                    break;
                }
                options.add(key + "\\u0001" + tokens.sval);
            }
            boolean ended = options != null && tokens.ttype == ';' && tokens.nextToken() == StreamTokenizer.TT_EOF;
            String answer = ended ? String.join("\\u0000", options) : "refused";
            out.append(Base64.getEncoder().encodeToString(answer.getBytes("UTF-8"))).append("\\n");
        }
        Files.writeString(Path.of(args[1]), out.toString());
    }
}
"""


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: java.io.StreamTokenizer cannot be asked")
def test_java_itself_reads_the_same_login_options(tmp_path: Path) -> None:
    configs: list[str] = []
    part = st.sampled_from(
        ["a", "b1", "=", '"', "'", "\\", "\\101", "/", "//", "/*", "*/", "-", "7", ".", "_", "$", "é", "\n", " ", "="]
    )
    option = st.one_of(
        st.tuples(st.sampled_from("xyz"), st.lists(part, max_size=6).map("".join)).map(
            lambda pair: f'{pair[0]}="{pair[1]}"'
        ),
        st.lists(part, max_size=6).map("".join),
        st.just("k=v"),
    )

    @settings(max_examples=2000, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.lists(option, max_size=4).map(" ".join))
    def collect(options: str) -> None:
        configs.append(f"module required {options};")

    collect()
    source, asked, answered = tmp_path / "Oracle.java", tmp_path / "asked", tmp_path / "answered"
    source.write_text(ORACLE)
    asked.write_text("".join(base64.b64encode(text.encode()).decode() + "\n" for text in configs))
    subprocess.run(["java", str(source), str(asked), str(answered)], check=True, timeout=PATIENCE_SECONDS)

    for text, line in zip(configs, answered.read_text().split("\n"), strict=False):
        answer = base64.b64decode(line).decode()
        try:
            options = parse_jaas_config(text).options
        except ValueError:
            assert answer == "refused", text
        else:
            assert answer != "refused", text
            assert options == dict(pair.split("\1", 1) for pair in answer.split("\0") if pair), text
