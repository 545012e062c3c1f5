"""The index for the search on every page: a script, because a page opened from the disk cannot read other files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from minigrad.core.primitive import P
from minigrad_course.unit import Unit

from .api import entries
from .cells import notebooks, page_of, sections_of
from .coming_from import tables
from .frames import Section
from .frames import texts as pages
from .howto import FIRST, howtos
from .ideas import ideas
from .markup import Lecture, slug, texts
from .overview import idea_anchor
from .rooms import COMPILER, ONLOOKERS, PACKAGE, ROOMS, purpose_of
from .terms import meanings

# Phrases that find each other, without the small words that the search skips.
SYNONYMS = (
    ("learning rate", "lr", "step size"),
    ("backward twice", "backward again", "second time", "retain_graph"),
    ("autograd", "autodiff", "automatic differentiation", "backpropagation", "backprop", "reverse mode"),
    ("forward mode", "jvp", "tangent", "dual numbers"),
    ("forward mode", "jvp"),
    ("guard", "retracing", "recompilation"),
    ("jacobian", "vjp", "several outputs"),
    ("gradient", "derivative", "slope"),
    ("gradient function", "gradient rule", "backward function"),
    ("stop gradient", "detach", "no_grad"),
    ("recomputation", "rematerialization", "checkpoint", "gradient checkpointing", "activation checkpointing"),
    ("order", "topological sort", "topological order"),
    ("computational graph", "compute graph", "computation graph", "dag"),
    ("record", "tape", "manifest"),
    ("matrix product", "matrix multiplication", "matmul"),
    ("concat", "concatenate", "cat"),
    ("clamp", "clip"),
    ("one hot", "one_hot"),
    ("gather", "take", "index_select"),
    ("transpose", "permute"),
    ("gpu", "cuda"),
    ("move to gpu", "to device", "cpu:1"),
    ("same device", "different devices"),
    ("stream", "queue", "asynchronous", "synchronize"),
    ("all-reduce", "collective", "ring"),
    ("distributed", "data parallel", "ddp", "several machines"),
    ("sharded optimizer", "zero", "fsdp"),
    ("operator fusion", "fusion", "fuse", "fused kernel"),
    ("memory bandwidth", "bytes moved", "roofline"),
    ("compile", "jit", "graph mode", "deferred execution", "lazy"),
    ("critical path", "longest chain", "span"),
    ("list scheduling", "scheduler", "gantt chart"),
    ("launch overhead", "kernel launch", "cuda graphs"),
    ("deep reinforcement learning", "reinforcement learning", "policy gradient", "deep rl", "reinforce"),
    ("gnn", "graph neural network", "graph convolution", "message passing", "gcn"),
    ("language model", "gpt", "transformer", "llm"),
    ("common subexpression elimination", "cse", "merging"),
    ("rewrite rule", "algebraic simplification", "peephole"),
    ("weight decay", "l2 regularization"),
    ("data loader", "dataloader", "batches", "minibatches"),
    ("random seed", "manual_seed", "reproducible"),
    ("mixed precision", "autocast", "half precision"),
    ("in-place", "mutation"),
    ("right", "correct"),
    ("fall", "drop", "decrease", "go down"),
    ("unbalanced", "imbalanced", "rare class"),
    ("view", "alias", "shared memory", "strides"),
    ("version", "version counter", "modified by an inplace operation"),
    ("windows", "im2col", "as_strided", "sliding window"),
    ("save model", "state_dict", "save_file"),
    ("activation", "nonlinearity", "activation function"),
    ("library of layers", "caffe", "layer library"),
    ("data-parallel system", "mapreduce", "spark"),
    ("hand-written gradient", "manual backprop", "gradient by hand"),
)


class Line(NamedTuple):
    """Something that can be found."""

    name: str
    kind: str
    address: str
    said: str  # what is shown with it
    text: str = ""  # what is searched too; the sentence with the words is shown
    hidden: str = ""  # what is searched and never shown: answers


def search_index(known: dict[str, Unit], read: dict[str, Lecture]) -> str:
    """The script with a line for each thing that can be found, and the synonyms."""
    lines = [*_lectures(known, read), *_howtos(read), *_notebooks(known), *_texts(read), *_reference(read),
             *_words(), *_ideas(), *_rooms()]
    rows = ",\n".join(map(_json, lines))
    return f"const INDEX = [\n{rows}\n];\nconst SYNONYMS = {_json(SYNONYMS)};\n".replace("</", "<\\/")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lectures(known: dict[str, Unit], read: dict[str, Lecture]) -> Iterable[Line]:
    for key, unit in known.items():
        kind, said = f"lecture {unit.number:02}", texts(read[key])
        for section, (shown, hidden) in zip(_sections(read, key), said):
            if section.level == 1:
                yield Line(unit.title, kind, f"{key}.html", unit.question, shown, hidden)
            else:
                yield Line(section.text, kind, f"{key}.html#{section.anchor}", unit.title, shown, hidden)


def _notebooks(known: dict[str, Unit]) -> Iterable[Line]:
    """The sections of demos and exercises.  Their texts are searched and not shown: answers may stand in them."""
    for key, kind in notebooks():
        said = known[key].title if key in known else ""
        for section, text in sections_of(key, kind):
            address = f"{page_of(key, kind)}#{section.anchor}"
            yield Line(section.text, f"{kind} {key.partition('_')[0]}", address, said, hidden=text)


def _texts(read: dict[str, Lecture]) -> Iterable[Line]:
    """The sections of the pages that are neither lectures nor reference."""
    for name in pages():
        if name in ("glossary", "licences", FIRST):
            continue
        kind, title = name.partition("_")[0], read[name].title
        for section, (shown, hidden) in zip(_sections(read, name), texts(read[name])):
            anchor = "" if section.level == 1 else f"#{section.anchor}"
            yield Line(section.text, kind, f"{name}.html{anchor}", title, shown, hidden)


def _howtos(read: dict[str, Lecture]) -> Iterable[Line]:
    """The how-to pages, found also by the other words for them, and the page that lists them."""
    yield Line(read[FIRST].title, "how-to", f"{FIRST}.html", "Short answers, each with code that runs")
    for name in howtos():
        (shown, _), *_ = texts(read[name])
        text, _, others = shown.partition("Also asked as:")
        yield Line(read[name].title, "how-to", f"{name}.html", text.partition(". ")[0], text, others)


def _ideas() -> Iterable[Line]:
    for idea in ideas():
        yield Line(idea.partition(": ")[2], "idea", f"coverage.html#{idea_anchor(idea)}", "What the course covers")


def _rooms() -> Iterable[Line]:
    for room in (*ROOMS, *ONLOOKERS, *(f"compile/{inner}" for inner in COMPILER)):
        said = purpose_of(PACKAGE / room / "__init__.py").replace("`", "")
        yield Line(room, "room", f"rooms.html#{slug(room)}", said)


def _sections(read: dict[str, Lecture], key: str) -> list[Section]:
    return read[key].sections


def _reference(read: dict[str, Lecture]) -> Iterable[Line]:
    for listed in entries().values():
        for entry in listed:
            body = " ".join(entry.text.partition(">>> ")[0].replace("`", "").split())
            parameters = " ".join(re.findall(r"\w+", entry.signature))
            yield Line(entry.name, "API", f"api.html#{entry.name}", entry.summary, body, parameters)
    for op in P:
        said = f"{op.name}({', '.join(op.inputs)}), a primitive"
        yield Line(op.name, "primitive", f"primitives.html#{op.name}", said)
    for section, (shown, hidden) in zip(_sections(read, "errors"), texts(read["errors"])):
        if section.level > 1:
            yield Line(section.text, "error", f"errors.html#{section.anchor}", "", shown, hidden)
    for row in (row for rows in tables().values() for row in rows):
        yield Line(row.names, "elsewhere", f"coming_from.html#{slug(row.names)}", row.here.replace("`", ""), row.why)
    for section, (shown, hidden) in zip(_sections(read, "coming_from"), texts(read["coming_from"])):
        if section.level > 2:
            yield Line(section.text, "elsewhere", f"coming_from.html#{section.anchor}", "", shown, hidden)


def _words() -> Iterable[Line]:
    for word, meaning in meanings().items():
        yield Line(word, "glossary", f"glossary.html#{slug(word)}", meaning)
