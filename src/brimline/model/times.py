"""A moment as text, and back: in UTC, with milliseconds, as Kafka's own tools write it."""

from datetime import UTC, datetime


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(text: str) -> datetime:
    """``ValueError`` for what is no time. One that names no zone is in UTC."""
    moment = datetime.fromisoformat(text)
    try:
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{text:.80} is before the first year or after the last") from error
