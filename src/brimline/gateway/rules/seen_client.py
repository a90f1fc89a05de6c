"""What the rules remember of the client of one connection, from request to request."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brimline.gateway.net.connection import Connection
    from brimline.gateway.rules.writer import Writer

UNKNOWN = "unknown"
"""The software of a client that has not told."""


class SeenClient:
    __slots__ = ("allowed_at", "asked_api_versions", "refused_at", "software", "writer")

    def __init__(self) -> None:
        self.software = UNKNOWN
        self.asked_api_versions: int | None = None
        """In which version it last asked for ApiVersions; ``None``: it has not."""
        self.refused_at = 0.0
        """Up to when its wholly refused requests have used up their rate."""
        self.allowed_at = 0.0
        """When it last sent a Produce request of which something was allowed, while requests were looked into."""
        self.writer: Writer | None = None


def seen_on(connection: "Connection") -> SeenClient:
    if connection.seen is None:
        connection.seen = SeenClient()
    return connection.seen
