"""Answers of real newcomers to unit 03, in addition to the declared mistakes: each gets feedback that helps."""

import pytest

import minigrad as mg
from minigrad.compile.look.watching import watching
from minigrad.core.primitive import P
from minigrad.devices.cuda_kernels import CudaKernels
from minigrad_course.unit import units
from tests.course.running import ROOT, said_to

UNIT = units()["03_devices"]
D = "d = {x.device for x in inputs if isinstance(x, mg.Tensor)}\n    "
MIX = "if len(d) > 1:\n        raise ValueError(f'{d}')\n    "
DISPATCHERS = {
    "a set of devices": (
        D + "if len(d) > 1:\n"
        "        raise ValueError(f'on {d}')\n    return table[d.pop()][op]", "✓"),
    "a loop": (
        "d = None\n    for x in inputs:\n        if hasattr(x, 'device'):\n            if d not in (None, x.device):\n"
        "                raise OSError(f'{x.device}, {d}')\n            d = x.device\n    return table[d][op]", "✓"),
    "names of devices": (
        "d = [str(x.device) for x in inputs if type(x) is mg.Tensor]\n    if len(set(d)) != 1:\n"
        "        raise mg.DeviceError(' and '.join(d))\n    return table[d[0]][op]", "✓"),
    "numbers have no device": ("return table[inputs[0].device][op]", "a Python number has no device"),
    "the name of a number": ("return table[inputs[0].device.name][op]", "a Python number has no device"),
    "keys exchanged": (
        D + "return table[op][d.pop()]", "table[device][op]"),
    "both keys at once": (
        D + "return table[d.pop(), op]", "table[device][op]"),
    "a column": (
        D + "return table[d.pop()]", "one entry of the table"),
    "the device": (
        D + "return d.pop()", "one entry of the table"),
    "calls the kernel": (
        D + "return table[d.pop()][op](*inputs)", "without calling it"),
    "takes any": (
        "d = [x.device for x in inputs if hasattr(x, 'device')]\n    return table[d[0]][op]", "the first tensor only"),
    "prints instead": (
        D + "if len(d) > 1:\n        print('mixed')\n"
        "        return None\n    return table[d.pop()][op]", "raise an exception"),
    "a mute exception": (
        D + "if len(d) > 1:\n"
        "        raise ValueError('mixed')\n    return table[d.pop()][op]", "put the devices into its text"),
    "returns the exception": (
        D + "if len(d) > 1:\n"
        "        return ValueError('mixed')\n    return table[d.pop()][op]", "not return"),
    "copies to the CPU": (
        D + "return table['cpu' if len(d) > 1 else d.pop()][op]",
        "the CPU cannot read arrays"),
    "falls back": (
        D + MIX + "return table[d.pop()].get(op, table['cpu'][op])", "let the error happen"),
    "asks politely": (
        D + MIX + "return table[d.pop()].get(op)", ".get(op) does not"),
    "no return": (
        D + MIX + "table[d.pop()][op]", "is there a `return`"),
    "a set as a key": (D + MIX + "return table[d][op]", "take the one device out of it"),
    "compares two": (
        "d = [x.device for x in inputs if hasattr(x, 'device')]\n    if d[0] != d[1]:\n        raise ValueError(d)\n"
        "    return table[d[0]][op]", "len(set(devices))"),
    "text and a device": (
        "d = [x.device for x in inputs if hasattr(x, 'device')]\n    if len(set(d)) > 1:\n"
        "        raise OSError(d[0] + ' and ' + d[1])\n    return table[d[0]][op]", "a device is not a text"),
    "a device and text": (
        "d = [x.device for x in inputs if hasattr(x, 'device')]\n    if len(set(d)) > 1:\n"
        "        raise OSError('on ' + d[0])\n    return table[d[0]][op]", "a device is not a text"),
    "joins devices": (
        D + "if len(d) > 1:\n        raise OSError(' and '.join(d))\n    return table[d.pop()][op]", "is not a text"),
    "raises a text": (
        D + "if len(d) > 1:\n        raise f'{d}'\n    return table[d.pop()][op]", "is not an exception"),
    "forgets the f": (
        D + "if len(d) > 1:\n        raise OSError('on {d}')\n    return table[d.pop()][op]",
        'f"... {x.device}"'),
    "an assert": (D + "assert len(d) == 1, f'{d}'\n    return table[d.pop()][op]", "✓"),
    "a name that is missing": ("return tabel[inputs[0].device][op]", "spelled in the same way"),
}


