"""Files that hold no program of ours: damaged, of another format, changed, or beyond the limits."""

import json
import os
import random
import sys
import time
import zipfile
import zlib

import numpy as np
import pytest

import minigrad as mg
from minigrad.compile.running.frame import Frame
from minigrad.compile.save import limits
from minigrad.compile.save.codec import decoded, encoded
from minigrad.compile.save.read import load_program
from minigrad.compile.save.write import ARRAYS, CONTENT
from tests.compile.save import hostile
from tests.compile.save.fuzz import FINE, run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "f.program"


def changed(path, change):
    """Write the same file with other content."""
    with zipfile.ZipFile(path) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    data = json.loads(members[CONTENT])
    if callable(change):
        change(data)
    else:
        data = change
    path.write_bytes(hostile.written(members | {CONTENT: json.dumps(data).encode()}))


def of_interest(path):
    w = mg.ones((4, 4))
    mg.jit(lambda x, y: mg.softmax(x @ w, axis=-1).sum(0) + mg.argsort(y) * 2).save(path, mg.ones((3, 4)), mg.ones(4))


def node(data, op):
    return next(node for node in data["graph"]["nodes"] if node.get("op") == op)


def _last(data, op):
    return [node for node in data["graph"]["nodes"] if node.get("op") == op][-1]


def array(data):
    return next(node for node in data["graph"]["nodes"] if "array" in node)


CHANGES = {
    "a newer format": (lambda d: d.update(format=99, minigrad="7.0"), "format 99, which minigrad 7.0 wrote and reads"),
    "an older format": (
        lambda d: d.update(format=3, minigrad="0.1.9"),
        rf"another format\n  Expected: format 4\n  Got: format 3, which minigrad 0.1.9 wrote and reads\n"
        rf"  Hint: save the function again with minigrad {mg.__version__}",
    ),
    "no program": ({"hello": "world"}, "is not a saved program"),
    "a list": ([1, 2], "is not a saved program"),
    "an unknown primitive": (lambda d: node(d, "matmul").update(op="system"), "there is no primitive 'system'"),
    "a primitive that runs code": (lambda d: node(d, "matmul").update(op="call"), "no primitive 'call'"),
    "random numbers": (lambda d: node(d, "matmul").update(op="random"), "no primitive 'random'"),
    "messages": (lambda d: node(d, "matmul").update(op="allreduce"), "no primitive 'allreduce'"),
    "an effect": (lambda d: node(d, "matmul").update(op="print"), "no primitive 'print'"),
    "a primitive with other attributes": (lambda d: node(d, "exp").update(op="sum"), "damaged"),
    "an attribute too many": (lambda d: node(d, "matmul")["attrs"].update(axis=0), "matmul has other attributes"),
    "an attribute that is missing": (lambda d: node(d, "sum")["attrs"].pop("axis"), "its parts do not fit together"),
    "a text as an axis": (lambda d: node(d, "sum")["attrs"].update(axis="x"), "sum cannot have axis='x'"),
    "an axis that does not exist": (lambda d: node(d, "argsort")["attrs"].update(axis=1), "cannot have axis=1"),
    "something that is not a dtype": (lambda d: node(d, "sum")["attrs"].update(dtype={"tensor": 0}), "have dtype="),
    "a device that is a text": (lambda d: node(d, "matmul")["attrs"].update(device="x"), "other attributes"),
    "fewer operands": (lambda d: node(d, "matmul")["inputs"].pop(), "matmul of 1 inputs"),
    "a number for a matrix": (lambda d: node(d, "matmul")["inputs"].__setitem__(1, 3), "input 1 of matmul is not a"),
    "a number too large": (lambda d: node(d, "multiply")["inputs"].__setitem__(1, 2**70), "is not a tensor"),
    "a float for an integer": (lambda d: _last(d, "multiply")["inputs"].__setitem__(1, 0.5), "not converted|is not a"),
    "a node from nowhere": (lambda d: node(d, "matmul").update(inputs=[{"at": 0}, {"at": 999}]), "no node 999 yet"),
    "a node before its time": (lambda d: node(d, "matmul").update(inputs=[{"at": 0}, {"at": 5}]), "there is no node"),
    "a negative place": (lambda d: node(d, "matmul").update(inputs=[{"at": 0}, {"at": -1}]), "there is no node -1"),
    "another shape": (lambda d: array(d).update(shape=[2, 8]), "matmul: shapes"),
    "an array cut short": (lambda d: array(d).update(shape=[8, 4]), "64 bytes of 'w' do not make an array of float32"),
    "an array twice": (lambda d: d["graph"]["nodes"].insert(0, array(d)), "an array is used twice, or not in order"),
    "an array that is not there": (lambda d: array(d).update(array=7), "not in order"),
    "bools that are neither": (lambda d: array(d).update(dtype="bool", shape=[64]), "not make an array of bool"),
    "a negative size": (lambda d: d["graph"]["inputs"][0].update(shape=[-3, 4]), r"\(-3, 4\) on cpu is not the shape"),
    "an unknown dtype": (lambda d: d["graph"]["inputs"][0].update(dtype="object"), "do not fit together"),
    "an unknown device": (lambda d: d["graph"]["inputs"][0].update(device="moon"), "there is no device named 'moon'"),
    "a device far away": (lambda d: d["graph"]["inputs"][0].update(device="cpu:99999"), "'cpu:99999' is not a value"),
    "several devices": (lambda d: array(d).update(device="cpu:1"), "matmul of tensors on several devices"),
    "code in a container": (lambda d: d.update(result={"eval": "1"}), "is not a value"),
    "a tensor that is not there": (lambda d: d.update(result={"tensor": 3}), "a tensor is missing"),
    "an argument twice": (lambda d: d["arguments"].append(0), "its parts do not fit together"),
    "no arguments": (lambda d: d.update(args=None), "not a list and a dict"),
    "a name that moves the cursor": (lambda d: d.update(name="\x1b[2J"), "is not a name"),
    "deep nesting": (lambda d: d.update(result=_deep()), "is not a saved program"),
}


