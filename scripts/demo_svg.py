"""A recording of the demo as one animated SVG: what was on the stage, frame by frame, in a terminal's colours.

The frames stand below each other and are moved past a window. A line of text that is seen often is kept once. Where
nothing is animated, the last frame is seen: the scoreboard.
"""

import io
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from rich.console import Console, RenderableType
from rich.segment import Segment

_COLUMNS, _ROWS = 100, 34
_CHAR, _LINE, _EDGE = 7.2, 16, 12
_SPEED = 3
_LEAST_SECONDS = 1.5
_HOLD_SECONDS = 12
_COLOURS = {"green": "#3fb950", "red": "#f85149", "blue": "#58a6ff", "yellow": "#d29922"}
_FONT = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
_INK, _DIM, _PAPER = "#e6edf3", "#7d8590", "#0d1117"


class Film:
    def __init__(self) -> None:
        self._frames: list[tuple[float, list[str]]] = []
        self._console = Console(width=_COLUMNS, force_terminal=True, color_system="standard", file=io.StringIO())

    def take(self, seconds: float, seen: RenderableType) -> None:
        """One more frame; one that came a moment before is replaced."""
        lines = self._console.render_lines(seen, self._console.options.update(height=None), pad=False)
        frame = [text for line in lines[-_ROWS:] for text in [_text(line)]]
        if len(self._frames) > 1 and seconds - self._frames[-2][0] < _LEAST_SECONDS:
            self._frames.pop()
        self._frames.append((seconds, frame))

    def svg(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        width, height = round(_COLUMNS * _CHAR + 2 * _EDGE), _ROWS * _LINE + 2 * _EDGE
        known: dict[str, str] = {}
        film = []
        for number, (_, frame) in enumerate(self._frames):
            for row, line in enumerate(frame):
                if line:
                    name = known.setdefault(line, f"l{len(known)}")
                    film.append(f'<use href="#{name}" y="{number * height + _EDGE + (row + 1) * _LINE - 4}"/>')
        yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        yield "<title>make demo: a recorded run</title>"
        yield f"<style>text{{font:12px {_FONT};fill:{_INK};white-space:pre}}"
        yield f".d{{fill:{_DIM}}}.b{{font-weight:bold}}"
        yield "".join(f".{name}{{fill:{value}}}" for name, value in _COLOURS.items())
        yield from self._motion(height)
        yield "</style><defs>"
        for line, name in known.items():
            yield f'<text id="{name}" x="{_EDGE}">{line}</text>'
        yield f'</defs><rect width="100%" height="100%" rx="8" fill="{_PAPER}"/><g class="film">'
        yield from film
        yield "</g></svg>"

    def _motion(self, height: int) -> Iterator[str]:
        begin, end = self._frames[0][0], self._frames[-1][0]
        lasts = (end - begin) / _SPEED + _HOLD_SECONDS
        last = (len(self._frames) - 1) * height
        yield f".film{{transform:translateY(-{last}px);animation:film {lasts:.1f}s step-end infinite}}@keyframes film{{"
        for number, (seconds, _) in enumerate(self._frames):
            yield f"{100 * (seconds - begin) / _SPEED / lasts:.2f}%{{transform:translateY(-{number * height}px)}}"
        yield f"100%{{transform:translateY(-{last}px)}}}}"


def _text(line: list[Segment]) -> str:
    """A line as spans, each at its place, so that no font's widths add up."""
    spans, column = [], 0
    for segment in Segment.simplify(line):
        plain = segment.text.rstrip("\n")
        if plain.strip():
            style = segment.style
            colour = style.color.name if style and style.color else ""
            names = [name for name, on in (("d", style and style.dim), ("b", style and style.bold)) if on]
            names += [colour] if colour in _COLOURS else []
            of = f" class={quoteattr(' '.join(names))}" if names else ""
            spans.append(f'<tspan x="{_EDGE + column * _CHAR:.1f}"{of}>{escape(plain)}</tspan>')
        column += segment.cell_length
    return "".join(spans)