@pytest.mark.parametrize("which", DISPATCHERS)
def test_feedback_on_dispatchers(which):
    body, words = DISPATCHERS[which]
    assert words in said_to(f"def dispatch(op, inputs, table):\n    {body}", "dispatch")


COARSE = {
    "in two lines": ("a, b = np.round(x * S) / S, np.round(y * S) / S\n    return a @ b", "✓"),
    "with rint and dot": ("return (np.rint(x * S) / S).dot(np.rint(y * S) / S)", "✓"),
    "the product of integers": ("return (np.round(x * S) @ np.round(y * S)) / S**2", "✓"),
    "with mg": ("return mg.asarray(x) @ mg.asarray(y)", "use np, not mg"),
    "in place": ("x *= S\n    np.round(x, out=x)\n    x /= S\n    return x @ (np.round(y * S) / S)",
                 "Make a new array"),
    "with int": ("return (x * S).astype(int) / S @ ((y * S).astype(int) / S)", "no astype"),
    "in double": ("x, y = x.astype(float), y.astype(float)\n    return np.round(x * S) / S @ (np.round(y * S) / S)",
                  "no astype"),
    "of the result": ("return np.round(x @ y * S) / S", "you round the result"),
    "place by place": ("return np.round(x * S) / S * (np.round(y * S) / S)", "The matrix product is x @ y"),
    "printed": ("print(np.round(x * S) / S @ (np.round(y * S) / S))", "is there a `return`"),
    "with the steps of the example": ("return np.round(x * 10) / 10 @ (np.round(y * 10) / 10)", "of your chip"),
    "Python's round": ("return round(x * S) / S @ (round(y * S) / S)", "one for arrays: np.round"),
}


@pytest.mark.parametrize("which", COARSE)
def test_feedback_on_coarse_kernels(which):
    body, words = COARSE[which]
    body = body.replace("S", str(UNIT.tasks["coarse_matmul"]("").steps))
    assert words in said_to(f"import numpy as np\ndef coarse_matmul(x, y):\n    {body}", "coarse_matmul")


SUM = "lambda x, axis, keepdims, dtype: x.sum(axis=axis, keepdims=keepdims)"
RIGHT = ('{"matmul": np.matmul, "add": np.add, "tanh": np.tanh, "subtract": np.subtract, "multiply": np.multiply, '
         f'"sum": {SUM}, "divide": np.divide}}')
