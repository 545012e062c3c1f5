"""Answers of real newcomers to unit 08, in addition to the declared mistakes: each gets feedback that helps."""

import sys

import pytest

from minigrad_course.unit import units
from minigrad_course.units.u08_training import steps
from tests.course.running import said_to

TASKS = units()["08_training"].tasks
HEADS = {
    "training_step": "model, optimizer, images, labels", "momentum": "w, g, v", "adam": "w, g, m, v, t",
    "read_rows": "lines", "usable": "dataset", "checkpoint_parts": "training", "read_digits": "model, images",
    "compared": "model, images, path, run",
}
MEANS = "m = B1 * m + (1 - B1) * g\n    v = B2 * v + (1 - B2) * g ** 2\n    "
ROWS = (
    "good, bad = [], {}\n    for n, line in enumerate(lines[1:], 2):\n        try:\n"
    "            row = [float(x) for x in line.split(SIGN)]\n"
    "            if not (len(row) == 3 and all(map(math.isfinite, row))): raise ValueError('bad')\n"
    "            good.append(row)\n        except ValueError as e:\n            bad[n] = str(e)\n    return good, bad"
)
ITEMS = (
    "good, bad = [], {}\n    for i in range(len(dataset)):\n        try:\n            dataset[i]; good.append(i)\n"
    "        except Exception as e:\n            bad[i] = repr(e)\n    return good, bad"
)
HATS = MEANS + "a = m / (1 - B1 ** t)\n    b = v / (1 - B2 ** t)\n    "


def feedback(name, body):
    """The feedback on a function with this body, in which B1, B2, LR, ... are the student's numbers."""
    own = vars(TASKS["adam"]("")) if name == "adam" else vars(TASKS["momentum"](""))
    numbers = {"B1": "beta1", "B2": "beta2", "B": "beta", "LR": "lr", "EPS": "eps", "D": "decay"}
    head = "".join(f"{short} = {own[long]}\n" for short, long in numbers.items() if long in own)
    head += f"SIGN = {TASKS['read_rows']('').sign!r}\n"
    return said_to(f"import math\nimport numpy as np\n{head}def {name}({HEADS[name]}):\n    {body}", name)


