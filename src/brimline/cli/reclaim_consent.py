"""The question before a deletion. Where nobody can be asked, the answer is no."""

from typing import TextIO

from brimline.guard.reclaim_preview import Preview
from brimline.model import BrimlineError, human_bytes, human_count


def refuse_without_terminal(answers: TextIO) -> None:
    """Raises ``BrimlineError``."""
    if not answers.isatty():
        raise BrimlineError("nobody is there to be asked: nothing was deleted; --yes deletes without asking")


def consent(shown: Preview, answers: TextIO, questions: TextIO) -> bool:
    questions.write(f"{_question(shown)}\nDelete? Type yes to go on: ")
    questions.flush()
    return answers.readline().strip().lower() == "yes"


def _question(shown: Preview) -> str:
    partitions, segments, groups = len(shown.trims), shown.trimmed_segments, len(shown.radius.groups)
    what = (
        f"{human_bytes(shown.trimmed_bytes)} in {human_count(segments)} segment{'s' * (segments != 1)} of "
        f"{human_count(partitions)} partition{'s' * (partitions != 1)}, at most {human_count(shown.radius.records)} "
        "records, go on every replica, for good."
    )
    if groups:
        what += f"\n{human_count(groups)} consumer group{'s' * (groups != 1)} would miss records."
    return what
