"""Answers of real newcomers to unit 07, in addition to the declared mistakes: each gets feedback that helps."""

import itertools

import numpy as np
import pytest

import minigrad as mg
import minigrad_course as course
from minigrad.core.mode import record
from minigrad.examples.names_gpt import GPT, rows_of
from minigrad_course.counting import kept_over_time
from minigrad_course.unit import units
from minigrad_course.units.u07_forward_and_memory.memory import planned
from minigrad_course.units.u07_forward_and_memory.plans import CHAINS, ONE_ARRAY, chain
from minigrad_course.units.u07_forward_and_memory.seams import plan_of
from minigrad_course.units.u07_forward_and_memory.training import batch, both_trained, gpt, row_of
from tests.course.running import said_to

RULES = {
    "two parts": ("return da * b, a * db", "one number"),
    "the value too": ("return a * b, da * b + a * db", "one number"),
    "the gradient rule": ("return b, a", "one number"),
    "the other order": ("return b * da + db * a", "✓"),
    "printed": ("print(da * b + a * db)", "only the value after `return`"),
    "swapped": ("return a * da + b * db", "the other factor"),
    "multiplied": ("return da * db", "one at a time"),
    "a whole step": ("return (a + da) * (b + db) - a * b", "speed at the start"),
    "a sum": ("return da + db", "the rule of a sum"),
    "speeds of 1": ("return a + b", "at a speed of 1"),
    "a quotient": ("return b * da - a * db", "with a plus"),
    "only a moves": ("return da * b", "b moves too"),
    "no sign": ("return da(b) + a(db)", "to multiply, write the sign"),
    "numbers into jvp": ("return mg.jvp(lambda a, b: a * b, (a, b), (da, db))[1]", "no mg.jvp is needed here"),
    "only b moves": ("return a * db", "a moves too"),
    "the end of a step": ("return (a + da) * (b + db)", "after a whole step"),
    "a matrix product": ("return da @ b + a @ db", "number by number"),
    "arrays only": ("return (da * b + a * db).item()", "plain numbers"),
    "by the library": ("return mg.jvp(lambda a, b: a * b, (a, b), (da, db))[1]", "no mg.jvp is needed"),
    "text": ("return str(da * b + a * db)", "let a alone move"),
}


@pytest.mark.parametrize("which", RULES)
def test_feedback_on_rules_for_tangents(which):
    body, words = RULES[which]
    assert words in said_to(f"def mul_jvp(a, b, da, db):\n    {body}", "mul_jvp")


LOOP = """found = []
    for j in range(x.size):
        v = mg.zeros(x.size)
        v[j] = 1.0
        {}
    return {}"""
JVP = "found.append(mg.jvp(f, (x,), (v,))[1])"
COLUMNS = {
    "side by side": (LOOP.format(JVP, "mg.stack(found, axis=1)"), "✓"),
    "transposed in the end": (LOOP.format(JVP, "mg.stack(found).T"), "✓"),
    "as lists": (LOOP.format("found.append(mg.jvp(f, (x,), (v,))[1].tolist())", "list(zip(*found))"), "✓"),
    "below each other": (LOOP.format(JVP, "found"), "side by side"),
    "pairs": (LOOP.format("found.append(mg.jvp(f, (x,), (v,)))", "mg.stack(found, axis=1)"), "take [1]"),
    "values": (LOOP.format("found.append(mg.jvp(f, (x,), (v,))[0])", "mg.stack(found, axis=1)"), "kept the value"),
    "no tuples": (LOOP.format("found.append(mg.jvp(f, x, v)[1])", "mg.stack(found, axis=1)"), "mg.jvp(f, (x,), (v,))"),
    "added to a list": (LOOP.format("found += mg.jvp(f, (x,), (v,))[1]", "found"), "found.append"),
    "returns at once": (LOOP.format("return mg.jvp(f, (x,), (v,))[1]", "found"), "inside the loop"),
    "v is x": (LOOP.format("found.append(mg.jvp(f, (x,), (v * x,))[1])", "mg.stack(found, axis=1)"), "not x[j]"),
    "all at once": ("return mg.jvp(f, (x,), (mg.ones(x.size),))[1]", "the sum of the columns"),
    "the pair": ("return mg.jvp(f, (x,), (mg.ones(x.size),))", "returns two things"),
    "always three": (LOOP.replace("x.size", "3").format(JVP, "mg.stack(found, axis=1)"), "differs from call to call"),
    "by the library": ("return mg.jacobian(f)(x)", "by 1 backward pass\n"),
    "by the library, forward": ("return mg.jacobian(f, mode='forward')(x)", "by 1 pass for 3 numbers"),
    "by small steps": (
        LOOP.format("found.append((f(x + 1e-2 * v) - f(x - 1e-2 * v)) / 2e-2)", "mg.stack(found, axis=1)"),
        "with no small step",
    ),
    "vjp": ("return mg.vjp(f, x)", "return a matrix"),
    "never cleared": (
        "v, found = mg.zeros(x.size), []\n    for j in range(x.size):\n        v[j] = 1.0\n        "
        f"{JVP}\n    return mg.stack(found, axis=1)", "keeps the 1",
    ),
    "nothing": (LOOP.format(JVP, "None"), "returned None"),
    "v is x itself": (LOOP.replace("mg.zeros(x.size)", "x").format(JVP, "mg.stack(found, axis=1)"), "has changed x"),
    "one place": (LOOP.replace("v[j]", "v[1]").format(JVP, "mg.stack(found, axis=1)"), "at place j"),
    "numbers as places": (
        LOOP.replace("range(x.size)", "x").format(JVP, "mg.stack(found, axis=1)"), "not a number of x"),
    "returns a matrix at once": (
        LOOP.format(f"{JVP}; return mg.stack(found, axis=1)", "found"), "inside the loop"),
    "as in NumPy": (LOOP.format(JVP, "mg.concatenate(found)"), "side by side"),
    "the library, with x": ("return mg.jacobian(f, x)", "write it yourself"),
}


