"""Right answers in another form, such as numbers in words, and which parts of a wrong answer are right."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from string import ascii_letters
from typing import Any

from .compare import same
from .texts import texts_of

FORMULA = re.compile(r"(?:[\d.+*/() -]|\de[+-]?\d|\b(?:log|log2|log10|sqrt|exp)(?= *[(\d])|\binf\b)+")
LONGEST = 100  # characters of a formula: Python cannot read one with thousands of signs


def number_in(text: str) -> float | None:
    """The number that a text says in words or as a formula; None where it says something else.

    >>> number_in("none"), number_in("a tenth"), number_in("log 10"), number_in("1 / sqrt(100)"), number_in("a lot")
    (0.0, 0.1, 2.302585092994046, 0.1, None)
    >>> number_in("three thousand"), number_in("one tenth"), number_in("10²")
    (3000.0, 0.1, 100.0)
    """
    if len(text) > LONGEST:
        return None
    text = re.sub(r"^ *(?:about|nearly|almost|roughly|some|~|≈) *(?=\S)", "", text)
    texts = texts_of(Path(__file__).parent)
    words = {} if texts is None else texts.data["numbers"]
    text = re.sub(r"(?<=ty)-(?=[a-z])", " + ", text)  # twenty-one
    formula = re.sub(r"[a-z]+|[^\x00-\x7f]|\^", lambda word: words.get(word[0], word[0]), text.lower().strip(" .!"))
    formula = re.sub(r"(log2|log10|log|sqrt|exp) +([\d.]+)", r"\1(\2)", formula.strip())
    formula = re.sub(r"(?<=\d) +(?=\()", " * ", formula)  # three (1000)
    if not FORMULA.fullmatch(formula) or re.search(r"(?<!log)(?<!log1)[\d.)] *\(", formula):
        return None
    try:
        return float(eval(re.sub(r"(?<![\w.])(\d+)(?![\w.])", r"\1.0", formula), vars(math).copy()))
    except (SyntaxError, ValueError, TypeError, ArithmeticError):
        return None


def bare_number(answer: Any) -> Any:
    """The number in a text that names a unit after it; any other answer as it is.

    >>> bare_number("about 50 times"), bare_number("500 MB"), bare_number(50), bare_number("a lot")
    (50.0, 500.0, 50, 'a lot')
    """
    if not isinstance(answer, str):
        return answer
    found = number_in(answer)
    found = number_in(_without_unit(answer)) if found is None else found
    return answer if found is None else found


def in_numbers(answer: Any, right: Any) -> Any:
    """An answer with numbers in the places of words and names, where the right answer has numbers there.

    >>> in_numbers("twice", 3), in_numbers(["none", 2], [1, 2]), in_numbers("once", "once")
    (2.0, [0.0, 2], 'once')
    >>> in_numbers({"first": 1, "second": "two"}, (1, 2)), in_numbers("one and two", [1, 2])
    ([1, 2.0], [1.0, 2.0])
    """
    if _are_counts(right) and isinstance(answer, str) and not _is_number(answer):
        parts = [number_in(each) for each in re.split(r",? and |[, ]+", answer.strip())]
        return parts if len(parts) == len(right) and None not in parts else answer
    if _are_counts(right) and isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(right, list | tuple) and isinstance(answer, list | tuple) and len(answer) == len(right):
        return type(answer)([in_numbers(*pair) for pair in zip(answer, right)])
    if not isinstance(answer, str) or not is_count(right) or _is_number(answer):
        return answer  # digits in quotation marks have a hint of their own
    number = number_in(answer)
    return answer if number is None else number


def is_count(right: Any) -> bool:
    """Whether an answer is one number; True and False are words."""
    return isinstance(right, int | float) and not isinstance(right, bool)


def _are_counts(right: Any) -> bool:
    return isinstance(right, list | tuple) and bool(right) and all(map(is_count, right))


def other_form(answer: Any, right: Any, example: str = "") -> str | None:
    """How to write an answer that may be right, where it is written in another form.

    >>> other_form("0.1", 0.1), other_form((0, 1), 0.1), other_form([0.1], 0.1), other_form({1, 3}, [1, 3])
    ('without the quotation marks', 'with a point, not a comma: 0.1', ..., 'in brackets, [ ], which keep the order')
    >>> other_form("a lot", 10, "7")
    'a number, such as 7'
    """
    several = isinstance(right, list | tuple)
    if isinstance(right, str | dict | bool) or (several and all(isinstance(each, str) for each in right)):
        return None
    if isinstance(answer, str):
        alone = _without_unit(answer)
        if _is_number(answer):
            return "without the quotation marks"
        if not is_count(right):
            return None
        if _is_number(alone):
            return f"the number alone: {alone}"
        return f"a number, such as {example}" if example else "a number"
    if isinstance(answer, list | tuple) and any(isinstance(each, str) and _is_number(each) for each in answer):
        return "the numbers without quotation marks"
    if isinstance(right, int | float):
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == int(right) != right:
            return f"with a point, not a comma: {answer[0]}.{answer[1]}"
        if isinstance(answer, list | tuple) and len(answer) == 1:
            return "one number, without brackets"
    elif isinstance(answer, set):
        return "in brackets, [ ], which keep the order"
    return None


def other_shape(answer: Any, right: Any, example: str = "") -> str | None:
    """How many numbers to write, where a wrong answer is one number in place of several, a text, or the like.

    >>> other_shape([1, 2], 10), other_shape("1 and 2", [1, 2], "[3, 4]"), other_shape([1, 3], [1, 2])
    ('one number', 'numbers, such as [3, 4]', None)
    """
    such = f", such as {example}" if example else ""
    if is_count(right):
        return f"one number{such}" if isinstance(answer, list | tuple | dict | set) else None
    if not _are_counts(right):
        return None
    is_list = isinstance(answer, list | tuple) and not (len(answer) == 1 and isinstance(answer[0], list | tuple))
    return None if is_list else f"numbers{such or ' in brackets'}"


def _without_unit(text: str) -> str:
    return text.strip().rstrip(ascii_letters + "µ ")


def _is_number(text: str) -> bool:
    """Whether a text is a number in digits, or several with commas between them."""
    try:
        return bool([float(part) for part in text.strip("[]() ").split(",")]) and bool(re.search(r"\d", text))
    except ValueError:
        return False


# ---- how a wrong answer differs --------------------------------------------------------------------------------------


def beside(answer: Any, right: Any) -> str:
    """How a wrong prediction differs from the right answer, in one word.

    >>> beside(3, 10), beside([1, 3], [1, 2]), beside("a", "b")
    ('larger', 'different', 'different')
    """
    if not is_count(right) or not is_count(answer) or answer != answer:
        return "different"
    return "larger" if answer < right else "smaller"


def right_parts(answer: Any, right: Any, any_order: bool = False) -> str:
    """Which parts of a half-right answer are right, as a sentence; empty where all parts are wrong.

    >>> right_parts([1, 3, 5], [1, 2, 5]), right_parts((2, 10), (2, 4)), right_parts([1, 2], [3, 4])
    ('Parts 1 and 3 of 3 are right.', 'Part 1 of 2 is right.', '')
    >>> right_parts(["a", "b"], ["b", "c"], any_order=True)
    '1 of yours is right, 1 too many, 1 missing.'
    """
    if not all(isinstance(each, list | tuple) for each in (answer, right)):
        return ""
    if any_order:
        return _chosen(answer, right)
    if len(answer) != len(right) or len(right) < 2:
        return ""
    good = [str(number) for number, pair in enumerate(zip(answer, right), 1) if same(*pair)]
    if not 0 < len(good) < len(right):
        return ""
    are = "Part {} of {} is right." if len(good) == 1 else "Parts {} of {} are right."
    return are.format(" and ".join(filter(None, [", ".join(good[:-1]), good[-1]])), len(right))


def _chosen(answer: Sequence[Any], right: Sequence[Any]) -> str:
    good = sum(each in right for each in answer)
    if not good:
        return ""
    said = f"{good} of yours {'is' if good == 1 else 'are'} right"
    return f"{said}, {len(answer) - good} too many, {len(right) - good} missing."
