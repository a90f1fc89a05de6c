"""The topics that an operator protects, as written: regular expressions with a comma between them.

A comma inside of braces belongs to the expression, as in ``[a-z]{2,4}``; anywhere else it cannot, since no topic's name
has one.
"""

import re

_BETWEEN = re.compile(r",(?![^{}]*\})")


def protected_patterns(text: str) -> tuple[str, ...]:
    """``ValueError`` with the words for what is wrong."""
    patterns = tuple(pattern for pattern in (part.strip() for part in _BETWEEN.split(text)) if pattern)
    for pattern in patterns:
        if pattern.count("{") != pattern.count("}"):
            raise ValueError(f"{pattern} has a brace too few or too many")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern} is not a regular expression: {error}") from error
    return patterns