@pytest.mark.parametrize("which", COLUMNS)
def test_feedback_on_jacobians_by_columns(which):
    body, words = COLUMNS[which]
    assert words in said_to(f"def columns(f, x):\n    {body}", "columns")


IN_A_ROW = """def in_a_row(blocks):
    def run(x):
        for block in blocks:
            x = block(x)
        return x
    return run
"""
PARTS = """at = 0
    for size in plan:
        {}
        at += size
    return {}"""
PART, REST = "x = mg.checkpoint(in_a_row(blocks[at:at + size]))(x)", "in_a_row(blocks[at:])(x)"
RUNS = {
    "as asked": (PARTS.format(PART, REST), "✓"),
    "by cutting the list": (
        "for size in plan:\n        x = mg.checkpoint(in_a_row(blocks[:size]))(x)\n        blocks = blocks[size:]\n"
        "    return in_a_row(blocks)(x)", "✓"),
    "by popping": (
        "for size in plan:\n        part = [blocks.pop(0) for _ in range(size)]\n"
        "        x = mg.checkpoint(in_a_row(part))(x)\n    return in_a_row(blocks)(x)", "✓"),
    "as in PyTorch": (
        PARTS.format("x = mg.checkpoint(in_a_row(blocks[at:at + size]), x)", REST), "mg.checkpoint(f)(x)"),
    "of a list": (PARTS.format("x = mg.checkpoint(blocks[at:at + size])(x)", REST), "a function, not a list"),
    "of the result": (PARTS.format("x = mg.checkpoint(in_a_row(blocks[at:at + size])(x))", REST), "not its result"),
    "never called": (PARTS.format("x = mg.checkpoint(in_a_row(blocks[at:at + size]))", REST), "call it with x"),
    "result lost": (PARTS.format("mg.checkpoint(in_a_row(blocks[at:at + size]))(x)", REST), "into x"),
    "sizes as ends": (PARTS.format("x = mg.checkpoint(in_a_row(blocks[at:size]))(x)", REST), "blocks[at : at + size]"),
    "another order": (PARTS.format(PART, REST).replace("in plan", "in plan[::-1]"), "not what is kept at most"),
    "rest forgotten": (PARTS.format(PART, "x"), "behind the plan"),
    "rest in a checkpoint": (PARTS.format(PART, "mg.checkpoint(in_a_row(blocks[at:]))(x)"), "saves nothing"),
    "all blocks again": (PARTS.format(PART, "in_a_row(blocks)(x)"), "a second time"),
    "each alone": ("for block in blocks:\n        x = mg.checkpoint(block)(x)\n    return x", "of its own"),
    "none": ("return in_a_row(blocks)(x)", "no checkpoint"),
    "one": ("return mg.checkpoint(in_a_row(blocks))(x)", "in one checkpoint"),
    "plan joined": (
        "n = sum(plan)\n    x = mg.checkpoint(in_a_row(blocks[:n]))(x)\n    return in_a_row(blocks[n:])(x)",
        "Each size is a checkpoint"),
    "sizes as places in the plan": (PARTS.format("x = mg.checkpoint(in_a_row(blocks[at:plan[size]]))(x)", REST),
                                    "gives the size itself"),
    "without return": (PARTS.format(PART, REST).replace("return in_a", "in_a"), "only the value after `return`"),
    "without gradients": ("with mg.no_grad():\n        return in_a_row(blocks)(x)", "not what is kept"),
    "detached": (PARTS.format(f"{PART}.detach()", REST), "leave out .detach()"),
    "returns at once": (PARTS.format(PART, REST).replace("    return", "        return"), "inside the loop"),
}


