"""Full followers and cordoned log dirs for people: only what asks for attention."""

from collections.abc import Iterator

from rich.text import Text

from brimline.cli.followers_shown import ShownCordon, ShownFollowers
from brimline.cli.glyphs import printable

_INDENT = " " * 10


def follower_lines(followers: ShownFollowers) -> Iterator[Text]:
    for each in followers.full:
        yield _line("NO ROOM", "bold yellow" if each.is_held_back else "bold red", each.sentence)
        yield Text(f"{_INDENT}{printable(each.what_to_do)}", "cyan")
    if followers.full:
        yield Text(f"{_INDENT}{printable(followers.why)}", "dim")
    if followers.unknown:
        yield _line(
            "PEERS",
            "bold magenta",
            f"nothing is known of the disks of {followers.unknown} of {followers.others} other brokers, and nothing is "
            f"held back for them{f': {followers.failure}' if followers.failure else ''}",
        )


def cordon_lines(cordon: ShownCordon) -> Iterator[Text]:
    for path in cordon.log_dirs:
        yield _line("CORDON", "bold yellow", f"{path} is full: no new replica is put there")
    for path in cordon.by_operator:
        yield _line("CORDON", "bold", f"{path}: closed to new replicas by an operator, and left so")
    for path in cordon.kept_open:
        yield _line("OPEN", "bold yellow", f"{path} is full, and not cordoned: no other broker is known to have room")
    if cordon.failure is not None:
        yield _line("CORDON", "bold red", f"full log dirs cannot be cordoned, or not be opened: {cordon.failure}")


def _line(word: str, style: str, text: str) -> Text:
    return Text.assemble("  ", (f"{word:<8}", style), printable(text))