def _deep():
    deep = 1
    for _ in range(400):
        deep = {"list": [deep]}
    return deep


@pytest.mark.parametrize("name", CHANGES)
def test_changed_files_are_refused(name, path, numpy_kernels):
    of_interest(path)
    mg.load_program(path)
    change, message = CHANGES[name]
    changed(path, change)
    limit = sys.getrecursionlimit()
    if name == "deep nesting":
        sys.setrecursionlimit(700)
    try:
        with pytest.raises(mg.ProgramError, match=message):
            mg.load_program(path)
    finally:
        sys.setrecursionlimit(limit)


WRONG = {  # attributes that a file may not have, by primitive
    "windows": ({"axis": (-1,)}, {"axis": (1,)}, {"axis": (0, 0), "size": (2, 2), "stride": (1, 1), "dilation": (1, 1)},
                {"stride": (-1,)}, {"dilation": (-50,)}, {"size": (0,)}, {"size": (True,)}, {"stride": (1, 1)},
                {"stride": 1}, {"size": (7,)}),
    "overlap_add": ({"shape": (-5,)}, {"shape": (7,)}, {"axis": (1,)}, {"stride": (0,)}, {"dilation": (-1,)}),
    "reshape": ({"shape": (-2, -3)}, {"shape": (5,)}, {"shape": [2, 3]}, {"shape": (6.0,)}),
    "permute_dims": ({"axes": (0, 0)}, {"axes": (1,)}, {"axes": (1, 2)}, {"axes": (-1, 0)}),
    "broadcast_to": ({"shape": (4, 5)}, {"shape": ()}, {"shape": (2**40, 2**40, 6)}),
    "slice": ({"index": (6, Ellipsis)}, {"index": (0,)}, {"index": (True, Ellipsis)}, {"index": ("x", Ellipsis)},
              {"index": (slice(None, None, 0), Ellipsis)}, {"index": (Ellipsis, Ellipsis)}, {"index": (2**70, ...)},
              {"index": (slice("a"), Ellipsis)}, {"index": (0, 0, Ellipsis)}),
    "place": ({"shape": (3,)}, {"index": (slice(0, 3), Ellipsis)}, {"shape": (-9,)}, {"index": (0, Ellipsis)}),
    "concat": ({"axis": 1}, {"axis": -1}, {"axis": None}),
    "sum": ({"axis": (1,)}, {"axis": (0, 0)}, {"keepdims": 1}, {"dtype": "float32"}, {"dtype": np.dtype("int64")}),
    "argmax": ({"axis": (0,)}, {"axis": 3}),
    "cumulative_sum": ({"axis": 1}, {"dtype": np.dtype("bool")}),
    "argsort": ({"descending": None}, {"count": 7}, {"count": -1}),
    "astype": ({"dtype": "float64"}, {"dtype": None}),
    "bitcast": ({"dtype": np.dtype("int64")}, {"dtype": np.dtype("bool")}),
    "full": ({"shape": (10**15,)}, {"value": "x"}, {"value": (1,)}, {"dtype": "int8"}, {"device": "cpu"}),
    "arange": ({"count": -1}, {"start": float("nan")}, {"step": None}, {"count": 2.0}),
    "qr": ({"complete": 3},),
    "project": ({"index": -1}, {"index": 5}),
    "to_device": ({"source": None}, {"device": "cpu"}),
    "put": ({"chain": None}, {"chain": ((1, 2),)}, {"chain": (("slice", {}),)}),
    "while_loop": ({"consts": 9}, {"consts": -1}, {"limit": -1}, {"keep": True}, {"keep": 0}, {"body": None}),
    "scan": ({"length": 5}, {"length": -1}, {"carries": 0}, {"carries": 5}, {"consts": 1}, {"counted": True},
             {"reverse": None}, {"draws": (1,)}),
    "cond": ({"then": None}, {"draws": (0,)}),
}
SIX = {
    "windows": lambda x: mg.windows(x, 2).sum(-1), "overlap_add": lambda x: mg.overlap_add(mg.windows(x, 2), (6,)),
    "reshape": lambda x: x.reshape(2, 3), "permute_dims": lambda x: x.reshape(2, 3).T + 1,
    "broadcast_to": lambda x: mg.broadcast_to(x, (4, 6)), "slice": lambda x: x[1:] * 2,
    "place": lambda x: mg.pad(x, ((1, 2),)), "concat": lambda x: mg.concat([x, x]), "sum": lambda x: x.sum(),
    "argmax": mg.argmax, "cumulative_sum": mg.cumulative_sum, "argsort": lambda x: mg.topk(x, 3),
    "astype": lambda x: x.astype("float64"), "bitcast": lambda x: mg.bitcast(x, "int32"),
    "full": lambda x: x + mg.full(6, 2.0), "arange": lambda x: x + mg.arange(6),
    "qr": lambda x: mg.linalg.qr(x.reshape(3, 2)), "project": lambda x: mg.cond(x[0] > 0, mg.exp, mg.sin, x),
    "to_device": lambda x: x.to("cpu:1") * 2, "put": lambda x: _written(x),
    "while_loop": lambda x: mg.while_loop(lambda c: c.sum() < 9, lambda c: c + x, x),
    "scan": lambda x: mg.scan(lambda c, y: (c + y, c * y), x[0], x),
    "cond": lambda x: mg.cond(x[0] > 0, mg.exp, mg.sin, x),
}