@pytest.mark.parametrize("which", RUNS)
def test_feedback_on_blocks_run_by_a_plan(which):
    body, words = RUNS[which]
    assert words in said_to(f"{IN_A_ROW}def run_blocks(blocks, x, plan):\n    {body}", "run_blocks")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("step_keeps = 12.33 * course.task('step_keeps')._of.names / 64", "✓"),
        ("step_keeps = 'a lot'", "a number, such as 0.2"),
        ("step_keeps = 0.2", "the weights alone"),
        ("speed = 10", "x moves at 6"),
        ("speed = 96", "in a whole second"),
        ("weight_passes = 1", "that is reverse mode"),
        ("weight_passes = '2410'", "without the quotation marks"),
        ("spot_passes = [1, 48 * 48]", "✓"),
        ("spot_passes = 2304, 1", "the other way round"),
        ("shared = 192", "it is kept once"),
        ("one_checkpoint = 0", "all at once"),
        ("ten_checkpoints = 13", "✓"),
        ("ten_checkpoints = 10", "its inside is there too"),
        ("spot_passes = 1, 1", "48 · 48 of them"),
        ("speed = 121", "a whole second later"),
        ("speed = 11", "that is where x is"),
        ("weight_passes = 7000", "counts once"),
        ("spot_passes = 48, 48", "a side of the picture"),
        ("spot_passes = 48, 1", "the other way round"),
        ("one_checkpoint = 204", "is data, which exists anyway"),
        ("one_checkpoint = 196", "all 50 results"),
        ("ten_checkpoints = 6", "still wait"),
        ("ten_checkpoints = 5", "the inside of one part"),
        ("ten_checkpoints = 45", "not computed again at the same time"),
        ("ten_checkpoints = 50", "not computed again at the same time"),
        ("slider = 4", "Do fewer checkpoints"),
        ("slider = 7", "Do fewer checkpoints"),
        ("slider = 0", "12.3 MB are kept"),
        ("with_dropout = 2112", "which numbers"),
        ("kept_list = [0, 0, 0, 0, 0]", "5 numbers"),
        ("fewest_passes = [1, 1, 1]", "3 numbers"),
        ("chain_plan = []", "Cut a seam"),
        ("chain_plan = [10]", "saves nothing"),
        ("chain_plan = [1] * 9", "the inputs of 9 checkpoints add up"),
        ("chain_plan = [2, 2]", "without a checkpoint keep too much"),
        ("chain_plan = [5, 5]", "Cut it"),
        ("chain_plan = [2, 4, 8]", "sizes, not places"),
        ("chain_plan = [[0, 1], [2]]", "a list of sizes"),
        ("chain_plan = [0, 4]", "sizes of 1 and more"),
        ("chain_plan = mg.asarray([4, 3, 2])", "✓"),
        ("chain_plan = (4, 3, 2, 1)", "✓"),
    ],
)
def test_questions_and_plans(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


BY_HAND = {
    "direction": (
        ("task.factor * task.da", "the second use of a alone"),
        ("task.da * task.b", "one of three parts"),
        ("task.a * task.db", "one of three parts"),
        ("task.da * task.db + task.factor * task.da", "not multiplied with each other"),
        ("task.right() + task.da * task.db", "over a whole second"),
        ("task.right() - 2 * task.a * task.db", "count with a plus"),
        ("task.right() - task.factor * (task.da - task.a)", "The value of a does not count|factor"),
    ),
    "fewest_passes": (
        ("[task.weights, 1, task.few, 1]", "A has a single output|forward mode for all"),
        ("[1, task.side, task.few, 1]", "B has a single input"),
        ("[1, 1, task.few, task.many]", "D needs one direction"),
        ("[1, 1, task.many, task.many]", "D: only one direction"),
    ),
    "kept_list": (
        ("[0, task.full, 0, task.full, 0, 0]", "not its output r"),
        ("[0, task.full, 0, 0, task.full, 0]", "relu keeps something too"),
        ("np.cumsum(task.right()).tolist()", "the total after each line"),
        ("[0, task.full, 0, task.mask // 8, task.full, 0]", "not a bit"),
        ("[20 * task.rows, *task.right()[1:]]", "x is data"),
        ("[20 * task.columns, *task.right()[1:]]", "W is a parameter"),
        ("[*task.right()[:5], task.full]", "reads no array"),
        ("[*task.right()[:5], 4]", "Which rule reads s"),
        ("[task.full] * 3 + task.right()[3:]", "no rule reads p or q"),
        ("[task.full, 0, *task.right()[2:]]", "reads its output h, not its input p"),
    ),
}


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李", "Alan"])
@pytest.mark.parametrize("name", BY_HAND)
def test_numbers_by_hand(name, student):
    task = units()["07_forward_and_memory"].tasks[name](student)
    for formula, words in BY_HAND[name]:
        with pytest.raises(course.feedback.Wrong, match=words):
            task.check(eval(formula, {"task": task, "np": np}))


def test_training_waits_for_a_plan():
    with pytest.raises(course.feedback.NotWritten, match="not answered yet"):
        units()["07_forward_and_memory"].tasks["gpt_plan"]("").train(planned, ...)


@pytest.mark.slow
@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李", "Alan"])
def test_plans_of_a_gpt(student):
    """The plans that a student tries: everything, nothing, one large checkpoint, and more blocks than needed."""
    task = units()["07_forward_and_memory"].tasks["gpt_plan"](student)
    tried = [([], "Cut a seam"), ([task.count], "saves nothing"), ([task.again], "Cut it"),
             ([1] * task.count, "a checkpoint around them saves nothing"), ([1], "put more of them into checkpoints")]
    for plan, words in tried:
        with pytest.raises(course.feedback.Wrong, match=words):
            task.check(plan)
    assert f"{task.again} blocks computed again" in task.check([1] * task.again)


@pytest.mark.parametrize(("code", "count", "arrays", "best"), CHAINS)
def test_the_budget_of_a_chain_is_the_lowest_peak_of_all_plans(code, count, arrays, best):
    row = chain(code, count)
    peaks = [row.peak(plan_of(cuts)) for cuts in itertools.product((0, 1), repeat=count - 1)]
    assert min(peaks) == arrays * ONE_ARRAY == row.peak(best)
    assert sum(peak == min(peaks) for peak in peaks) < len(peaks) / 6  # a plan is not found by chance


@pytest.mark.slow
@pytest.mark.parametrize("plan", [[], [1, 1], [2], [3]])
def test_the_picture_of_a_gpt_has_the_bytes_that_the_engine_keeps(plan):
    with record():
        real = kept_over_time(gpt(3, planned, plan).loss(batch(0)))
    assert max(real) == row_of(3).peak(plan)


@pytest.mark.slow
def test_a_gpt_learns_the_same_within_the_budget():
    book = both_trained(3, 7_000_000, planned, [1, 1], steps=3)
    words = book.text()
    assert "within the budget of 7 MB" in words and "all equal to the last bit" in words
    first, second = (line.partition("loss ")[2] for line in words.splitlines()[1:3])
    assert first == second


@pytest.mark.slow
def test_a_run_that_loses_a_block_is_seen():
    words = both_trained(3, 7_000_000, lambda blocks, x, plan: planned(blocks[1:], x, plan), [1], steps=1).text()
    assert "differ" in words


@pytest.mark.parametrize("student", ["", "Ada", "Grace"])
def test_the_numbers_of_the_questions_are_those_of_the_engine(student):
    tasks = units()["07_forward_and_memory"].tasks
    bill, parts = tasks["step_keeps"](student), tasks["ten_checkpoints"](student)
    known, _ = mg.data.names()
    alphabet = mg.data.Alphabet(known)
    model = GPT(len(alphabet), width=32, heads=4, layers=4, dropout=0.0)
    loss = model.loss(mg.asarray(rows_of(known[: bill.names], alphabet)))
    assert course.kept_bytes(loss) / 1e6 == pytest.approx(bill.right(), rel=0.01)

    def some(h):
        for _ in range(parts.operations // 10):
            h = mg.tanh(h)
        return h

    h = mg.ones(1000, requires_grad=True)
    for _ in range(9):
        h = mg.checkpoint(some)(h)
    assert course.most_bytes(some(h)) == 4000 * parts.right()
