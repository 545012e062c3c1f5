"""Answers of real newcomers to unit 02, in addition to the declared mistakes: each gets feedback that helps."""

import pytest

import minigrad as mg
from minigrad_course.feedback import Feedback
from minigrad_course.unit import units
from minigrad_course.units.u02_arrays.memory_maps import memory_map
from tests.course.running import said_to

TASKS = units()["02_arrays"].tasks
HEADS = {
    "refilled": "w, buffer, batches", "transposed": "shape, strides, axes", "broadcasted": "shape, strides, target",
    "windowed": "shape, strides, axis, size, step", "convolve": "pictures, filters",
}
LOOP = (
    "losses = []\n    for b in batches:\n        buffer[:] = mg.asarray(b)\n        losses.append({})\n"
    "    return sum(losses)"
)
FUNCTIONS = {
    "unchanged": ("refilled", LOOP.format("(w * buffer).sum()"), "keeps the buffer itself"),
    "a slice": ("refilled", LOOP.format("(w * buffer[:]).sum()"), "a view of the same memory"),
    "copies the weights": ("refilled", LOOP.format("(w.copy() * buffer).sum()"), "keeps the buffer itself"),
    "a copy": ("refilled", LOOP.format("(w * buffer.copy()).sum()"), "✓"),
    "plus zero": ("refilled", LOOP.format("(w * (buffer + 0)).sum()"), "✓"),
    "numbers": ("refilled", LOOP.format("(w * buffer).sum().item()"), "has no history"),
    "detached losses": ("refilled", LOOP.format("(w * buffer.copy()).sum().detach()"), "lost their history"),
    "without the buffer": (
        "refilled", "return sum((w * mg.asarray(b)).sum() for b in batches)", "keep buffer[:] = batch"),
    "another buffer": (
        "refilled", "losses = []\n    for b in batches:\n        buffer = mg.asarray(b)\n"
        "        losses.append((w * buffer).sum())\n    return sum(losses)", "keep buffer[:] = batch"),
    "returns in the loop": (
        "refilled", "for b in batches:\n        buffer[:] = mg.asarray(b)\n        last = (w * buffer).sum()\n"
        "    return last", "the last batch alone"),
    "with torch's clone": ("refilled", LOOP.format("(w * buffer.clone()).sum()"), "clone"),
    "no return": ("refilled", LOOP.format("(w * buffer.copy()).sum()").replace("return ", ""), "a `return`"),
    "the list of losses": ("refilled", LOOP.format("(w * buffer.copy()).sum()").replace("sum(losses)", "losses"),
                           "the list of losses"),
    "returns the first loss": (
        "refilled", LOOP.format("(w * buffer.copy()).sum()").replace("    return", "        return"),
        "inside the loop"),
    "a backward pass for each batch": (
        "refilled", "losses = []\n    for b in batches:\n        buffer[:] = mg.asarray(b)\n"
        "        losses.append((w * buffer).sum())\n        losses[-1].backward()\n    return sum(losses)",
        "no backward() inside"),
    "arrays of sizes": (
        "transposed", "import numpy as np\n    return np.array(shape)[list(axes)], np.array(strides)[list(axes)]",
        "tuple() around each"),
    "generators": ("transposed", "return (shape[a] for a in axes), (strides[a] for a in axes)", "tuple() around each"),
    "two axes only": ("transposed", "i, j = axes\n    return (shape[i], shape[j]), (strides[i], strides[j])",
                      "any number of axes"),
    "a tuple as an index": ("transposed", "return shape[axes], strides[axes]", "one index at a time"),
    "pairs": ("transposed", "return tuple((shape[a], strides[a]) for a in axes)", "these are pairs"),
    "new strides": (
        "transposed", "new = tuple(shape[a] for a in axes)\n    out, step = [], 1\n    for size in new[::-1]:\n"
        "        out.insert(0, step)\n        step *= size\n    return new, tuple(out)", "those of a new array"),
    "lists": ("transposed", "return [shape[a] for a in axes], [strides[a] for a in axes]", "✓"),
    "the shape alone": ("transposed", "return tuple(shape[a] for a in axes)", "not the shape and the strides"),
    "in place": ("transposed", "for i, a in enumerate(axes):\n        shape[i] = shape[a]\n    return shape, strides",
                 "a tuple cannot be changed"),
    "prints": ("transposed", "print(shape[::-1], strides[::-1])", "return"),
    "zeros where the sizes differ": (
        "broadcasted", "out = [0] * (len(target) - len(shape))\n    for i, s in enumerate(shape):\n"
        "        out.append(strides[i] if s == target[len(out)] else 0)\n    return out", "✓"),
    "aligned at the front": (
        "broadcasted", "return tuple(strides[i] if i < len(shape) and shape[i] == s else 0\n"
        "                 for i, s in enumerate(target))", "from their ends"),
    "from last to first": (
        "broadcasted", "out = []\n    for i in range(1, len(target) + 1):\n"
        "        same = i <= len(shape) and shape[-i] == target[-i]\n"
        "        out.append(strides[-i] if same else 0)\n    return out", "from last to first"),
    "an axis that shape does not have": (
        "broadcasted", "return [strides[i] if shape[i] == target[i] else 0 for i in range(len(target))]",
        "shorter than target"),
    "the target too": (
        "broadcasted", "new = len(target) - len(shape)\n"
        "    return target, (0,) * new + tuple(0 if n == 1 else s for n, s in zip(shape, strides))",
        "only the strides"),
    "too few strides": ("broadcasted", "return strides", "one for each axis of target"),
    "a copy's strides": (
        "broadcasted", "out, n = [], 1\n    for s in target[::-1]:\n        out.insert(0, n)\n        n *= s\n"
        "    return tuple(out)", "strides of a copy"),
    "by hand": (
        "windowed", "s, t = list(shape), list(strides)\n    s[axis] = (s[axis] - size) // step + 1\n"
        "    t[axis] *= step\n    return s + [size], t + [strides[axis]]", "✓"),
    "the inner stride after the step": (
        "windowed", "s, t = list(shape), list(strides)\n    s[axis] = (s[axis] - size) // step + 1\n"
        "    t[axis] *= step\n    return s + [size], t + [t[axis]]", "without step"),
    "one window too few": (
        "windowed", "s, t = list(shape), list(strides)\n    s[axis] = (s[axis] - size) // step\n"
        "    t[axis] *= step\n    return s + [size], t + [strides[axis]]", "Count the windows"),
    "a true division": (
        "windowed", "s, t = list(shape), list(strides)\n    s[axis] = (s[axis] - size) / step + 1\n"
        "    t[axis] *= step\n    return s + [size], t + [strides[axis]]", "a whole number"),
    "one axis only": ("windowed", "n = (shape[axis] - size) // step + 1\n"
                      "    return (n, size), (step * strides[axis], strides[axis])", "All other axes stay"),
    "without the step": (
        "windowed", "s, t = list(shape), list(strides)\n    s[axis] = s[axis] - size + 1\n"
        "    return s + [size], t + [strides[axis]]", "depend on step"),
    "adds a number to a tuple": ("windowed", "return shape + size, strides + 1", "needs a comma"),
    "multiplies place by place": (
        "convolve", "return mg.windows(pictures, 3, axis=(1, 2)).reshape(-1, 9) * filters.reshape(-1, 9)", None),
    "sums of products": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return mg.stack([(w * k).sum((-1, -2)) for k in filters], axis=-1)", "✓"),
    "the filters transposed first": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(*w.shape[:3], 9) @ filters.mT.reshape(-1, 9).T", "turned"),
    "the forgotten .T": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(*w.shape[:3], 9) @ filters.reshape(-1, 9)", "(9, k)"),
    "filters reshaped to columns": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(*w.shape[:3], 9) @ filters.reshape(9, -1)", "mixes the filters"),
    "one list of windows": (
        "convolve", "return mg.windows(pictures, 3, axis=(1, 2)).reshape(-1, 9) @ filters.reshape(-1, 9).T",
        "one long list"),
    "one list for each picture": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(len(pictures), -1, 9) @ filters.reshape(-1, 9).T", "for each picture"),
    "four filters always": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(*w.shape[:3], 9) @ filters.reshape(4, 9).T", "may be 1 filter"),
    "convolve in place": (
        "convolve", "r, c = pictures.shape[1] - 2, pictures.shape[2] - 2\n"
        "    out = mg.zeros((len(pictures), r, c, len(filters)))\n    for i in range(3):\n        for j in range(3):\n"
        "            out += pictures[:, i:i + r, j:j + c, None] * filters[:, i, j]\n    return out",
        "launches 19 kernels. One matrix product is enough"),
    "with NumPy": (
        "convolve", "import numpy as np\n"
        "    w = np.lib.stride_tricks.sliding_window_view(pictures.numpy(), (3, 3), axis=(1, 2))\n"
        "    return np.einsum('nijab,kab->nijk', w, filters.numpy())", "the engine records nothing"),
    "one product": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(*w.shape[:3], 9) @ filters.reshape(-1, 9).T", "launches 1 kernel. It is one product"),
    "by the size": (
        "broadcasted", "return [0 if t not in shape else strides[shape.index(t)] for t in target]",
        "An axis of size 1 is repeated too"),
    "zeros behind": ("broadcasted", "return strides + (0,) * (len(target) - len(shape))", "in front"),
    "no reshape": ("convolve", "return mg.windows(pictures, 3, axis=(1, 2)) @ filters", "the last two axes"),
    "one size only": (
        "convolve", "w = mg.windows(pictures, 3, axis=(1, 2))\n"
        "    return w.reshape(-1, 6, 6, 9) @ filters.reshape(-1, 9).T", "(n, 6, 6, 9)"),
}


