"""Completion is made from the parser: bash is asked, and every command and option is in all three."""

import subprocess

import pytest

from scripts.completion import SHELLS, commands

_ASK = """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_brimline
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["brimline", "le"], ["ledger"]),
        (["brimline", "--debug", "le"], ["ledger"]),
        (["brimline", "fleet", "s"], ["show", "simulate", "synth"]),
        (["brimline", "fleet", "run", "--land"], ["--landing"]),
        (["brimline", "doctor", "--output", ""], ["text", "json"]),
        (["brimline", "doctor", "--config", ""], [""]),
    ],
    ids=lambda value: " ".join(value),
)
def test_bash_offers(typed: list[str], offered: list[str]) -> None:
    """Nothing offered: bash itself completes a file name."""
    program = "\n".join(SHELLS["bash"]()) + _ASK

    done = subprocess.run(["bash", "-c", program, "bash", *typed], capture_output=True, text=True, check=True)

    assert done.stdout.rstrip("\n").split("\n") == offered
    assert done.stderr == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_there(shell: str) -> None:
    script = "\n".join(SHELLS[shell]())

    names = {name for path in commands() for name in path}
    options = {name for options in commands().values() for each in options for name in each.names if "--" in name}
    assert [name for name in sorted(names) if name not in script] == []
    written = (lambda option: f"-l {option[2:]} ") if shell == "fish" else (lambda option: option)
    assert [option for option in sorted(options) if written(option) not in script] == []
