"""Forms of answers that several tasks read: some parts in brackets, and names in a list or in one text."""

from __future__ import annotations

import re
from typing import Any


def parts_of(answer: Any, count: int) -> tuple[Any, ...]:
    """The parts of an answer; nothing but None where it has not as many.

    >>> parts_of([3, "a"], 2), parts_of("a", 2)
    ((3, 'a'), (None, None))
    """
    return tuple(answer) if isinstance(answer, tuple | list) and len(answer) == count else (None,) * count


def names_in(answer: Any) -> list[str] | None:
    """The names in a list, or in one text with spaces, commas or arrows between them; None for anything else.

    >>> names_in("a, b and c"), names_in("a -> b"), names_in(["a ", "b"]), names_in([1])
    (['a', 'b', 'c'], ['a', 'b'], ['a', 'b'], None)
    """
    names = re.sub(r",|->|→|\band\b", " ", answer).split() if isinstance(answer, str) else answer
    if not isinstance(names, list | tuple | set) or not all(isinstance(each, str) for each in names):
        return None
    return [name.strip() for name in names]
