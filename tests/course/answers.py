"""Wrong answers of students, each with words of the hint that it should get, or None where no hint would be right.

`origin` names the source of an answer.  Teachers add the answers that students handed in, unchanged, and remove those
that were only guessed.  A wrong answer without a fitting hint shows that a hint is missing.
"""

from typing import NamedTuple


class Answer(NamedTuple):
    """A cell that a student wrote for a task."""

    task: str
    cell: str
    hint: str | None
    origin: str


TRIED = "an author's guess at what a beginner writes; not handed in yet"
MICROGRAD = "how the chain rule is written in micrograd's tutorials, where rules change .grad in place"
SMAUG = "the bug of a compiler that kept edges in a set: https://github.com/harvard-acc/smaug/pull/18"
PREORDER = "the order of a teaching engine's first versions: https://github.com/karpathy/micrograd/issues/96"
BROADCAST = "the bug of engines that did not sum: https://github.com/deeplearning4j/nd4j/issues/2424"
PEAK = "users who expect any checkpoint to lower the peak: https://github.com/pytorch/pytorch/issues/78731"
TORCH = "how PyTorch spells it: torch.utils.checkpoint.checkpoint(function, x)"
COLUMNS = "import minigrad as mg\n\ndef columns(f, x):\n    "
BLOCKS = "import minigrad as mg\n\ndef run_blocks(blocks, x, plan):\n    "
NETWORK = (
    "import numpy as np\ndef {}(x, t, W, b, V, c):\n    z = x @ W + b\n    h = {}\n    e = np.exp(h @ V + c)\n"
    "    p = e / e.sum(1, keepdims=True)\n    do = (p - t) / len(x)\n    dz = do @ V.T * {}\n"
    "    return x.T @ dz, dz.sum(0), h.T @ do, do.sum(0)"
)
COPIED = "a layer that passed its gradient on unchanged: https://github.com/pjreddie/darknet/pull/96"
MEANS = "what training libraries did: https://github.com/huggingface/transformers/issues/24725"
SOFTMAX = "import minigrad as mg\ndef softmax(x):\n    return "
FROZEN = "the belief that a compiled function never changes again: https://github.com/jax-ml/jax/issues/1348"
SLICES = "the belief that a slice is a copy, as with lists: https://github.com/numpy/numpy/issues/19150"
DETACHED = "users who try .data or detach(): https://github.com/pytorch/pytorch/issues/6990"
BATCHES = ("import minigrad as mg\ndef refilled(w, buffer, batches):\n    losses = []\n    for b in batches:\n"
           "        buffer[:] = mg.asarray(b)\n        losses.append((w * ")
WINDOWED = "def windowed(shape, strides, axis, size, step):\n    "
UNROLLED = "a loop with the length of the example: https://github.com/pytorch/pytorch/issues/59530"
LEAK = "a mask that hides nothing: https://github.com/karpathy/minGPT/issues/75"
LOOPS = "libraries that leave out self-loops: https://github.com/dmlc/dgl/issues/1566"
WHOLE = "what a course did: https://github.com/huggingface/deep-rl-class/pull/70"
BOTH = "import numpy as np\nimport minigrad as mg\n"
NAMES = f"{BOTH}def names_loss(model, text):\n    m = np.ones((12, 12))\n    return "
TIES = f"{BOTH}def club_loss(network, pairs, labels, known):\n    k = mg.asarray(known)\n    "
POLE = "import minigrad as mg\ndef pole_loss(log_chances, stood):\n    r = stood.sum(0)\n    "
SKIPS = "a loader that trusts each item: https://github.com/pytorch/pytorch/issues/1137"
WEIGHTS = "a checkpoint of the weights alone: https://github.com/AlexeyAB/darknet/issues/6720"
MODES = "readings in training mode: https://github.com/pytorch/vision/issues/2079"
ZEROS = "what a compiler did: https://github.com/pytorch/pytorch/issues/189799"
LONG = "a program that runs as long as its messages are short: https://github.com/rsmpi/rsmpi/issues/144"
SENDS_FIRST = (
    "def reduce_scatter(comm, chunks):\n    n, r = comm.size, comm.rank\n    for s in range(1, n):\n"
    "        comm.send(chunks[(r - s) % n], (r + 1) % n)\n"
    "        chunks[(r - s - 1) % n] += comm.recv((r - 1) % n, chunks[(r - s - 1) % n])"
)