def _written(x):
    y = x.copy()
    y[2:] = 5
    return y


@pytest.mark.parametrize(("op", "attrs"), [(op, attrs) for op in WRONG for attrs in WRONG[op]])
def test_attributes_that_no_function_makes_are_refused(op, attrs, path, numpy_kernels):
    mg.jit(SIX[op]).save(path, mg.ones(6))

    def change(data):
        node(data, op)["attrs"].update({key: encoded(value) for key, value in attrs.items()})

    mg.load_program(path)
    changed(path, change)
    with pytest.raises(mg.ProgramError, match=rf"{op}|out of range|2 indices for a tensor of 1"):
        mg.load_program(path)


WINDOWS = {"axis": (0,), "size": (2,), "stride": (1,), "dilation": (-(2**30),)}


@pytest.mark.parametrize("step", [("windows", WINDOWS), ("broadcast_to", {"shape": (9, 6)}), ("allreduce", {}),
                                  ("reshape", {"shape": (2, -3)}), ("slice", {"index": (9, Ellipsis)}),
                                  ("permute_dims", {"axes": (1,)})])
def test_chains_of_views_are_checked(step, path, numpy_kernels):
    mg.jit(_written).save(path, mg.ones(6))
    name, attrs = step
    chain = {"tuple": [{"tuple": [{"primitive": name}, encoded(attrs)]}]}
    changed(path, lambda data: node(data, "put")["attrs"].update(chain=chain))
    with pytest.raises(mg.ProgramError, match=rf"put cannot have chain|{name}|index 9 is out of range"):
        mg.load_program(path)


def _of_body(change):
    def changes(data):
        change(next(n for n in data["graph"]["nodes"] if n.get("op") == "scan")["attrs"]["body"]["graph"])

    return changes


