"""The words of the repository: no phrase that has to be read twice, no label but Expected, Got and Hint."""

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
PATTERN = re.compile("|".join([rf"\b(?i:{'|'.join(PHRASES)})\b", *LABELS]))


def phrases(text):
    """The phrases of a text to replace, as 'line: phrase'."""
    lines = enumerate(text.splitlines(), 1)
    return [f"{number}: {found.group().strip()}" for number, line in lines for found in PATTERN.finditer(line)]


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
