"""The words of the repository: no phrase that must be read twice, no label but Expected, Got and Hint."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Phrases that have a plainer form.  "There is no" and "no longer" are accepted.  The groups in the patterns keep this
# list from matching itself.
PHRASES = [
    r"some(?:body)", r"no(?:body)", r"who(?:ever)", r"whom(?:ever)", r"to(?:ld)", r"be(?:sides)", r"hardly (?:ever)",
    r"the way (?:there|back)", r"for (?:who)", r"those (?:who)", r"of (?:whom)",
    r"(?<!there )(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b|better\b|worse\b|one\b)[a-z]+",
    r"(?:which|that) (?:is|are) (?-i:none)", r"is none (?:of)", r"(?:is|are) otherwise",
    r"knows? (?:nothing)", r"makes? nothing (?:of)",
]
# A label begins a line of a message, two spaces in.
LABELS = [
    r"\\n  (?!Expected:|Got:|Hint:|Line:)[A-Z][a-z]+(?: [a-z]+)?: ",
    r"\b(?:Expect|Actual|Way out|Solution|Tip)(?::)",
]
# The frame of another language.  "Would have to" and the questions "does it have to" are accepted.
FRAME = [
    r"(?:inside|outside) (?:of)", r"in the place (?:of)", r"so (?:many)", r"belongs? (?:into)", r"in the (?:mean) of",
    r"has (?:to)", r"(?:they|you|we|parts|rules|numbers|that) have (?:to)",
    r"(?:has|have|in|of) another (?:dtype|shape|order|length|size|kind|type)",
]
# Generated texts with a wrong article or plural: `a_type`, `with_article` (support/words) and `counted`
# (support/table) write the right ones.
GENERATED = [
    r"\ban? \{(?:type\()",
    r"\b(?:is|not|or) a (?:int|int\d+|index|array|object|integer|element|argument|axis|NoneType|ndarray)\b",
    r"\b(?<!- )1 (?:dimensions|parameters|steps|values|items)\b",
]
# Where these are still to be read for: the frame, and generated texts.
LATER = ("notebooks/minigrad_course/", "tests/compile/", "tests/viz/", "tests/course/", "notebooks/")
LATER_GENERATED = (*LATER, "minigrad/compile/", "minigrad/viz/")
PATTERN = re.compile("|".join([rf"\b(?i:{'|'.join(PHRASES)})\b", *LABELS]))
FRAMED = re.compile(rf"\b(?i:{'|'.join(FRAME)})\b")
WRONG = re.compile("|".join(GENERATED))
# In messages of the library, where the number may be 1.
COUNTS = re.compile(r"\{len\([^{}]*\)(?::,)?\} (?:(?!of\b)[a-z]+s)\b|\{[^{}]*ndim\} (?:dimensions)")


def phrases(text, pattern=PATTERN):
    """The phrases of a text to replace, as 'line: phrase'."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{number}: {found.group().strip()}" for number, line in lines for found in pattern.finditer(line)]


def texts():
    """Each tracked text file of the repository by its path, without third-party files."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for file in files:
        data = (ROOT / file).read_bytes() if (ROOT / file).exists() else b""
        if "vendor" not in file and b"\0" not in data:
            yield file, data.decode("utf-8")


@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="not a git checkout")
def test_texts_hold_no_phrase_to_read_twice():
    found = [f"{file}:{each}" for file, text in texts() for each in phrases(text)]
    assert found == []


@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="not a git checkout")
def test_texts_have_an_english_frame_and_right_articles():
    read = [(file, text) for file, text in texts() if not file.startswith(LATER)]
    found = [f"{file}:{each}" for file, text in read for each in phrases(text, FRAMED)]
    read = [(file, text) for file, text in read if not file.startswith(LATER_GENERATED)]
    found += [f"{file}:{each}" for file, text in read for each in phrases(text, WRONG)]
    found += [f"{file}:{each}" for file, text in read if file.startswith("minigrad/") for each in phrases(text, COUNTS)]
    assert found == []


@pytest.mark.parametrize("text", [
    "inside" " of a block", "Outside" " of it", "in the place" " of x", "so" " many rows", "it has" " to wait",
    "they have" " to wait", "in another" " order", "f'not a {" "type(x).__name__}'", "1 is a" " int",
    "shape (3,) has 1" " dimensions",
])
def test_frames_are_found(text):
    assert len([*phrases(text, FRAMED), *phrases(text, WRONG)]) == 1


def test_counts_that_may_be_1_are_found():
    assert phrases("f'{len(x)} rows, {len(y):,} rows, {x.ndim} dimensions'", COUNTS) == [
        "1: {len(x)} rows", "1: {len(y):,} rows", "1: {x.ndim} dimensions",
    ]
    assert phrases("f'{counted(len(x), \"row\")}, {len(x)} of 3'", COUNTS) == []


@pytest.mark.parametrize("text", [
    "the inside and the outside", "would have to wait", "how often does it have to run?", "in place",
    "on another device",
    "is an int", "11 dimensions", "as many", "up to n - 1 items",
])
def test_english_frames_are_accepted(text):
    assert phrases(text, FRAMED) == [] == phrases(text, WRONG)


@pytest.mark.parametrize("text", [
    "some" "body", "kept for the way " "back", "a list is" " no model", "They were" " no numbers", "which is" " none",
    "it to" "ld us", "Way out" ": x.item()", r"x\n  Expect" "ed one: 1", "f(x)\\n  Advice" ": y",
])
def test_phrases_are_found(text):
    assert len(phrases(text)) == 1


@pytest.mark.parametrize("text", [
    "there is no file", "There are no kernels", "is no longer used", "are no more than two", "the list is none",
    r"refused\n  Expected: 1\n  Got: 2\n  Hint: use 1\n  Line: 7", "beside", "those that", "totold",
])
def test_plain_phrases_are_accepted(text):
    assert phrases(text) == []


def test_phrases_are_listed_with_their_lines():
    assert phrases("x\nno" "body, be" "sides") == ["2: no" "body", "2: be" "sides"]