@pytest.mark.parametrize(("name", "body", "words"), [
    ("training_step", "loss = mg.cross_entropy(model(images), labels)\n    optimizer.zero_grad()\n    loss.backward()\n"
     "    optimizer.step()\n    return loss", "✓"),
    ("training_step", "loss = mg.cross_entropy(model(images), labels)\n    loss.backward()\n    optimizer.step()\n"
     "    optimizer.zero_grad()\n    return loss.item()", "✓"),
    ("training_step", "optimizer.zero_grad()\n    loss = mg.cross_entropy(model(images), labels)\n    loss.backward()\n"
     "    optimizer.step()", "return loss"),
    ("training_step", "loss = mg.cross_entropy(model(images), labels)\n    optimizer.step()\n    return loss",
     "the weights do not move"),
    ("training_step", "loss = mg.cross_entropy(labels, model(images))\n    loss.backward()\n    return loss",
     "come first"),
    ("training_step", "loss = mg.nn.cross_entropy(model(images), labels)\n    return loss", "mg.cross_entropy"),
    ("training_step", "for _ in range(2):\n        optimizer.zero_grad()\n"
     "        loss = mg.cross_entropy(model(images), labels)\n        loss.backward()\n        optimizer.step()\n"
     "    return loss", "run twice"),
    ("momentum", "v = LR * v + g\n    return w - B * v, v", "lr and β are swapped"),
    ("momentum", "v = B * 0 + g\n    return w - LR * v, v", "the old velocity is not used"),
    ("momentum", "v = B * v + g\n    return w - 3 * LR * v, v", "v is right: look at the lines of w"),
    ("adam", HATS + "w = w - LR * a / (mg.sqrt(b) + EPS)\n    return w - LR * D * w, m, v", "of the *new* w"),
    ("adam", HATS + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * 1.001 * w, m, v", "m and v are right"),
    ("adam", HATS + "w *= 1 - LR * D\n    w -= LR * a / (mg.sqrt(b) + EPS)\n    return w, m, v", "✓"),
    ("momentum", "v *= B\n    v += g\n    w -= LR * v\n    return w, v", "✓"),
    ("momentum", "v = B * v + g\n    return [w - LR * v, v]", "✓"),
    ("momentum", "v = B * v + g\n    w = w - LR * v", "is there a `return`"),
    ("momentum", "v = mg.asarray([B * a + b for a, b in zip(v.tolist(), g.tolist())])\n    return w - LR * v, v", "✓"),
    ("momentum", "v = B * v - g\n    return w + LR * v, v", "w is right, and v has the other sign"),
    ("momentum", "v = B * v + g\n    return w - LR * v, v, g", "3 values\n"),
    ("training_step", "optimizer.zero_grad()\n    loss = mg.cross_entropy(model(images), labels)\n    loss.backward()\n"
     "    optimizer.step()\n    return loss, model", "not the loss"),
    ("training_step", "optimizer.zero_grad()\n    loss = mg.cross_entropy(mg.softmax(model(images)), labels)\n"
     "    loss.backward()\n    optimizer.step()\n    return loss", "contains the softmax already"),
    ("training_step", "optimizer.zero_grad()\n    loss = mg.cross_entropy(model(images), labels)\n"
     "    (-loss).backward()\n    optimizer.step()\n    return loss", "uphill"),
    ("momentum", "v = B * v + g\n    return w - LR * v", "return all new values"),
    ("momentum", "v = B * v + g\n    return w - LR * (g + B * v), v", "Nesterov"),
    ("momentum", "v = B * v - LR * g\n    return w + v, v", "the sign of a step"),
    ("adam", HATS + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "✓"),
    ("adam", HATS + "w = w * (1 - LR * D)\n    return w - LR * a / (b ** 0.5 + EPS), m, v", "✓"),
    ("adam", HATS + "return w - LR * a / (np.sqrt(b) + EPS) - LR * D * w, m, v", "✓"),
    ("adam", HATS + "return w - LR * (a / (mg.sqrt(b) + EPS) + D * w), m, v", "✓"),
    ("adam", HATS + "return w - LR * a / mg.sqrt(b + EPS) - LR * D * w, m, v", "outside the root"),
    ("adam", HATS + "return w - LR * a / (mg.sqrt(b) + EPS) - D * w, m, v", "lacks lr"),
    ("adam", "g = g + D * w\n    " + HATS + "return w - LR * a / (mg.sqrt(b) + EPS), m, v", "coupled"),
    ("adam", MEANS + "return w - LR * m / (mg.sqrt(v) + EPS) - LR * D * w, m, v", "began at 0"),
    ("adam", MEANS + "m = m / (1 - B1 ** t)\n    v = v / (1 - B2 ** t)\n"
     "    return w - LR * m / (mg.sqrt(v) + EPS) - LR * D * w, m, v", "for this step only"),
    ("adam", HATS + "return w - LR * a / (math.sqrt(b) + EPS) - LR * D * w, m, v", "mg.sqrt(v)"),
    ("adam", MEANS + "a = m / (1 - B1) ** t\n    b = v / (1 - B2) ** t\n"
     "    return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "the power is for β alone"),
    ("adam", MEANS + "a = m * (1 - B1 ** t)\n    b = v * (1 - B2 ** t)\n"
     "    return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "not multiplied"),
    ("adam", MEANS + "a = m / 1 - B1 ** t\n    b = v / 1 - B2 ** t\n"
     "    return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "comes before -"),
    ("adam", MEANS + "a = m / (1 - B1 ^ t)", "a power is written **"),
    ("adam", HATS + "return w - LR * a / mg.sqrt(b) + EPS - LR * D * w, m, v", "belongs to the divisor"),
    ("adam", HATS + "return w - LR * a / (mg.sqrt(b) + EPS) + LR * D * w, m, v", "the sign of the decay"),
    ("adam", "g = g + D * w\n    " + HATS + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v",
     "enters twice"),
    ("adam", HATS.replace("(1 - B2) * g ** 2", "((1 - B2) * g) ** 2")
     + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "of g alone"),
    ("adam", HATS.replace("B1 * m + (1 - B1) * g", "(1 - B1) * m + B1 * g")
     + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "in m the shares"),
    ("adam", HATS.replace("B1 * m + (1 - B1) * g", "B2 * m + (1 - B2) * g").replace(
        "B2 * v + (1 - B2) * g", "B1 * v + (1 - B1) * g")
     + "return w - LR * a / (mg.sqrt(b) + EPS) - LR * D * w, m, v", "β₁ is for m"),
    ("adam", HATS + "return w - LR * a / (b.sqrt() + EPS) - LR * D * w, m, v", "✓"),
    ("read_rows", "return [[float(x) for x in line.split(SIGN)] for line in lines[1:]], {}", "try:"),
    ("read_rows", "good, bad = [], {}\n    for n, line in enumerate(lines, 1):\n        if n > 1:\n            try:\n"
     "                row = [float(x) for x in line.split(SIGN)]\n                assert len(row) == 3\n"
     "                assert all(abs(x) < 1e300 for x in row)\n                good.append(row)\n"
     "            except Exception:\n                bad[n] = 'bad'\n    return good, bad", "✓"),
    ("read_rows", "good = []\n    for line in lines[1:]:\n        try:\n"
     "            good.append([float(x) for x in line.split(SIGN)])\n        except ValueError:\n            pass\n"
     "    return good, {}", "does not name it"),
    ("read_rows", "return [[float(x) for x in line.split(SIGN)] for line in lines[1:2]]", "two things"),
    ("read_rows", "return [], [2, 3]", "a dictionary"),
    ("read_rows", "return {3: 'bad'}, []", "swapped"),
    ("read_rows", "return [], {n: 'bad' for n, line in enumerate(lines, 1)}", "the header is not a row"),
    ("read_rows", ROWS.replace("SIGN", "'another'"), "the sign of your file"),
    ("read_rows", ROWS.replace("all(map(math.isfinite, row))", "not any(map(math.isnan, row))"), "nan, inf and -inf"),
    ("read_rows", ROWS.replace("== 3", ">= 3"), "more fields than the header"),
    ("read_rows", ROWS.replace("== 3", "<= 3"), "fewer fields than the header"),
    ("read_rows", ROWS.replace("good.append(row)", "good += row"), "rows.append(row)"),
    ("read_rows", ROWS.replace("all(map(math.isfinite, row))", "math.isfinite(row)"), "takes one number"),
    ("read_rows", ROWS.replace("bad[n] = str(e)", "pass").replace(" and all(map(math.isfinite, row))", ""),
     "two things are missing: the report"),
    ("usable", ITEMS, "✓"),
    ("usable", "return {2: 'bad'}, [0, 1]", "swapped"),
    ("usable", "return [], [2]", "'not a picture'"),
    ("usable", ITEMS.replace("range(len(dataset))", "len(dataset)"), "range(len(dataset))"),
    ("usable", ITEMS.replace("range(len(dataset))", "range(1, len(dataset) + 1)"), "from 0 to len(dataset) - 1"),
    ("usable", ITEMS.replace("range(len(dataset))", "range(len(dataset) - 1)"), "the last item is missing"),
    ("usable", ITEMS.replace("dataset[i]; good.append(i)", "good.append(i); dataset[i]"), "before the item is loaded"),
    ("usable", ITEMS.replace("bad[i]", "bad[len(bad)]"), "the numbers of the items"),
    ("usable", ITEMS.replace("range(len(dataset))", "dataset"), "Their numbers"),
    ("usable",
     "good, bad = [], {}\n    for i, item in enumerate(dataset):\n        good.append(i)\n    return good, bad",
     "except Exception"),
    ("usable", "good, bad = [], {}\n    for i in range(len(dataset)):\n        try:\n            dataset[i]\n"
     "            good.append(i)\n        except ValueError as e:\n            bad[i] = str(e)\n    return good, bad",
     "except Exception"),
    ("usable", "good, bad = [], {}\n    for i in range(len(dataset)):\n        try:\n            dataset[i]\n"
     "            good += [i]\n        except BaseException as e:\n            bad[i] = repr(e)\n    return good, bad",
     "✓"),
    ("usable", "good, bad = [], {}\n    for i in range(len(dataset)):\n        try:\n            dataset[i]\n"
     "            good += [i]\n        except Exception:\n            bad[i] = ''\n    return good, bad",
     "without a reason"),
    ("checkpoint_parts", "return {'m': training.model, 'o': training.optimizer, 'l': training.loader, "
     "'s': training.schedule, 'extra': {'step': 20}}", "✓"),
    ("checkpoint_parts", "return {'model': training.model, 'optimizer': training.optimizer}", "two things are missing"),
    ("checkpoint_parts", "return training.model, training.optimizer", "a dictionary"),
    ("checkpoint_parts", "return {'weights': training.weights}", "model, optimizer, schedule and loader"),
    ("checkpoint_parts", "return {'model': training.model, 'step': 20}", "taken by the checkpoint itself"),
    ("checkpoint_parts", "return {'random': training.model}", "none is called"),
    ("read_digits", "mode = model.training\n    with mg.no_grad():\n        out = model.eval()(images)\n"
     "    model.train(mode)\n    return out.numpy().argmax(axis=1)", "✓"),
    ("read_digits", "model.eval()\n    with mg.no_grad():\n        return model(images).argmax(1)", "the model stays"),
    ("read_digits", "return model(images).argmax(1)", "model.eval()"),
    ("read_digits", "from copy import deepcopy\n    with mg.no_grad():\n"
     "        return deepcopy(model).eval()(images).argmax(1)", "✓"),
    ("read_digits", "from copy import deepcopy\n    return deepcopy(model).eval()(images).argmax(1)", "is recorded"),
    ("read_digits", "with mg.no_grad:\n        return model.eval()(images).argmax(1)", "with parentheses"),
    ("read_digits", "return [model(image).argmax() for image in images]", "reads a batch"),
    ("read_digits", "return model(images).argmax(dim=1)", "NumPy's names"),
    ("compared", "mg.io.export_onnx(model.eval(), path, images)\n"
     "    return np.abs(run(path, images.numpy()) - model(images).detach().numpy()).max()", "✓"),
    ("compared", "mg.io.export_onnx(model.eval(), path, images)\n"
     "    return abs(run(path, images.numpy()) - run(path, images.numpy())).max()",
     "two different programs were not compared"),
    ("compared", "return abs(run(path, images.numpy()) - model.eval()(images).numpy()).max()", "comes before run"),
    ("compared", "mg.io.export_onnx(model.eval(), path, images)\n"
     "    return max(abs(run(path, images.numpy()) - model(images).detach().numpy()))", "has its own max"),
    ("compared", "mg.io.export_onnx(model.eval(), path, images)\n"
     "    return abs(run(path, images.numpy()).max() - model(images).detach().numpy().max())",
     "Subtract all outputs first"),
    ("compared", "model.eval()\n    return 0", "export_onnx(model, path, images)"),
    ("compared", "mg.io.export_onnx(model.eval(), path, images)\n    return 0.5", "read off"),
    ("read_digits", "before = model.training\n    with mg.no_grad():\n        scores = model.eval()(images)\n"
     "    model.training = before\n    return scores.argmax(1)", "its layers have one each"),
    ("usable", ITEMS.replace("repr(e)", "1"), "without a reason"),
])
def test_feedback_on_the_parts_of_a_training(name, body, words):
    assert words in feedback(name, body)


@pytest.mark.parametrize(("answer", "words"), [
    ('second_step = "less than lr"', "✓"),
    ('second_step = "not at all"', "kept most of the first gradient"),
    ('second_step = "LR"', "forget at different rates"),
    ("second_step = 0.1", "has another form"),
    ("learned = 3610", "✓"),  # 48 hidden numbers
    ("learned = 64 * 48 + 48 * 10", "bias"),
    ("learned = 122", "each pair"),
    ("learned = 64 * 48 * 10", "are added"),
    ("learned = 3562", "48 outputs"),
    ("learned = 74 * 48 + 64 + 48", "to an output, not to an input"),
    ("learned = 4", "these are the tensors"),
    ("spread = 1.2 ** 10", "✓"),
    ('spread = "1.2 ^ 10"', "✓"),
    ("spread = 12", "both signs"),
    ("spread = 1.2", "after one layer"),
    ("spread = 5", "The answer turns out to be larger"),
    ("keeps = 0.14", "✓"),  # with relu
    ('keeps = "sqrt(2 / 100)"', "✓"),
    ("keeps = 0.1", "the other of the two"),
    ("keeps = 1", "Which spread of the *weights*"),
    ("keeps = 0.11", "equally long"),
    ("chance = 4.6", "✓"),  # of 100
    ('chance = "log 100"', "✓"),
    ("chance = 2", "base 10"),
    ("chance = 2.302585", "for ten classes"),
    ("chance = -4.60517018", "mind the sign"),
    ("chance = 100", "the share 1/100"),
    ('phase = "backward"', "✓"),
    ('phase = "gradients"', "✓"),
    ('phase = "step"', "reads the gradients"),
    ('phase = "optimizer"', "one of"),
    ("forgotten = 0.8", "✓"),  # from 2, with the slope 4
    ("forgotten = 1.2", "zero_grad"),
    ("forgotten = 3.2", "w gets smaller"),
    ("forgotten = -10", "lr is 0.1"),
    ("forgotten = 0.4", "4 + 4 in the second"),
    ("forgotten = 8", ".grad in the second step"),
    ("top_speed = 4", "✓"),  # β = 0.75
    ("top_speed = 3.99", "✓"),
    ("top_speed = 10", "β = 0.9"),
    ("top_speed = 1.75", "second velocity"),
    ('top_speed = "infinity"', "more and more slowly"),
    ("refused = 3", "✓"),
    ('refused = "three"', "✓"),
    ('refused = ["3 4", "none", "1.2.3"]', "How many"),
    ("refused = 2", "one more"),
    ("refused = 7", "some are read"),
    ("refused = 5", "nan and inf"),
    ("refused = 0", "some are refused"),
    ('first_difference = "loss 1"', "differs at once"),
    ("first_difference = 2", "decide which batch comes"),
    ("first_difference = 3", "sooner"),
    ("first_difference = 21", "count from the restart"),
    ("sorted_pictures = 340", "✓"),
    ("sorted_pictures = 300", "✓"),
    ("sorted_pictures = 20", "still tells its digits apart"),
    ("sorted_pictures = 200", "what all its pictures have in common"),
    ("scale = 0.0833", "✓"),
    ('scale = "sqrt(2 / 288)"', "✓"),
    ("scale = 1 / 288", "√n"),
    ("scale = 24", "divided, not multiplied"),
    ('lost = {"A": "optimizer", "B": "optimizer", "C": "optimizer"}', "the first loss would be right"),
    ('lost = ("loader", "optimizer", "random")', "✓"),
    ('lost = "loader"', "has another form"),
    ('phase = "loss.backward()"', "✓"),
])
def test_questions_of_training(answer, words):
    assert words in said_to(answer, answer.partition(" ")[0])


@pytest.mark.slow
@pytest.mark.parametrize("student", ["Ada"])
def test_right_rules_run_on_the_curves_of_the_library_and_wrong_ones_do_not(student):
    adam, momentum = TASKS["adam"](student), TASKS["momentum"](student)
    book = adam.given()["race"](momentum.right, adam.right)
    assert str(book).count("on the curve of minigrad's") == 2 and len(book.pages[0]) == 6
    uncorrected = adam.wrong(next(known for known in adam.mistakes if known.name == "Adam_1"))
    assert str(adam.race(momentum.right, uncorrected)).count("on the curve of minigrad's") == 1


@pytest.mark.slow
def test_a_training_on_files_leaves_the_damaged_ones_out(capsys):
    trained = TASKS["usable"]("").given()["train"](TASKS["usable"]("").right)
    assert trained.right > 330
    assert "1,425 pictures; left out:" in capsys.readouterr().out


@pytest.mark.parametrize("missing", [["onnx"], ["onnxruntime"]])
def test_a_missing_package_is_named_and_costs_nothing(missing, monkeypatch):
    monkeypatch.setattr(steps, "find_spec", lambda name: None if name in missing else sys.modules.get(name, name))
    said = feedback("compared", "mg.io.export_onnx(model.eval(), path, images)\n"
                    "    return np.abs(run(path, images.numpy()) - model(images).detach().numpy()).max()")
    assert ("python3 course add onnx" in said) == (missing == ["onnx"])
    assert ("run by minigrad's own reader" in said) == (missing == ["onnxruntime"])
