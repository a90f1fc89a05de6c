import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from brimline.sandbox import DownloadFailed, MissingPart
from brimline.sandbox.certificates import Authority
from brimline.sandbox.jars import ivy
from brimline.sandbox.jars.lock import Coordinates


def test_a_module_with_two_jars_is_one_dependency() -> None:
    plain = Coordinates("g", "a", "1")
    test = Coordinates("g", "a", "1", "test")

    (element,) = ivy._exact_dependencies([test, plain])

    parsed = ET.fromstring(element.replace("m:classifier", "classifier"))
    assert parsed.attrib["transitive"] == "false"
    assert [artifact.get("classifier") for artifact in parsed] == [None, "test"]


def test_without_pyspark_the_systems_ivy_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ivy, "find_spec", lambda _: None)
    monkeypatch.setattr(ivy, "SYSTEM_IVY", tmp_path / "ivy.jar")
    (tmp_path / "ivy.jar").touch()

    assert ivy.find_ivy() == tmp_path / "ivy.jar"


def test_without_any_ivy_the_error_names_the_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ivy, "find_spec", lambda _: None)
    monkeypatch.setattr(ivy, "SYSTEM_IVY", tmp_path / "ivy.jar")

    with pytest.raises(MissingPart, match=r"apt install ivy"):
        ivy.find_ivy()


def test_ivys_complaint_is_the_line_that_names_a_failure() -> None:
    output = ":: resolving\n\t:: UNRESOLVED\n\tgroup#name;1: not found\n"

    assert ivy._complaint(output) == "group#name;1: not found"


def test_a_host_that_nobody_knows_is_named_before_its_jars() -> None:
    output = "\tmodule not found: group#name;1\n\tHost registry.invalid not found. url=http://registry.invalid/x\n"

    assert ivy._complaint(output) == "Host registry.invalid not found. url=http://registry.invalid/x"


@contextmanager
def registry(context: ssl.SSLContext | None) -> Iterator[int]:
    """One that has no jar at all; with a context it speaks TLS. Its port."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            serving.join()


def why_not_from(root: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a person is told who has this registry."""
    settings = ivy._EXACT_SETTINGS.replace("<ibiblio ", f"<ibiblio root='{root}' ")
    monkeypatch.setattr(ivy, "_EXACT_SETTINGS", settings)
    with pytest.raises(DownloadFailed) as failed:
        ivy.retrieve([Coordinates("no.such", "jar", "1")], folder)
    assert "\n" not in str(failed.value)
    return str(failed.value)


def test_a_certificate_that_java_does_not_trust_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = tmp_path / "authority"
    Authority(authority, "PEM")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "broker-key-store")

    with registry(context) as port:
        said = why_not_from(f"https://127.0.0.1:{port}/", tmp_path, monkeypatch)

    assert "PKIX path building failed" in said
    assert f"https://127.0.0.1:{port}/no/such/jar/1/jar-1.jar" in said


def test_a_registry_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:  # bound and not listening: nobody else gets the port
        holder.bind(("127.0.0.1", 0))
        said = why_not_from(f"http://127.0.0.1:{holder.getsockname()[1]}/", tmp_path, monkeypatch)

    assert "java.net.ConnectException: Connection refused" in said


def test_a_jar_that_the_registry_has_not_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with registry(None) as port:
        said = why_not_from(f"http://127.0.0.1:{port}/", tmp_path, monkeypatch)

    assert said == "the jars could not be downloaded: module not found: no.such#jar;1"