@pytest.mark.parametrize("change", [
    lambda body: body["inputs"][0].update(shape=[5]), lambda body: body["inputs"].append(body["inputs"][0]),
    lambda body: body["inputs"][1].update(dtype="float64"), lambda body: body["outputs"].reverse(),
    lambda body: body["outputs"].clear(), lambda body: body.update(outputs=[0]),
    lambda body: body["nodes"][0].update(op="sort"), lambda body: body["nodes"][0].update(inputs=[{"at": 9}, 1]),
])
def test_bodies_of_loops_are_checked(change, path, numpy_kernels):
    mg.jit(lambda x: mg.scan(lambda c, y: (c + y, y.astype("int32")), x[0], x)).save(path, mg.ones(6))
    changed(path, _of_body(change))
    try:
        program = mg.load_program(path)
    except mg.ProgramError:
        return
    carry, ys = program.program.graph.outputs  # the same number of results, of other values
    assert (carry.shape, ys.shape) == ((), (6,))


def test_a_count_of_rounds_beyond_the_room_is_cut(path, numpy_kernels):
    one = {"shape": [], "dtype": "float32", "device": "cpu"}
    body = {"graph": {"inputs": [one], "nodes": [{"op": "sin", "inputs": [{"at": 0}], "attrs": {}}], "outputs": [1, 1]}}

    def change(data):
        number = {"op": "astype", "inputs": [{"at": 0}], "attrs": {"dtype": {"dtype": "int64"}}}
        attrs = {"body": body, "consts": 0, "carries": 1, "length": 5, "reverse": False, "counted": True, "keep": False,
                 "draws": {"tuple": []}}
        loop = {"op": "scan", "inputs": [{"at": 1}, {"at": 0}], "attrs": attrs}
        ys = {"op": "project", "inputs": [{"at": 2}], "attrs": {"index": 1}}
        data["graph"] |= {"nodes": [number, loop, ys], "outputs": [3]}

    mg.jit(lambda x: x * 2).save(path, mg.ones(()))
    changed(path, change)
    program = mg.load_program(path)
    for count in (3.0, 5.0, 10.0, 1e12, -4.0):
        made = program(mg.asarray(count)).numpy_copy()
        assert made.shape == (5,) and not made[max(0, int(min(count, 5))):].any()


@pytest.mark.parametrize("made", [np.zeros(3, np.int64), np.zeros(4, np.int32), np.zeros((4, 2), np.int64)])
def test_kernels_read_from_a_library_no_more_than_it_made(made, path, monkeypatch, numpy_kernels):
    of_interest(path)
    program = mg.load_program(path)
    compute = Frame.compute
    monkeypatch.setattr(
        Frame, "compute", staticmethod(lambda op, *rest: made if op.name == "argsort" else compute(op, *rest))
    )
    with pytest.raises(mg.CompileError, match="the kernel of argsort_1 returned another shape or dtype"):
        program(mg.ones((3, 4)), mg.ones(4))


# Limits ---------------------------------------------------------------------------------------------------------------


def _doubled(x):
    for _ in range(27):
        x = mg.concat([x, x])
    return x.sum()


LARGE = {
    "an array of 10¹² elements": (lambda x: mg.broadcast_to(x, (250_000_000_000, 4)).sum(),
                                  r"a value of broadcast_to takes 4e\+03 GB"),
    "doubled again and again": (_doubled, "a value of concat takes"),
    "much work": (lambda x: mg.zeros((8000, 8000), "int8") @ mg.zeros((8000, 8000), "int8"), "would compute for about"),
    "many operations": (lambda x: _many(x), "it has 3001 operations\n  Expected: at most 3000"),
    "large values together": (lambda x: [x[0] + mg.arange(3 * 10**6 + i) for i in range(30)], "MB of memory"),
}


def _many(x):
    for _ in range(3001):
        x = mg.sin(x)
    return x


@pytest.mark.parametrize("name", LARGE)
def test_programs_beyond_the_limits_are_refused(name, path, numpy_kernels):
    function, message = LARGE[name]
    mg.jit(function).save(path, mg.ones(4))
    with pytest.raises(mg.ProgramError, match=rf"{message}(.|\n)*Hint: mg.load_program\(path, trusted=True\)"):
        mg.load_program(path)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("loop", [
    lambda x: mg.while_loop(lambda c: c.sum() > 0, mg.abs, x),
    lambda x: mg.while_loop(lambda c: c.sum() > 0, lambda c: mg.linalg.inv(c), x),  # not in machine code
    lambda x: mg.scan(lambda c, _: (mg.while_loop(lambda v: v.sum() > 0, mg.abs, c), None), x, length=3)[0],
    lambda x: mg.fori_loop(0, 10**15, lambda i, v: v * 0.5 + i, x),
])
def test_loops_without_an_end_are_stopped(loop, backend, path, monkeypatch):
    monkeypatch.setenv("MINIGRAD_BACKEND", backend)
    monkeypatch.setattr(limits, "SECONDS", 0.2)
    mg.jit(loop).save(path, mg.eye(2))
    program = mg.load_program(path)
    for _ in range(2):
        with pytest.raises(mg.ProgramError, match=r"a loop did not end(.|\n)*within"):
            program(mg.eye(2))


