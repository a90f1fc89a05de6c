"""A run as it goes on: on a terminal the step that is under way, alive; in a pipe a line for each that has ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.progress import Progress as LiveLine
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from brimline.cli.shared.output import console_on
from brimline.fleet.session.progress import Lines, Progress, RunStep
from brimline.model import human_count


class Terminal:
    """What has ended stays above; what goes on is drawn over itself below."""

    def __init__(self, live: LiveLine) -> None:
        self._live = live
        self._task: TaskID | None = None

    def show(self, step: RunStep) -> None:
        if step.seconds is not None:
            self._end(step)
            return
        files = f"  {human_count(step.files)} files" if step.files else ""
        if self._task is None:
            self._task = self._live.add_task(f"{step.name}{files}", total=None)
        self._live.update(self._task, description=f"{step.name}{files}")

    def _end(self, step: RunStep) -> None:
        if self._task is not None:
            self._live.remove_task(self._task)
            self._task = None
        self._live.console.print(Text(step.sentence, "red" if step.failure else ""), soft_wrap=True)


@contextmanager
def progress_on(stream: TextIO) -> Iterator[Progress]:
    if not stream.isatty():
        yield Progress(Lines(stream))
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with LiveLine(*columns, console=console_on(stream), transient=True) as live:
        yield Progress(Terminal(live))