TABLES = {
    "right": (RIGHT, "✓"),
    "by hand": (RIGHT.replace("np.add", "lambda x, y: x + y").replace("np.matmul", "lambda x, y: x @ y"), "✓"),
    "tanh by exp": (RIGHT.replace("np.tanh", "lambda x: 1 - 2 / (np.exp(2 * x) + 1)"), "✓"),
    "one is missing": ('{"matmul": np.matmul}', "add is missing"),
    "NumPy's name": (RIGHT.replace('"divide"', '"true_divide"'), "'true_divide' is not an operation"),
    "called": (RIGHT.replace("np.add", "np.add(1, 2)"), "without brackets after it"),
    "a name": (RIGHT.replace("np.add", '"np.add"'), "not a function"),
    "a list": ("[np.matmul, np.add]", "in braces"),
    "tensors": (RIGHT.replace("np.tanh", "mg.tanh"), "use np, not mg"),
    "math": (RIGHT.replace("np.tanh", "__import__('math').tanh"), "NumPy has the same function"),
    "Python's sum": (RIGHT.replace(SUM, "sum"), "use np.sum"),
    "np.sum": (RIGHT.replace(SUM, "np.sum"), "✓"),
    "sum without keywords": (RIGHT.replace(SUM, "lambda x: x.sum()"), "attributes come as keywords"),
    "sum of two parameters": (RIGHT.replace(SUM, "lambda x, axis: x.sum(axis)"), "attributes come as keywords"),
    "sum of all": (RIGHT.replace(SUM, "lambda x, axis, keepdims, dtype: x.sum()"), "Hand axis on"),
    "attributes by place": (RIGHT.replace(SUM, "lambda x, axis, keepdims, dtype: np.sum(x, axis, keepdims)"),
                            "hand the attributes on by name"),
    "in place": (RIGHT.replace("np.add", "lambda x, y: x.__iadd__(y) if hasattr(x, 'shape') else x + y"),
                 "x + y and not x += y"),
    "tanh as a ratio": (
        RIGHT.replace("np.tanh", "lambda x: (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))"), "is nan"),
    "matmul by inner": (RIGHT.replace("np.matmul", "np.inner"), "np.inner turns"),
    "matmul by star": (RIGHT.replace("np.matmul", "np.multiply"), "matmul is the matrix product"),
    "add by at": (RIGHT.replace("np.add", "np.matmul"), "place by place"),
    "another operation": (RIGHT.replace("np.subtract", "np.add"), "compare it with the kernel of the CPU"),
    "an operation of its own": (
        RIGHT.replace("np.add", "lambda x, y: x + 2 * y"), "compare it with the kernel of the CPU"),
    "Python's sum inside": (RIGHT.replace(SUM, "lambda x, axis, keepdims, dtype: sum(x)"), "adds the rows, always"),
    "attributes in a wrong order": (
        RIGHT.replace(SUM, "lambda x, axis, keepdims, dtype: np.sum(x, axis, dtype, keepdims)"),
        "hand the attributes on by name"),
    "in double": (RIGHT.replace("np.tanh", "lambda x: np.tanh(x.astype(float))"), "keeps the type"),
}


@pytest.mark.parametrize("which", TABLES)
def test_feedback_on_tables_of_kernels(which):
    table, words = TABLES[which]
    assert words in said_to(f"import numpy as np\nchip_kernels = {table}", "chip_kernels")


METERS = {
    "twice": ("def run(*values, **attrs):\n        result = kernel(*values, **attrs)\n"
              "        size = sum(x.nbytes for x in (*values, result) if hasattr(x, 'nbytes'))\n"
              "        bill[op] += L + size / V\n        return kernel(*values, **attrs)\n    return run",
              "in 1 call the kernel ran 2 times"),
    "right": (
        "def run(*values, **attrs):\n        out = kernel(*values, **attrs)\n        size = sum(v.nbytes for v in "
        "[*values, out] if hasattr(v, 'nbytes'))\n        bill[op] += L + size / V\n        return out\n    return run",
        "✓"),
    "runs at once": ("bill[op] += L\n    return kernel", "inside the function that you return"),
    "calls the kernel at once": ("out = kernel()\n    bill[op] += L\n    return out", "def run(*values, **attrs)"),
    "without stars": ("def run(*values, **attrs):\n        return kernel(values, attrs)\n    return run",
                      "kernel(*values, **attrs)"),
    "the whole bill": ("def run(*values, **attrs):\n        bill += L\n        return kernel(*values, **attrs)\n"
                       "    return run", "one entry of the bill grows"),
    "no result": ("def run(*values, **attrs):\n        kernel(*values, **attrs)\n        bill[op] += L\n    return run",
                  "returned None"),
    "run is called": ("def run(*values, **attrs):\n        return 1\n    return run()", "not a function"),
    "run is not returned": ("def run(*values, **attrs):\n        return kernel(*values, **attrs)", "return run"),
    "one parameter": ("def run(x):\n        return kernel(x)\n    return run", "def run(*values, **attrs)"),
    "without attributes": (
        "def run(*values):\n        out = kernel(*values)\n"
        "        bill[op] += L + sum(getattr(x, 'nbytes', 0) for x in (*values, out)) / V\n"
        "        return out\n    return run",
        "def run(*values, **attrs)"),
    "numbers have no bytes": (
        "def run(*values, **attrs):\n        out = kernel(*values, **attrs)\n        bill[op] += L + "
        "sum(v.nbytes for v in [*values, out]) / V\n        return out\n    return run", "has no bytes"),
    "the launch only": ("def run(*values, **attrs):\n        bill[op] += L\n        return kernel(*values, **attrs)\n"
                        "    return run", "counts the launch only"),
    "rounds down": (
        "def run(*values, **attrs):\n        out = kernel(*values, **attrs)\n        bill[op] += L + "
        "sum(v.nbytes for v in [*values, out] if hasattr(v, 'nbytes')) // V\n        return out\n    return run",
        "divide by `/`"),
    "a launch for each array": (
        "def run(*values, **attrs):\n        out = kernel(*values, **attrs)\n        for v in [*values, out]:\n"
        "            if hasattr(v, 'nbytes'):\n                bill[op] += L + v.nbytes / V\n"
        "        return out\n    return run", "a call costs it once"),
    "calls its own function": (
        "def run(*values, **attrs):\n        out = kernel(*values, **attrs)\n        bill[op] += L\n"
        "        return out\n    return run()", "without brackets"),
    "another bill": (
        "def run(*values, **attrs):\n        bill = L\n        return kernel(*values, **attrs)\n    return run",
        "bill[op] += the cost"),
    "the plain kernel": ("return kernel", "bill[op] += the cost"),
}


