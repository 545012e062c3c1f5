"""The how-to pages: each is listed, fits on a screen, and its code prints what the page promises."""

import re
from html import unescape

import pytest

from lectures.site.frames import LECTURES
from lectures.site.howto import howtos, title

LINES, CODE, COLUMNS = 34, 22, 80  # of the source of a page, of its longest block, and of code
# What the output of each page must show.  A view's words are the title of its frame.
SHOWS = {
    "accumulate": "True", "backward_twice": "[24.0]", "browser": "[2., 4., 6.]",
    "check_gradient": "yours 0.377", "class_weights": "-0.250]",
    "clip": "[1.0, 0.5]", "loss_does_not_fall": "guessing would be 1.099", "print_in_jit": "h is [0.762, 0.964]",
    "distributed": "rank 0 of 1", "grad_or_backward": "[2.0, 40.0]",
    "predict": "digit", "shapes_do_not_fit": "1 Flatten (2, 144)",
    "export": "OnnxModel(input: float32 (batch, 2)", "fast": "timeline: 3 launches",
    "fine_tune": "missing=['2.weight', '2.bias'], unexpected=[]", "freeze": "None True (2, 8)", "gpu": "True",
    "grad_none": "[18.0, 36.0] [6.0, 12.0]", "inner_outputs": "(3, 8)", "install": "[2., 4.]",
    "loops_in_jit": "6 steps 1 trace", "memory": "0 checkpoints: at most 524 kB kept",
    "mixed_precision": "float32 float32 float32",
    "nan": "divide made a nan", "own_dataset": "(4, 2, 2)", "own_gradient": "[0.0, 2.0] [2.0, 3.0]",
    "own_kernel": "gated_1", "own_layer": "['scale', 'inner.weight', 'inner.bias']",
    "per_example": "'weight': (3, 1, 2)", "picture": "picture of a graph", "plot_training": "training: 30 steps",
    "pytorch_program": "torch.Size([3, 4]) 0", "pytorch_weights": "[[3.0, 0.0]]", "reproducible": "True",
    "retrace": "argument 1 was 1 and is 2", "save_and_load": "0\n100", "schedules": "[0.25, 0.5, 0.75, 1.0, 0.905",
    "second_derivatives": "12.0 288.0", "shared_weights": "1 ['embed.weight', 'out.weight']",
    "step_through_backprop": "steps", "stop_early": "4 1.5 3", "summary": "2,970", "train_a_network": "% right",
    "what_got_fused": "by a library", "with_scipy": "[1. 1. 1. 1.] True",
}


def test_each_page_is_listed_once():
    listed = re.findall(r"{{(.*?)}}", (LECTURES / "howto.md").read_text(encoding="utf-8"))
    assert sorted(" ".join(listed).split()) == sorted(name.partition("_")[2] for name in howtos())


@pytest.mark.parametrize("name", howtos())
def test_a_page_fits_on_a_screen_and_says_what_else_it_is_called(name):
    text = howtos()[name]
    blocks = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    assert len(text.splitlines()) <= LINES and all(block.count("\n") <= CODE for block in blocks)
    assert all(len(line) <= COLUMNS for block in blocks for line in block.splitlines())
    assert title(text) != text and "\nAlso asked as: " in text and re.search(r"^```(try|run)$", text, re.MULTILINE)


def test_pages_show_what_their_code_prints(site):
    missing = []
    for name in howtos():
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        shown = re.findall(r'<pre class="output">(.*?)</pre>|<iframe src="[^"]*" title="(.*?)"', text, re.DOTALL)
        said = unescape("\n".join(map("".join, shown)))
        missing += [] if SHOWS[name.partition("_")[2]] in said else [(name, said)]
    assert missing == []
