"""Files of programs that an attacker might write: mutations of the files of the corpus, and of their bytes."""

import copy
import io
import json
import zipfile
from functools import cache
from tempfile import TemporaryDirectory

from minigrad.compile.save.write import ARRAYS, CONTENT
from minigrad.core.primitive import P
from tests.compile.save import corpus

NUMBERS = (
    -(2**63), -(2**31), -2**30, -3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 12, 100, 2**20, 2**31, 10**9, 2**32, 10**12, 2**47,
    2**48, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, -1.0, 1e300,
)
VALUES = (
    None, True, False, "", "x", "3", "axis", "\x1b[31m", [], {}, [1, [2]], {"float": "nan"}, {"float": "inf"},
    {"tuple": []}, {"tuple": [0]}, {"tuple": [0, 0]}, {"tuple": [1, -1]}, {"list": [0]}, {"slice": [None, None, 0]},
    {"slice": [2**62, -(2**62), -1]}, {"ellipsis": True}, {"tensor": 0}, {"dtype": "float64"}, {"dtype": "object"},
    {"device": "cuda"}, {"device": "cpu:1"}, {"primitive": "call"}, {"primitive": "windows"}, {"at": 0}, {"at": 3},
    {"named": "__import__('os')", "fields": ["a"], "values": [1]}, {"dict": [["shape", 1]]},
)
DTYPES = ("float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool", "object", "complex64")
HUGE = 10**12
DEEP = "deeply nested"  # replaced by such a list when it is text


def files(seed, random):
    """The file of a seed, as bytes, and the name of its change."""
    name = random.choice(list(corpus.CORPUS))
    members = saved()[name]
    if random.random() < 0.1:
        return name, "bytes", damaged(written(members), random)
    data, arrays = json.loads(members[CONTENT]), [members[key] for key in members if key != CONTENT]
    made = []
    for _ in range(random.choice([1, 1, 1, 2, 3, 5])):
        change = random.choice(CHANGES)
        made.append(change.__name__.strip("_"))
        try:
            change(data, arrays, random)
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            pass  # an earlier change has removed what this one changes
    text = json.dumps(data).replace(json.dumps(DEEP), random.choice([nested(20), nested(400), nested(100_000)]))
    members = {CONTENT: text.encode()} | {f"{ARRAYS}{i}": array for i, array in enumerate(arrays)}
    return name, " ".join(made), written(members)


@cache
def saved():
    """The members of the file of each function in the corpus."""
    found = {}
    with TemporaryDirectory() as folder:
        for name in corpus.CORPUS:
            corpus.save(name, f"{folder}/file")
            with zipfile.ZipFile(f"{folder}/file") as archive:
                found[name] = {m.filename: archive.read(m) for m in archive.infolist()}
    return found


