"""Clients and a backend in C, built for one run: what they add of their own is small beside what is measured."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).with_name("c")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """Microseconds of one block of round trips."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    directory: Path

    @classmethod
    def build(cls, directory: Path) -> "Clients":
        for source in SOURCES.glob("*.c"):
            command = ["cc", "-O2", "-pthread", "-o", str(directory / source.stem), str(source)]
            subprocess.run(command, check=True)
        return cls(directory=directory)

    @contextmanager
    def echo(self, port: int) -> Iterator[None]:
        """The trivial backend."""
        process = subprocess.Popen([self.directory / "echo", str(port)])
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    def ping_pong(self, frame: bytes, rounds: int, block: int, ports: Sequence[int]) -> list[list[RoundTrip]]:
        """Of each round, the round trips by port, in the given order."""
        said = self._run("pingpong", frame, str(rounds), str(block), *map(str, ports))
        return [_round_trips([int(word) / 1000 for word in line.split()]) for line in said.splitlines()]

    def pipeline(self, frame: bytes, depth: int, seconds: float, port: int) -> float:
        """Answers per second with ``depth`` requests under way."""
        answers, nanoseconds = map(int, self._run("pipeline", frame, str(depth), str(seconds), str(port)).split())
        return answers / nanoseconds * 1e9

    def _run(self, program: str, frame: bytes, *arguments: str) -> str:
        path = self.directory / "frame"
        path.write_bytes(frame)
        command = [str(self.directory / program), str(path), *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _round_trips(figures: Sequence[float]) -> list[RoundTrip]:
    return [RoundTrip(p50=p50, p99=p99) for p50, p99 in zip(figures[::2], figures[1::2], strict=True)]
