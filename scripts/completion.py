"""Completion for bash, zsh and fish, made from the argument parser: ``python -m scripts.completion bash``.

What follows an option with a closed set of values is that set; what follows any other is a file name.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from brimline.cli.parser import COMMANDS, commands_of, every_command, find_parser

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    help: str


def commands() -> dict[Path, tuple[Option, ...]]:
    """Every command, the program itself included, with its options."""
    return {path: tuple(_options(path)) for path in ((), *every_command())}


def _options(path: Path) -> Iterator[Option]:
    parser = find_parser(path)
    assert parser is not None
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            choices = tuple(str(choice) for choice in action.choices or ())
            sentence = (action.help or "").replace("%(default)s", str(action.default))
            yield Option(tuple(action.option_strings), action.nargs != 0, choices, sentence)


def below(path: Path) -> list[str]:
    parser = find_parser(path)
    assert parser is not None
    return [name for name, _ in commands_of(parser)] if path else list(COMMANDS)


def words(path: Path, options: tuple[Option, ...]) -> str:
    return " ".join([*below(path), *(name for option in options for name in option.names if name.startswith("--"))])


def values(known: Mapping[Path, tuple[Option, ...]]) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """Command, option, and what may follow it; nothing: a file name."""
    for path, options in known.items():
        for option in options:
            if option.takes_value:
                yield from ((path, name, option.choices) for name in option.names)


def bash() -> Iterator[str]:
    known = commands()
    yield "# bash completion for brimline; made by scripts/completion.py"
    yield "_brimline() {"
    yield '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at="" word words=""'
    yield '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield f'    case "$at $word" in {"|".join(_key(path) for path in known if path)}) at="$at $word" ;; esac'
    yield "  done"
    yield '  case "$at $prev" in'
    for path, name, choices in values(known):
        reply = f'COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$cur")); ' if choices else ""
        yield f"    {_key((*path, name))}) {reply}return ;;"
    yield "  esac"
    yield '  case "$at" in'
    for path, options in known.items():
        yield f'    {_key(path)}) words="{words(path, options)}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "}"
    yield "complete -o default -F _brimline brimline"


def zsh() -> Iterator[str]:
    known = commands()
    yield "#compdef brimline"
    yield "# zsh completion for brimline; made by scripts/completion.py"
    yield 'local at="" word'
    yield "for word in ${words[2,CURRENT-1]}; do"
    yield f'  case "$at $word" in ({"|".join(_key(path) for path in known if path)}) at="$at $word" ;; esac'
    yield "done"
    yield 'case "$at ${words[CURRENT-1]}" in'
    for path, name, choices in values(known):
        yield f"  ({_key((*path, name))}) {'compadd -- ' + ' '.join(choices) if choices else '_files'}; return ;;"
    yield "esac"
    yield 'case "$at" in'
    for path, options in known.items():
        yield f"  ({_key(path)}) compadd -- {words(path, options)} ;;"
    yield "esac"


def fish() -> Iterator[str]:
    known = commands()
    yield "# fish completion for brimline; made by scripts/completion.py"
    for name, purpose in COMMANDS.items():
        yield f"complete -c brimline -f -n __fish_use_subcommand -a {name} -d {shlex.quote(purpose)}"
    for path, options in known.items():
        seen = "; and ".join(f"__fish_seen_subcommand_from {name}" for name in path) or "__fish_use_subcommand"
        for name in below(path) if path else ():
            yield f"complete -c brimline -f -n '{seen}' -a {name}"
        for option in options:
            spelled = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            takes = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r -F" * option.takes_value
            yield f"complete -c brimline -n '{seen}' {spelled}{takes} -d {shlex.quote(option.help)}"


def _key(path: Path) -> str:
    return '"' + "".join(f" {name}" for name in path) + '"'


SHELLS: Mapping[str, Callable[[], Iterator[str]]] = {"bash": bash, "zsh": zsh, "fish": fish}

if __name__ == "__main__":
    if sys.argv[1:] not in ([shell] for shell in SHELLS):
        sys.exit(f"usage: python -m scripts.completion {'|'.join(SHELLS)}")
    print("\n".join(SHELLS[sys.argv[1]]()))