def written(members):
    """An archive of these members."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def damaged(raw, random):
    """Other bytes: cut, flipped, or all random."""
    how = random.randrange(4)
    if how == 0:
        return raw[: random.randrange(len(raw))]
    if how == 1:
        return random.randbytes(random.randrange(3000))
    flipped = bytearray(raw)
    for _ in range(random.choice([1, 3, 40])):
        flipped[random.randrange(len(raw))] = random.randrange(256)
    return bytes(flipped)


# Changes of the decoded file ------------------------------------------------------------------------------------------


def _places(tree, of=None):
    """All places in a tree, as (container, key)."""
    found = []
    for key, part in list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)):
        if of is None or of(part):
            found.append((tree, key))
        if isinstance(part, (dict, list)):
            found += _places(part, of)
    return found


def _graphs(data):
    """All graphs of a file, also those of branches and loops."""
    graphs = [data["graph"]]
    for graph in graphs:
        graphs += [v["graph"] for n in graph["nodes"] for v in n.get("attrs", {}).values()
                   if isinstance(v, dict) and "graph" in v]
    return graphs


def _a_graph(data, random):
    return random.choice(_graphs(data))


def _a_node(data, random):
    return random.choice([n for n in _a_graph(data, random)["nodes"] if "op" in n])


def _number(data, arrays, random):
    tree, key = random.choice(_places(data["graph"], lambda part: part.__class__ is int))
    tree[key] = random.choice([*NUMBERS, tree[key] + 1, tree[key] - 1, -tree[key]])


def _attribute(data, arrays, random):
    node = random.choice([n for g in _graphs(data) for n in g["nodes"] if n.get("attrs")])
    name = random.choice(list(node["attrs"]))
    node["attrs"][name] = copy.deepcopy(random.choice([*VALUES, *NUMBERS]))


def _numbers_of_attribute(data, arrays, random):
    """Change numbers in one attribute: a size, an axis, a part of an index."""
    nodes = [n for g in _graphs(data) for n in g["nodes"] if n.get("attrs")]
    node = random.choice(nodes)
    for tree, key in random.choices(_places(node["attrs"], lambda part: part.__class__ is int), k=2):
        tree[key] = random.choice(NUMBERS)


def _value(data, arrays, random):
    tree, key = random.choice(_places(data))
    tree[key] = copy.deepcopy(random.choice(VALUES))


def _dropped(data, arrays, random):
    tree, key = random.choice(_places(data))
    del tree[key]


def _moved(data, arrays, random):
    """Replace one part of the file by another."""
    places = _places(data["graph"])
    (tree, key), (other, there) = random.choice(places), random.choice(places)
    tree[key] = copy.deepcopy(other[there])


def _swapped_nodes(data, arrays, random):
    nodes = _a_graph(data, random)["nodes"]
    i, j = random.randrange(len(nodes)), random.randrange(len(nodes))
    nodes[i], nodes[j] = nodes[j], nodes[i]


def _twice(data, arrays, random):
    nodes = _a_graph(data, random)["nodes"]
    nodes.insert(random.randrange(len(nodes) + 1), copy.deepcopy(random.choice(nodes)))


def _primitive(data, arrays, random):
    _a_node(data, random)["op"] = random.choice([op.name for op in P] + ["system", "own"])


def _attributes_of_another(data, arrays, random):
    _a_node(data, random)["attrs"] = copy.deepcopy(_a_node(data, random)["attrs"])


def _node_of_another(data, arrays, random):
    _a_node(data, random).update(copy.deepcopy(_a_node(data, random)))


def _operand(data, arrays, random):
    node = _a_node(data, random)
    at = random.randrange(len(node["inputs"]))
    node["inputs"][at] = random.choice([{"at": random.randrange(-1, 12)}, *NUMBERS, *VALUES])


def _operands(data, arrays, random):
    inputs = _a_node(data, random)["inputs"]
    random.choice([inputs.reverse, inputs.pop, lambda: inputs.append({"at": 0})])()


def _kind(data, arrays, random):
    """Another shape, dtype or device of an input or an array."""
    entries = [e for g in _graphs(data) for e in (*g["inputs"], *g["nodes"]) if "shape" in e]
    entry = random.choice(entries)
    what = random.randrange(3)
    if what == 0:
        entry["shape"] = [random.choice([0, 1, 2, 3, 4, 5, *NUMBERS]) for _ in range(random.randrange(4))]
    elif what == 1:
        entry["dtype"] = random.choice(DTYPES)
    else:
        entry["device"] = random.choice(["cuda", "cpu:1", "cpu:99999999", "moon", "", "cpu:-1"])


def _array(data, arrays, random):
    at = random.randrange(len(arrays))
    arrays[at] = random.choice([arrays[at][:-1], arrays[at] * 2, b"", random.randbytes(len(arrays[at]))])


def _outputs(data, arrays, random):
    graph = _a_graph(data, random)
    count = len(graph["inputs"]) + len(graph["nodes"])
    graph["outputs"] = [random.randrange(count) for _ in range(random.choice([1, len(graph["outputs"])]))]


def _containers(data, arrays, random):
    key = random.choice(["args", "kwargs", "result", "arguments", "name", "format", "minigrad"])
    data[key] = copy.deepcopy(random.choice([*VALUES, *NUMBERS, DEEP]))


def nested(depth):
    """The text of a list in a list in a list."""
    return '{"list": [' * depth + "1" + "]}" * depth


def _bomb(data, arrays, random):
    """Nodes that need much memory or much time, or that reach beyond an array; their last one is a result."""
    graph = _a_graph(data, random) if random.random() < 0.3 else data["graph"]
    first = len(graph["inputs"]) + len(graph["nodes"])
    random.choice(BOMBS)(graph["nodes"], first, random)
    if random.random() < 0.9:
        graph["outputs"][random.randrange(len(graph["outputs"]))] = len(graph["inputs"]) + len(graph["nodes"]) - 1


def _op(name, *inputs, **attrs):
    return {"op": name, "inputs": list(inputs), "attrs": attrs}


def _sizes(*sizes):
    return {"tuple": list(sizes)}


def _full(shape, value=1.0, dtype="float32"):
    return _op("full", shape=_sizes(*shape), value=value, dtype={"dtype": dtype}, device={"device": "cpu"})


def _huge_full(nodes, at, random):
    nodes += [_full([random.choice([HUGE, 10**9, 2**29, 2**20])] * random.choice([1, 2])), _op("exp", {"at": at})]


def _huge_view(nodes, at, random):
    wide = _sizes(random.choice([HUGE, 10**9, 2**27, 10**6]), 4)
    then = random.choice([
        _op("sum", {"at": at + 1}, axis=_sizes(0, 1), keepdims=False, dtype=None),
        _op("argsort", {"at": at + 1}, axis=0, descending=False), _op("exp", {"at": at + 1}),
        _op("cumulative_sum", {"at": at + 1}, axis=0, dtype=None), _op("pow", {"at": at + 1}, 0.3),
    ])
    nodes += [_full([1, 4]), _op("broadcast_to", {"at": at}, shape=wide), then]


def _doubled(nodes, at, random):
    nodes.append(_full([4]))
    for i in range(60):
        nodes.append(_op("concat", {"at": at + i}, {"at": at + i}, axis=0))


def _padded(nodes, at, random):
    place = {"tuple": [{"slice": [random.choice([0, 5, HUGE]), random.choice([4, 9, HUGE + 4]), None]},
                       {"ellipsis": True}]}
    nodes += [_full([4]), _op("place", {"at": at}, shape=_sizes(random.choice([9, HUGE, 2**28])), index=place)]


def _product(nodes, at, random):
    size = random.choice([100, 3000, 12_000, 10**5, 10**6])
    dtype = random.choice(["float32", "int64", "float16"])
    nodes += [_full([size, size], 1, dtype), _op(random.choice(["matmul", "solve"]), {"at": at}, {"at": at})]


def _factors_of_large(nodes, at, random):
    size = random.choice([10, 500, 4000, 30_000])
    nodes += [_full([size, size]), _op(random.choice(["svd", "eigh", "cholesky", "slogdet"]), {"at": at})]


def _outside(nodes, at, random):
    windows = {"axis": _sizes(0), "size": _sizes(2), "stride": _sizes(1), "dilation": _sizes(1)}
    windows[random.choice(list(windows))] = _sizes(random.choice(NUMBERS), *random.choice([[], [1]]))
    nodes += [_full([64]), _op("windows", {"at": at}, **windows)]


def _chained(nodes, at, random):
    attrs = {key: _sizes(n) for key, n in (("axis", 0), ("size", 2), ("stride", 1), ("dilation", -(2**30)))}
    steps = [["windows", attrs], ["slice", {"index": {"tuple": [random.choice(NUMBERS), {"ellipsis": True}]}}],
             ["reshape", {"shape": _sizes(random.choice(NUMBERS), 2)}], ["permute_dims", {"axes": _sizes(1, 0)}],
             ["allreduce", {}], ["broadcast_to", {"shape": _sizes(9, 64)}]]
    chosen = random.choices(steps, k=random.choice([1, 1, 2, 3]))
    chain = _sizes(*[_sizes({"primitive": name}, {"dict": list(attrs.items())}) for name, attrs in chosen])
    nodes += [_full([64]), _op("put", {"at": at}, 5.0, chain=chain)]


def _position(nodes, at, random):
    index = [random.choice([-65, -1, 0, 63, 64, 2**31, 2**62])]
    nodes += [_full([64]), _full([3], index[0], "int64"), random.choice([
        _op("gather", {"at": at}, {"at": at + 1}), _op("scatter_add", {"at": at}, 1.0, {"at": at + 1}),
        _op("put", {"at": at}, 1.0, {"at": at + 1}, chain=_sizes()),
    ])]


def _body(*nodes, inputs=((), ), dtype="float32", outputs=(1,)):
    kinds = [{"shape": list(shape), "dtype": dtype, "device": "cpu"} for shape in inputs]
    return {"graph": {"inputs": kinds, "nodes": list(nodes), "outputs": list(outputs)}}


def _endless(nodes, at, random):
    always = _body(_op("less", {"at": 0}, random.choice([1.0, 3.0, {"float": "nan"}])))
    step = _op("multiply", {"at": 0}, random.choice([0.5, 1.0, 2.0]))
    nodes += [_full([], 0.5), _op("while_loop", {"at": at}, condition=always, body=_body(step), consts=0,
                                  limit=random.choice([None, 5, HUGE]), keep=random.choice([False, True]))]
    nodes.append(_op("project", {"at": at + 1}, index=random.choice([0, 1, 2])))


def _scanned(nodes, at, random):
    length = random.choice([0, 3, 10**4, 10**7, HUGE, -1])
    body = _body(_op("sin", {"at": 0}), outputs=random.choice([(1,), (1, 1), (1, 0)]))
    counted = random.choice([True, False])
    nodes += [_full([], 0.5), _full([], random.choice([5, HUGE, -4]), "int64")]
    given = [{"at": at + 1}] if counted else []
    nodes.append(_op("scan", *given, {"at": at}, body=body, consts=0, carries=1, length=length, reverse=False,
                     counted=counted, keep=random.choice([False, True]), draws=_sizes()))
    nodes.append(_op("project", {"at": at + 2}, index=random.choice([0, 1, 2])))


def _deep_loops(nodes, at, random):
    """Loops in loops in loops."""
    body = _body(_op("sin", {"at": 0}))
    for _ in range(random.choice([2, 4, 30])):
        loop = _op("scan", {"at": 0}, body=body, consts=0, carries=1, length=random.choice([2, 1000]), reverse=False,
                   counted=False, keep=False, draws=_sizes())
        body = _body(loop, _op("project", {"at": 1}, index=0), outputs=(2,))
    nodes += [_full([]), loop | {"inputs": [{"at": at}]}, _op("project", {"at": at + 1}, index=0)]


def _many_nodes(nodes, at, random):
    nodes.append(_full([4]))
    for i in range(random.choice([50, 300, 5000])):
        nodes.append(_op(random.choice(["sin", "tanh", "negative"]), {"at": at + i}))


BOMBS = (
    _huge_full, _huge_view, _doubled, _padded, _product, _factors_of_large, _outside, _outside, _chained, _chained,
    _position, _endless, _scanned, _scanned, _deep_loops, _many_nodes,
)
CHANGES = (
    _number, _number, _attribute, _attribute, _numbers_of_attribute, _numbers_of_attribute, _value, _dropped, _moved,
    _moved, _swapped_nodes, _twice, _primitive, _primitive, _attributes_of_another, _node_of_another, _operand,
    _operand, _operands, _kind, _kind, _array, _outputs, _outputs, _containers, _bomb, _bomb, _bomb,
)