@pytest.mark.parametrize("which", FUNCTIONS)
def test_feedback_on_functions_of_arrays(which):
    task, body, words = FUNCTIONS[which]
    said = said_to(f"import minigrad as mg\ndef {task}({HEADS[task]}):\n    {body}", task)
    assert (words or "Hint") in said


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("window_numbers = 0", "nothing was copied"), ("window_numbers = 9", "far from the edges"),
        ("window_numbers = '2 times 3'", "✓"),
        ("loop_times = 3000", "✓"),
        ("loop_times = '30'", "one instruction"),
        ("loop_times = 5", "one of"),
        ("library_calls = 32 * 32", "✓"),
        ("library_calls = 32**3", "products x · y"),
        ("clock = 12 * 6", "returns when its function has finished"),
        ("clock = 12 * 86", "✓"),
        ("clock = 952", "for the last time"),
        ("clock = 946", "all lines but the last"),
        ("same_buffer = [30, 30, 10]", "counted from 0"),
        ("copies = ['E']", "look at A: the numbers come in the order 0, 4, 8"),
        ("same_buffer = [29, 9, 9]", "another name"),
        ("same_buffer = (29, 29, 9)", "✓"),
        ("rebound = (70, 7)", "the other way round"),
        ("turned_strides = (1, 3)", "✓"),
        ("owned_bytes = 8000", "what a copy would take"),
        ("copies = 'A, E'", "✓"),
        ("copies = ['e', 'a']", "✓"),
        ("copies = 'ADE'", "look at D: every second row"),
        ("changed_in_between = 'a'", "✓"),
        ("changed_in_between = 'C'", "What does the rule of a sum read?"),
        ("who_changes = 3", "another form"),
        ("versions = 2", "another form"),
        ("view_of = (3, 2)", "three parts"),
    ],
)
def test_questions_of_arrays(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_programs_of_the_variants_do_what_the_answers_say(student):
    """Each program is run: the names whose numbers change, and the gradients that stop."""
    changes, versions = TASKS["who_changes"](student), TASKS["versions"](student)
    *before, last = changes.given()["code"].splitlines()
    names = {"mg": mg}
    exec("\n".join(before), names)
    old = {name: names[name].tolist() for name in "cdefgh"}
    exec(last, names)
    assert [name for name, numbers in old.items() if names[name].tolist() != numbers] == changes.right()
    code = versions.given()["code"]
    exec(code, names)
    stopped = []
    for name in "pqr":
        try:
            names[name].sum().backward()
        except mg.MutationError:
            stopped.append(name)
    count, stops = versions.right()
    assert stopped == stops
    assert f"buffer 1, version {count}: x" in memory_map(code).text().splitlines()[-1]


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李"])
def test_wrong_tables_and_programs_are_explained(student):
    who, versions, view = (TASKS[name](student) for name in ("who_changes", "versions", "view_of"))
    shape, strides, offset = view.right()

    def said(task, answer):
        with pytest.raises(Feedback) as refused:
            task.check(answer)
        return str(refused.value)

    assert "another name" in said(who, []) or "view" in said(who, []) or "changes" in said(who, [])
    assert "does not change" in said(who, list("cdefgh"))
    assert "adds 1" in said(versions, (versions.right()[0] + 5, []))
    assert "in bytes" in said(view, (shape, tuple(8 * step for step in strides), offset))
    assert "the first number" in said(view, (shape, strides, offset + 1))
    if strides != strides[::-1]:
        assert "turned" in said(view, (shape, strides[::-1], offset))
    assert "rows" in said(view, ((5, 5), strides, offset))
    assert view.given()["draw"]((list(shape), list(strides), offset)).said().startswith("a view of shape")


@pytest.mark.slow
def test_a_network_learns_through_the_students_views_and_not_through_wrong_ones():
    transposed, broadcasted, windowed = (TASKS[name]("").right for name in ("transposed", "broadcasted", "windowed"))
    given = TASKS["windowed"]("").given()
    with given["views"](transposed, broadcasted, windowed) as mine:
        assert given["train"](mine).right > 320 and mine.calls > 100

    def still(shape, strides, axis, size, step):  # every window reads the same numbers
        there, steps = windowed(shape, strides, axis, size, step)
        return there, (*steps[:axis], 0, *steps[axis + 1 :])

    with given["views"](transposed, broadcasted, still) as mine:
        assert given["train"](mine).right < 250

    def too_far(shape, strides, axis, size, step):
        there, steps = windowed(shape, strides, axis, size, step)
        return there, (*steps[:-1], 1000)

    with given["views"](transposed, broadcasted, too_far), pytest.raises(Feedback, match="beyond the end"):
        mg.windows(mg.ones(8), 3).tolist()


def test_a_view_of_the_student_shares_memory_with_its_array():
    given = TASKS["windowed"]("").given()
    transposed, broadcasted, windowed = (TASKS[name]("").right for name in ("transposed", "broadcasted", "windowed"))
    x = mg.zeros((2, 3))
    with given["views"](transposed, broadcasted, windowed) as mine:
        y = x.T
        y[0, 1] = 5.0
    assert x.tolist() == [[0, 0, 0], [5, 0, 0]] and mine.calls >= 1
    with given["views"](lambda *a: (1, 2), broadcasted, windowed), pytest.raises(Feedback, match="returned"):
        x.T.tolist()
