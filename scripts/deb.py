"""A Debian package, by Debian's own dpkg-deb: ``python -m scripts.deb FOLDER`` writes it there and prints its name.

Debian's kafka-python and numpy are older than what is needed, so the locked packages come along in an environment of
its own, /usr/lib/brimline, for the Python that this machine's /usr/bin/python3 is. Nothing starts automatically: the
units need a broker's properties file first.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from brimline import __version__
from scripts.completion import SHELLS
from scripts.man_pages import man_pages

ROOT = Path(__file__).parent.parent
UV = ROOT / ".tools" / "bin" / "uv"
PYTHON = Path("/usr/bin/python3")
HOME = Path("usr/lib/brimline")
LOCKS = ("core.txt", "gateway.txt", "codecs.txt")
"""What a guard and a gateway may need."""
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/brimline",
    "zsh": "usr/share/zsh/vendor-completions/_brimline",
    "fish": "usr/share/fish/vendor_completions.d/brimline.fish",
}
CONTROL = """\
Package: brimline
Version: {version}
Architecture: {architecture}
Maintainer: The Brimline authors <brimline@localhost>
Section: admin
Priority: optional
Depends: python3 (>= {python}), python3 (<< {next_python}), passwd
Suggests: default-jre-headless, nftables, iproute2
Installed-Size: {kilobytes}
Description: disk-space management for Apache Kafka
 Shows how full Kafka's disks are, refuses writes to a full one before the
 broker dies of it, and deletes the oldest data first where it is told to.
 Works from outside, beside unmodified brokers.
"""
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && ! getent passwd brimline >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/brimline --shell /usr/sbin/nologin brimline
  # The broker's files are the group's to read. Where it is another one, the units name it.
  if getent group kafka >/dev/null; then usermod --append --groups kafka brimline; fi
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
"""
POSTRM = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
# Ledger and fences stay, also on purge: they are the record of what was deleted.
"""
COMMANDS = {"brimline": "brimline.cli", "brimline-interception": "brimline.act.interception.helper"}
COMMAND = """\
#!/usr/lib/brimline/bin/python
import sys

from {module} import main

sys.exit(main())
"""


def build(folder: Path) -> Path:
    python = _asked("import sys; print('%d.%d' % sys.version_info[:2])")
    with tempfile.TemporaryDirectory(prefix="brimline-deb-") as name:
        tree = Path(name, "brimline")
        _environment(tree, python)
        _put_files(tree)
        architecture = _output("dpkg", "--print-architecture")
        _control(tree, python, architecture)
        package = folder / f"brimline_{__version__}_{architecture}.deb"
        _output("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(package))
    return package


def _environment(tree: Path, python: str) -> None:
    """What ``venv`` makes, without running it: the paths are those of the machine that it is installed on."""
    home, packages = tree / HOME, tree / HOME / "lib" / f"python{python}" / "site-packages"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").symlink_to(PYTHON)
    (home / "pyvenv.cfg").write_text(
        f"home = {PYTHON.parent}\ninclude-system-site-packages = false\nversion = {python}\n"
    )
    install = [str(UV), "pip", "install", "--quiet", "--python", str(PYTHON), "--target", str(packages), "--no-deps"]
    install += ["--link-mode", "copy"]  # a file of the cache may get another name while tar reads it
    for lock in LOCKS:
        _output(*install, "--require-hashes", "--requirement", str(ROOT / "requirements" / lock))
    with tempfile.TemporaryDirectory() as name:
        _output(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name)
        (wheel,) = Path(name).glob("*.whl")
        _output(*install, str(wheel))
    shutil.rmtree(packages / "bin", ignore_errors=True)


def _put_files(tree: Path) -> None:
    for name, module in COMMANDS.items():
        _put(tree / "usr/bin" / name, COMMAND.format(module=module), mode=0o755)
    for unit in (ROOT / "deploy" / "systemd").iterdir():
        _put(tree / "lib/systemd/system" / unit.name, unit.read_text())
    for kind in ("prometheus", "grafana", "jmx_exporter"):
        for file in (ROOT / "deploy" / kind).iterdir():
            _put(tree / "usr/share/brimline" / kind / file.name, file.read_text())
    for shell, place in COMPLETIONS.items():
        _put(tree / place, "\n".join(SHELLS[shell]()) + "\n")
    for name, page in man_pages().items():
        _put_packed(tree / "usr/share/man/man1" / f"{name}.gz", page)
    _put_packed(tree / "usr/share/doc/brimline/changelog.gz", (ROOT / "CHANGELOG.md").read_text())
    _put(tree / "usr/share/doc/brimline/copyright", (ROOT / "LICENSE").read_text())


def _control(tree: Path, python: str, architecture: str) -> None:
    major, minor = map(int, python.split("."))
    text = CONTROL.format(
        version=__version__,
        architecture=architecture,
        python=python,
        next_python=f"{major}.{minor + 1}",
        kilobytes=sum(file.lstat().st_size for file in tree.rglob("*")) // 1024,
    )
    _put(tree / "DEBIAN/control", text)
    _put(tree / "DEBIAN/postinst", POSTINST, mode=0o755)
    _put(tree / "DEBIAN/postrm", POSTRM, mode=0o755)


def _put(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def _put_packed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _asked(program: str) -> str:
    return _output(str(PYTHON), "-c", program)


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command[:4])} … failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m scripts.deb FOLDER")
    print(build(Path(sys.argv[1])))