ANSWERS = [
    Answer("mlp_grad", NETWORK.format("mlp_grad", "np.tanh(z)", "1"), "slope of tanh is missing", COPIED),
    Answer("mlp_grad", NETWORK.format("mlp_grad", "np.tanh(z)", "(1 - h)"), "it is 1 - h * h", TRIED),
    Answer("mlp_grad", NETWORK.format("mlp_grad", "np.tanh(z)", "(1 - z * z)"), "reads the output", TRIED),
    Answer("swapped_grad", NETWORK.format("swapped_grad", "z / (1 + np.exp(-z))", "(1 - h * h)"), "forgotten", TRIED),
    Answer("swapped_grad", NETWORK.format("swapped_grad", "np.tanh(z)", "(1 - h * h)"), "two lines must", TRIED),
    Answer("whole_gradient", "def whole_gradient(parts):\n    return sum(g for n, g in parts) / len(parts)",
           "counts more than", MEANS),
    Answer("whole_gradient", "def whole_gradient(parts):\n    return sum(g for n, g in parts)", "sum of means", TRIED),
    Answer("stack_counts", "stack_counts = [4, 4, 4, 5]", "records nothing", TRIED),
    Answer("stack_counts", "stack_counts = [1, 1, 0, 5]", "each operator and each function is an operation", TRIED),
    Answer("step_gain", "step_gain = 20.0", "takes as long as before", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return a * g, b * g", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return b, a", "g is missing", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return [b * g, a * g][::-1]", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return b * g + a * g", "you added", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    return g * out / b, g * out / a", "swapped", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    a.grad += b * g\n    b.grad += a * g", ".grad", MICROGRAD),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    out = a * b\n    return out", "not its slope", TRIED),
    Answer("mul_grad", "def mul_grad(g, out, a, b):\n    print(b * g, a * g)", "return", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return g * b, g * a", "numbers of its own", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return 3 * b * g, 3 * a * g", "used twice", TRIED),
    Answer("mixed_grad", "def mixed_grad(g, out, a, b):\n    return 3 * b + 6, 3 * a", "g is missing", TRIED),
    Answer("gradient_of_a", "gradient_of_a = -5", "g times as fast as the product", TRIED),
    Answer("gradient_of_a", "gradient_of_a = 8", "that is for b", TRIED),
    Answer("gradient_of_a", "gradient_of_a = 20", "mind the sign", TRIED),
    Answer("gradient_of_a", "gradient_of_a = -0.2", "by how much y changes", TRIED),
    Answer("gradient_of_a", "gradient_of_a = '-20'", "without the quotation marks", TRIED),
    Answer("sigmoid_grad", "def sigmoid_grad(g, out, x):\n    return out * (1 - out)", "g is missing", TRIED),
    Answer("sigmoid_grad", "def sigmoid_grad(g, out, x):\n    return g * x * (1 - x)", "uses the output", TRIED),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g", "b was repeated here", BROADCAST),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g.sum(0)", "axis 0 always", TRIED),
    Answer("add_grad", "def add_grad(g, out, a, b):\n    return g, g.sum()", "to one number", TRIED),
    Answer("matmul_grad", "def matmul_grad(g, out, a, b):\n    return b.T, a.T", "multiplied by g", TRIED),
    Answer("matmul_grad", "def matmul_grad(g, out, a, b):\n    return g * b, g * a", "matrix product is `@`", TRIED),
    Answer("maximum_grad", "def maximum_grad(g, out, a, b):\n    return g * (a >= b), g * (b > a)", ">=", TRIED),
    Answer("bias_gradient", "bias_gradient = [1, 1, 1]", "each number of b is used once", TRIED),
    Answer("emit", "def emit(op, inputs):\n    return op.compute([getattr(x, 'data', x) for x in inputs]), "
           "list(dict.fromkeys([getattr(x, 'node', x) for x in inputs]))", "one edge for each use", SMAUG),
    Answer("emit", "def emit(op, inputs):\n    return op.compute([getattr(x, 'data', x) for x in inputs]), inputs",
           "an edge leads to a node", TRIED),
    Answer("topological_order", "from minigrad_course import inputs_of\n"
           "def topological_order(result):\n    found = []\n    def visit(node):\n"
           "        if node not in found:\n            found.append(node)\n            for each in inputs_of(node):\n"
           "                visit(each)\n    visit(result)\n    return found[::-1]", "when it is first met", PREORDER),
    Answer("same_graph", "def same_graph(one, other):\n    return one.name == other.name", "go on with its inputs",
           TRIED),
    Answer("moved", 'moved = ("d", 0, "x")', "in the line of d", TRIED),
    Answer("dispatch", "def dispatch(op, inputs, table):\n    return table['cpu'][op]", "always the kernel", TRIED),
    Answer("dispatch", "def dispatch(op, inputs, table):\n    return table[inputs[0].device][op]", "no device", TRIED),
    Answer("coarse_matmul", "def coarse_matmul(x, y):\n    return x @ y", "that is the exact product", TRIED),
    Answer("chip_kernels", "chip_kernels = [max, min]", "in braces", TRIED),
    Answer("metered", "def metered(op, kernel, bill):\n    return kernel", "bill[op] += the cost", TRIED),
    Answer("additions", "additions = 1", "three copies and its own time", TRIED),
    Answer("mul_jvp", "def mul_jvp(a, b, da, db):\n    return da * b", "b moves too", TRIED),
    Answer("mul_jvp", "def mul_jvp(a, b, da, db):\n    return da * db", "one at a time", TRIED),
    Answer("mul_jvp", "def mul_jvp(a, b, da, db):\n    return b, a", "what b contributes, added", TRIED),
    Answer("columns", COLUMNS + "return mg.jacobian(f)(x)", "is a pass of forward mode", TRIED),
    Answer("columns", COLUMNS + "return mg.jvp(f, (x,), (mg.ones(x.size),))", "returns two things", TRIED),
    Answer("run_blocks", BLOCKS + "for b in blocks: x = mg.checkpoint(b)(x)\n    return x", "of its own", TRIED),
    Answer("run_blocks", BLOCKS + "return mg.checkpoint(blocks[0], x)", "mg.checkpoint(f)(x)", TORCH),
    Answer("chain_plan", "chain_plan = [10]", "saves nothing", PEAK),
    Answer("chain_plan", "chain_plan = [5, 5]", "Cut it", TRIED),
    Answer("gpt_plan", "gpt_plan = []", "Cut a seam", TRIED),
    Answer("who_changes", "who_changes = []", "is a view", SLICES),
    Answer("versions", 'versions = (3, ["p"])', "does not write into the buffer", TRIED),
    Answer("refilled", BATCHES + "buffer.detach()).sum())\n    return sum(losses)", "a view of the same memory",
           DETACHED),
    Answer("refilled", BATCHES + "buffer).sum())\n    return sum(losses)", "keeps the buffer itself", DETACHED),
    Answer("transposed", "def transposed(shape, strides, axes):\n    return shape[::-1], strides[::-1]",
           "turns the order", TRIED),
    Answer("broadcasted", "def broadcasted(shape, strides, target):\n"
           "    return (0,) * (len(target) - len(shape)) + strides", "An axis of size 1 is repeated too", TRIED),
    Answer("windowed", WINDOWED + "return (*shape[:axis], (shape[axis] - size) // step + 1, *shape[axis + 1 :], size), "
           "(*strides, strides[axis])", "right for step 1", TRIED),
    Answer("convolve", "import minigrad as mg\ndef convolve(pictures, filters):\n    n = len(pictures)\n"
           "    return mg.windows(pictures, 3, axis=(1, 2)).reshape(n, -1, 9) @ filters.reshape(-1, 9)", "(9, k)",
           TRIED),
    Answer("gelu", "def gelu(i, x, out):\n    return x[i] / 2", "returns nothing", TRIED),
    Answer("gelu", "import minigrad as mg\ndef gelu(i, x, out):\n    out[i] = mg.gelu(x[i])", "on tensors", TRIED),
    Answer("gelu", "def gelu(i, x, out):\n    out[i] = x / 2", "read one number", TRIED),
    Answer("gelu_backward", "def gelu_backward(i, g, x, dx):\n    dx[i] = g[i]", "unchanged", TRIED),
    Answer("softmax", SOFTMAX + "mg.exp(x) / mg.exp(x).sum(-1, keepdims=True)", "overflows", TRIED),
    Answer("softmax", SOFTMAX + "mg.exp(x) / mg.exp(x).sum(-1)", "drops the axis", TRIED),
    Answer("softmax", SOFTMAX + "mg.softmax(x)", "with mg.exp", TRIED),
    Answer("norm", "def norm(x, weight, bias):\n    return x * weight + bias", "the mean of its squares", TRIED),
    Answer("guard", "def guard(values):\n    noted = values\n    return lambda: values == noted", "the same dictionary",
           TRIED),
    Answer("guard", "def guard(values):\n    noted = dict(values)\n    return lambda: values == noted", "deepcopy",
           TRIED),
    Answer("guard", "def guard(values):\n    return True", "not a function", TRIED),
    Answer("grow", "def grow(x):\n    while x.item() < 10:\n        x = x * 2\n    return x", "without .item()", TRIED),
    Answer("second_call", "second_call = [1]", "only the first?", FROZEN),
    Answer("baked_branch", "baked_branch = [8, 8, 8]", "the branch in the graph", TRIED),
    Answer("loop_difference", "loop_difference = (12.0, 12.0)", "The trace has no loop", UNROLLED),
    Answer("only_graph", 'only_graph = ("C", "multiply")', "a guard compares it", TRIED),
    Answer("breaks", 'breaks = {"A": "holds", "B": "holds", "C": 0.0, "D": 1.0}', "zero has a sign", TRIED),
    Answer("breaks", 'breaks = {"A": 0.0, "B": "holds", "C": 0.0, "D": 1.0}', "not ordinary", TRIED),
    Answer("my_rules", 'my_rules = ["x + 0 -> x"]', "with the sign of zero", ZEROS),
    Answer("my_rules", 'my_rules = ["-(x - y) -> y - x"]', "with the sign of zero", TRIED),
    Answer("my_rules", 'my_rules = ["-(-x) -> x"]', "still goes into a quotient", TRIED),
    Answer("merge_same", "def merge_same(nodes):\n    return {n: n for n in nodes}", "nothing is merged", TRIED),
    Answer("my_kernels", 'my_kernels = [["exp_1", "sum_1", "divide_1"]]', "known only after all of a", TRIED),
    Answer("my_kernels", 'my_kernels = [["exp_1", "sum_1"], ["divide_1"]]', "What if both compute it?", TRIED),
    Answer("why_not_fused", 'why_not_fused = {"A": "rows", "B": "rows", "C": "rows"}', "Are these counts", TRIED),
    Answer("one_kernel", "import minigrad as mg\ndef one_kernel(x):\n    return mg.sin(x)[::-1] * x", "is free", TRIED),
    Answer("row_loops", "import minigrad as mg\ndef row_loops(x, v):\n    return mg.exp(x) @ v", "still there", TRIED),
    Answer("scores_grad", "import minigrad as mg\ndef scores_grad(scores, targets):\n"
           "    return mg.softmax(scores) - targets", "two things are missing", TRIED),
    Answer("scores_grad", "import minigrad as mg\ndef scores_grad(scores, targets):\n"
           "    return mg.cross_entropy(scores, targets)", "a number for each score", TRIED),
    Answer("names_loss", f"{NAMES}mg.cross_entropy(model(text[:, :-1], m).reshape(-1, 27), text[:, 1:].reshape(-1))",
           "too good to be true", LEAK),
    Answer("names_loss", f"{NAMES}mg.cross_entropy(model(text[:, :-1], m).reshape(-1, 27), text[:, :-1].reshape(-1))",
           "should say letter i + 1", TRIED),
    Answer("club_loss", f"{TIES}A = np.zeros((34, 34))\n    for i, j in pairs: A[i, j] = A[j, i] = 1\n"
           "    d = A.sum(1)\n    A = A / np.sqrt(np.outer(d, d))\n"
           "    return mg.cross_entropy(network(A)[k], labels[k])", "the diagonal is missing", LOOPS),
    Answer("club_loss", f"{TIES}return mg.cross_entropy(network(np.eye(34))[k], labels[k])", "no message is sent",
           TRIED),
    Answer("pole_loss", f"{POLE}return -(log_chances * mg.asarray((r - r.mean()) * stood)).sum() / stood.sum()",
           "the reward of the whole episode", WHOLE),
    Answer("pole_loss", f"{POLE}return -(log_chances * mg.asarray(stood)).sum() / stood.sum()",
           "every push becomes more likely", TRIED),
    Answer("line_rooms", 'line_rooms = "ABCDEFGH"', "they must exist before", TRIED),
    Answer("ring_plan", "ring_plan = [[0, 1, 2, 3]] * 3", "Pass on the chunk that has just come", TRIED),
    Answer("bytes_sent", "bytes_sent = 120", "that is the array itself", TRIED),
    Answer("reduce_scatter", SENDS_FIRST, "none of them receives yet", LONG),
    Answer("reduce_scatter", "def reduce_scatter(comm, chunks):\n    chunks[comm.rank + 1] += 1", "is closed", TRIED),
    Answer("all_gather", "def all_gather(comm, chunks):\n    return chunks", "nothing has changed", TRIED),
    Answer("other_ring", "def other_ring(comm, x):\n    comm.send(x, comm.rank + 1)", "there is no", TRIED),
    Answer("training_step", "import minigrad as mg\ndef training_step(model, optimizer, images, labels):\n"
           "    loss = mg.cross_entropy(model(images), labels)\n    loss.backward()\n    optimizer.step()\n"
           "    return loss", "zero_grad is missing", TRIED),
    Answer("momentum", "def momentum(w, g, v):\n    return w, v", "Return both, w first", TRIED),
    Answer("adam", "def adam(w, g, m, v, t):\n    return w, m, v", "line by line", TRIED),
    Answer("read_rows", "def read_rows(lines):\n    return [line.split(',') for line in lines[1:]], {}", "split it",
           TRIED),
    Answer("usable", "def usable(dataset):\n    return list(range(len(dataset))), {}", "except Exception", SKIPS),
    Answer("checkpoint_parts", "def checkpoint_parts(training):\n    return {'model': training.model}",
           "three things begin again", WEIGHTS),
    Answer("read_digits", "def read_digits(model, images):\n    return model(images).argmax(1)", "You need both",
           MODES),
    Answer("lost", "lost = {'A': 'random', 'B': 'random', 'C': 'random'}", "the labels would be the same", TRIED),
    Answer("best_order", 'best_order = ["A", "B", "C", "D", "E", "F"]', "the alphabet", TRIED),
    Answer("best_order", 'best_order = ["B", "C", "E", "A", "D", "F"]', "the longest job first", TRIED),
    Answer("longest_chains", "def longest_chains(costs, after):\n    return costs", "the jobs alone", TRIED),
    Answer("list_schedule", "def list_schedule(costs, after, workers):\n    return {job: (0, 0) for job in costs}",
           "a job is ready when", TRIED),
    Answer("list_schedule", "def list_schedule(costs, after, workers):\n    return list(costs)", "a dictionary", TRIED),
    Answer("my_placement", 'my_placement = ["matmul_1"]', "a large table crosses the link", TRIED),
]