@pytest.mark.parametrize("which", METERS)
def test_feedback_on_meters(which):
    body, words = METERS[which]
    task = UNIT.tasks["metered"]("")
    body = body.replace("L", str(task.launch)).replace("V", str(task.speed))
    assert words in said_to(f"def metered(op, kernel, bill):\n    {body}", "metered")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("new_chip = 7", "✓"),
        ("new_chip = 84", "only a few of them"),
        ("new_chip = 1000", "how many different operations"),
        ('new_chip = "7"', "without the quotation marks"),
        ('device_of_x = "cpu:1"', "does not keep it"),
        ('device_of_x = "the CPU"', "✓"), ('device_of_x = "cuda"', 'one of "cpu", "cpu:1"'),
        ('backward_kernels = "Subtract multiply multiply"', "✓"),
        ('mixed = "a[0] - b"', "✓"), ('mixed = "A and D"', "look at A"), ('mixed = "E"', "exactly one of the four"),
        ("copied = (1, 5)", "✓"),
        ("copied = [1.0, 1.0]", "returns x itself"),
        ('mixed = "c"', "✓"),
        ('mixed = "D"', "look at C"), ("mixed = 7", "exactly one of the four"),
        ('backward_kernels = ("subtract", "multiply", "multiply")', "✓"),
        ('backward_kernels = ["sigmoid_grad"]', "no kernel belongs to a gradient"),
        ('backward_kernels = "multiply"', "in brackets"),
        ("by_way_of_chip = 15.02", "✓"),
        ("by_way_of_chip = 15", "✓"),
        ("by_way_of_chip = 0.02", "the addition alone"),
        ("called = 32", "✓"),
        ("called = 640", "does not wait"),
        ("called = 644", "when the device is done"),
        ("overlapped = 505", "✓"),
        ("overlapped = 905", "with one stream"),
        ("stops = 6", "has another form"),
        ("stops = (99, 1)", "there is no line 99"),
        ("stops = (1, 0)", "it makes an array, on cpu"),
        ("additions = 1", "three copies and its own time"),
        ("additions = 9.18", "k is a whole number"),
        ("additions = 9.2", "k is a whole number"),
        ("additions = 50", "From which whole k"),
        ('by_way_of_chip = "3.01 ms"', "the number alone: 3.01"),
        ("by_way_of_chip = 10", "needed on the CPU"),
        ('called = "50 µs"', "the number alone: 50"),
        ("called = 0", "each launch takes Python"),
        ('new_chip = "seven"', "✓"), ('new_chip = "few"', "a number, such as 100"),
        ('mixed = "A, C"', "look at A"),
        ('backward_kernels = ["-", "*", "*"]', "✓"),
        ('backward_kernels = "subtract, multiply, multiply"', "✓"),
        ('backward_kernels = ["minus", "mul", "mul"]', "✓"),
        ('backward_kernels = ["multiply", "subtract", "multiply"]', "the innermost"),
        ('backward_kernels = ["subtract", "multiply"]', "one is missing"),
        ('backward_kernels = ["matmul"]', "the innermost"),
        ("backward_kernels = 3", "in brackets"),
        ("additions = 10", "✓"),
    ],
)
def test_questions_of_devices(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


@pytest.mark.parametrize("student", ["", "Ada", "Grace", "李", "Edsger"])
def test_the_program_stops_where_the_answer_says(student):
    task = UNIT.tasks["stops"](student)
    line, copies = task.right()
    names = {"mg": mg}
    mg.as_device("cpu:1")
    with watching() as calls:
        for number, code in enumerate(task.given()["lines"], 1):
            if number == line:
                with pytest.raises(mg.DeviceError, match="different devices"):
                    exec(code, names)
                break
            exec(code, names)
    assert sum(call.op.name == "to_device" for call in calls) == copies


def test_each_wrong_line_and_count_gets_its_reason():
    task = UNIT.tasks["stops"]("")
    line, copies = task.right()
    for number in range(1, len(task.lines) + 1):
        if number != line:
            assert task.lines[number - 1].why in said_to(f"stops = ({number}, {copies})", "stops")
    assert "even though the copy is not kept" in said_to(f"stops = ({line}, {copies - 1})", "stops")
    assert "each x.to(device)" in said_to(f"stops = ({line}, {copies + 7})", "stops")
    assert "✓" in said_to(f"stops = [{line}, {copies}]", "stops")


def test_the_numbers_in_the_texts_are_those_of_the_library():
    """The question and the slides name the operations and the rules; a new operation changes them."""
    operations, rules = len(P), sum(len(op.rules) for op in P)
    assert f"{operations} operations and {rules} gradient rules" in UNIT.question
    wrong = UNIT.tasks["new_chip"]()
    assert {operations, rules, operations + rules} <= {wrong.wrong(known) for known in wrong.mistakes}
    own = sum(name in {op.name for op in P} for name in vars(CudaKernels))
    page = (ROOT / "lectures" / "03_devices.md").read_text(encoding="utf-8")
    assert f"the CPU has all {operations}, the GPU replaces {own} of them" in page


def chip(kernels):
    """A device with these kernels and those that compute nothing."""
    moves = UNIT.tasks["chip_kernels"]().given()["moves"]
    make = type("Chip", (mg.devices.Device,), {"make_kernels": lambda self: {**moves, **kernels}})
    mg.devices.register_device("chip", make)


def test_a_network_learns_on_a_device_of_seven_kernels():
    task = UNIT.tasks["chip_kernels"]()
    chip(task.right())
    given = task.given()
    assert len(task.right()) == 7 and given["train"]("chip").right > 300
    assert "30 kernels and 3 copies" in given["at_work"]("chip").text()


def test_a_missing_kernel_stops_the_training_by_its_name():
    task = UNIT.tasks["chip_kernels"]()
    chip({name: kernel for name, kernel in task.right().items() if name != "tanh"})
    with pytest.raises(mg.DeviceError, match="tanh has no kernel on the device chip"):
        task.given()["train"]("chip")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [8, 9, 12, 16])
def test_coarse_products_read_well_and_learn_nothing(steps):
    task = UNIT.tasks["coarse_matmul"]()
    task.steps = steps
    with mg.devices.register_kernel("matmul", "cpu:1", task.right):
        said = task.read().text()
    exact, read, learnt = [int(line.rpartition(": ")[2].split()[0]) for line in said.splitlines()]
    assert exact > 320 and read > 290 and learnt < 180