def test_trusted_programs_have_no_limits(path, monkeypatch, numpy_kernels):
    for name, least in (("SECONDS", -1.0), ("MEMORY", 16), ("TIMES", 0), ("WORK", 3), ("NODES", 1)):
        monkeypatch.setattr(limits, name, least)
    doubled = mg.jit(lambda x: mg.while_loop(lambda c: c.sum() < 20, lambda c: c * 2, x) + mg.zeros(100)[:4])
    doubled.save(path, mg.ones(4))
    with pytest.raises(mg.ProgramError, match="beyond the limits"):
        mg.load_program(path)
    assert mg.load_program(path, trusted=True)(mg.ones(4)).tolist() == [8, 8, 8, 8]


def test_a_short_loop_may_run_at_any_time_after_loading(path, monkeypatch, numpy_kernels):
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    mg.jit(lambda x: mg.while_loop(lambda c: c.sum() < 20, lambda c: c * 2, x)).save(path, mg.ones(4))
    program = mg.load_program(path)
    for _ in range(3):
        time.sleep(0.2)
        assert program(mg.ones(4)).tolist() == [8, 8, 8, 8]


# Bytes ----------------------------------------------------------------------------------------------------------------


def test_truncated_or_damaged_files_are_refused(path, numpy_kernels):
    of_interest(path)
    whole = path.read_bytes()
    choose = random.Random(1)
    for length in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(mg.ProgramError, match="is not a saved program, or damaged: it is not an archive"):
            mg.load_program(path)
    for _ in range(100):
        path.write_bytes(hostile.damaged(whole, choose))
        try:
            load_program(path)(mg.ones((3, 4)), mg.ones(4))
        except mg.ProgramError:
            pass
    path.write_bytes(os.urandom(1000))
    with pytest.raises(mg.ProgramError, match="is not a saved program"):
        mg.load_program(path)
    with pytest.raises(FileNotFoundError):
        mg.load_program(path.parent / "nowhere")


def test_other_archives_are_refused(path):
    for names, kind in ((["program.json", "../evil"], zipfile.ZIP_STORED), ([CONTENT], zipfile.ZIP_DEFLATED), ([], 0)):
        with zipfile.ZipFile(path, "w", kind) as archive:
            for name in names:
                archive.writestr(name, "{}")
        with pytest.raises(mg.ProgramError, match=r"holds something else|is not a saved program"):
            mg.load_program(path)


def test_members_of_an_archive_are_stored_as_they_are(path):
    """Without compression, reading a file never takes more memory than the file has bytes."""
    of_interest(path)
    with zipfile.ZipFile(path) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    assert len(members) > 1
    for compressed in members:
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content, zipfile.ZIP_DEFLATED if name == compressed else zipfile.ZIP_STORED)
        with pytest.raises(mg.ProgramError, match="holds something else"):
            mg.load_program(path)


def test_members_of_an_archive_lie_apart(path):
    """Overlapping members could make gigabytes out of a small file."""
    inner, content = zipfile.ZipInfo(f"{ARRAYS}1"), bytes(1000)
    inner.file_size = inner.compress_size = len(content)
    inner.CRC = zlib.crc32(content)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(CONTENT, "{}")
        archive.writestr(f"{ARRAYS}0", inner.FileHeader() + content)
        outer = archive.getinfo(f"{ARRAYS}0")
        inner.header_offset = outer.header_offset + len(outer.FileHeader())
        archive.filelist.append(inner)
    with pytest.raises(mg.ProgramError, match="holds something else"):
        mg.load_program(path)


@pytest.mark.slow
def test_a_long_description_is_refused(path):
    of_interest(path)
    changed(path, lambda data: data.update(result=" " * (1 << 24)))
    with pytest.raises(mg.ProgramError, match="its description has 16"):
        mg.load_program(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes")
def test_five_hundred_hostile_files_do_no_harm():
    found = run(500)
    assert [each["seed"] for each in found] == list(range(500))
    assert [each for each in found if each["outcome"] not in FINE] == []
    assert sum(each["outcome"] == "ran" for each in found) > 30, "few of them are refused only at the first check"


def test_the_codec_reads_what_it_writes():
    value = (1, [2.5, slice(None, 3)], {"a": float("inf")}, Ellipsis, np.dtype("int8"))
    assert decoded(encoded(value)) == value
