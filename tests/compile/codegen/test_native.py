"""Machine code is compiled once for each different kernel, and cached on disk for other processes."""

import ctypes
import gc
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from minigrad.compile.codegen import disk_cache, native
from minigrad.compile.loops.ir import For, Kernel, Let, Parameter, Store
from minigrad.support.errors import CompileError
from tests.compile.codegen.running import compiled, on_arrays
from tests.compile.codegen.samples import FLOAT, LOOPS, check, every_operation, softmax

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder, and a process that has not compiled anything."""
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache"
    forget()


def forget():
    native._compiler.cache_clear()


@pytest.fixture
def compilations(monkeypatch):
    """The texts that LLVM compiles."""
    texts = []
    original = native._Compiler._machine_code

    def noted(self, text, effort):
        texts.append(text)
        return original(self, text, effort)

    monkeypatch.setattr(native._Compiler, "_machine_code", noted)
    return texts


def run(sample):
    """Compile and check a sample."""
    check(sample, on_arrays(compiled(sample.kernel)))


def test_compiled_kernels_can_be_called(cache):
    sample = softmax()
    assert "define void @kernel(ptr %.table)" in native.llvm_text(sample.kernel)
    check(sample, on_arrays(compiled(sample.kernel)))


def test_equal_kernels_are_compiled_once(cache, compilations):
    first, second, other = softmax().kernel, replace(softmax().kernel, name="another", units=7), softmax(4, 8).kernel
    made = [compiled(each) for each in (first, second, other, first)]
    assert len(compilations) == 2
    assert made[0] is made[1] is made[3] is not made[2]
    larger = [replace(parameter, size=99) for parameter in first.parameters]
    assert compiled(replace(first, parameters=larger)) is made[0]
    assert len(compilations) == 2


def test_kernels_of_a_program_are_compiled_in_one_module(cache, compilations):
    samples = [softmax(), LOOPS["total"](), softmax(4, 8), softmax()]
    for _ in range(2):
        forget()
        compiled(samples[1].kernel)
        for sample, made in zip(samples, native.compile_kernels([each.kernel for each in samples])):
            check(sample, on_arrays(made))
    assert [text.count("define void") for text in compilations] == [1, 2], "the first one is not compiled again"


def test_long_lists_of_kernels_are_several_modules(cache, compilations, monkeypatch):
    monkeypatch.setattr(native, "SHARED", 3)
    made = native.compile_kernels([scaled(float(number), "mod") for number in range(8)])
    assert [text.count("define void") for text in compilations] == [3, 3, 2]
    assert all(text.count("declare float @fmodf(") == 1 for text in compilations)
    array = np.float32([9.5, 9.5])
    on_arrays(made[4])([array], 0, 2)
    assert array.tolist() == [1.5, 1.5]


def test_the_options_of_llvm_are_for_our_code_only(cache, monkeypatch):
    said = []
    monkeypatch.setattr(native.llvmlite(), "set_option", lambda name, option: said.append(option))
    compiled(softmax().kernel)
    for option in native.SUPERFLUOUS:
        assert [each for each in said if option in each] == [f"-{option}=true", f"-{option}=false"]


@pytest.mark.slow
def test_compiled_kernels_live_side_by_side(cache):
    """Code that calls the mathematical library still runs after other code was compiled."""
    for name in ("float32", "float64", "float16", "int64"):
        sample = every_operation(np.dtype(name))
        check(sample, on_arrays(compiled(sample.kernel)),
              skip=[p.name for p in sample.kernel.parameters if p.name.startswith("to_")])


# The cache ------------------------------------------------------------------------------------------------------------


def test_cached_code_is_found_by_another_process(cache, compilations):
    run(softmax())
    forget()
    run(softmax())
    assert len(compilations) == 1
    assert len(list(cache.iterdir())) == 1


def test_cached_code_is_not_used_on_another_processor(cache, compilations, monkeypatch):
    run(softmax())
    here = native.processor()
    for other in (here._replace(name="other"), here._replace(features=here.features + ",-avx512f"),
                  here._replace(llvm="99"), here._replace(version="99")):
        assert native._Compiler(native.llvmlite(), other)._name("text") != native._compiler()._name("text")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "renamed", "folder"])
def test_a_damaged_entry_is_compiled_again(cache, compilations, damage):
    run(LOOPS["total"]())
    (entry,) = cache.iterdir()
    code = entry.read_bytes()
    if damage == "renamed":  # a valid file with the code of another kernel
        compiled(softmax().kernel)
        (other,) = set(cache.iterdir()) - {entry}
        other.replace(entry)
        compilations.pop()
    elif damage == "folder":
        entry.unlink()
        entry.mkdir()
    else:
        bad = {"cut": code[:-9], "changed": code[:200] + b"?" + code[201:], "empty": b"", "foreign": os.urandom(999)}
        entry.write_bytes(bad[damage])
    forget()
    run(LOOPS["total"]())
    assert len(compilations) == 2
    if damage != "folder":
        assert entry.read_bytes() == code


def test_the_cache_can_be_switched_off(monkeypatch, tmp_path, compilations):
    monkeypatch.setenv("MINIGRAD_CACHE", "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        forget()
        run(softmax())
    assert len(compilations) == 2 and not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_or_written_is_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("MINIGRAD_CACHE", str(tmp_path / "file" / "cache"))
    forget()
    run(softmax())


def test_a_disk_without_room_is_not_an_error(cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    run(softmax())
    assert not list(cache.iterdir()), "what was written in part is gone"


def test_a_folder_that_can_only_be_read_is_read(cache, compilations, monkeypatch):
    def refused(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    run(softmax())
    forget()
    monkeypatch.setattr(disk_cache.os, "utime", refused)
    monkeypatch.setattr(disk_cache.tempfile, "mkstemp", refused)
    monkeypatch.setattr(disk_cache, "FRESH", -1.0)
    run(softmax())
    run(LOOPS["total"]())
    assert len(compilations) == 2


def test_least_recently_used_code_is_removed_first(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "LIMIT", 10_000)
    now = time.time()
    for number in range(9):
        disk_cache.save([f"k_{number}"], bytes(1000))
        os.utime(cache / f"k_{number}", (now - 9000 + number, now - 9000 + number))
    assert disk_cache.load("k_0") is not None  # now it was used last
    disk_cache.save(["k_9"], bytes(1000))
    left = {entry.name for entry in cache.iterdir()}
    assert {"k_0", "k_9", "k_8"} <= left and "k_1" not in left
    assert sum(entry.stat().st_size for entry in cache.iterdir()) <= 7500


@pytest.mark.parametrize(("system", "variable", "value", "wanted"), [
    ("linux", "XDG_CACHE_HOME", "/x/cache", "/x/cache/minigrad/kernels"),
    ("win32", "LOCALAPPDATA", "/x/local", "/x/local/minigrad/kernels"),
    ("darwin", "HOME", "/x/home", "/x/home/Library/Caches/minigrad/kernels"),
    ("linux", "MINIGRAD_CACHE", "/x/mine", "/x/mine"),
])
def test_cache_folder_follows_the_conventions_of_the_system(monkeypatch, system, variable, value, wanted):
    monkeypatch.delenv("MINIGRAD_CACHE", raising=False)
    monkeypatch.setattr(disk_cache.sys, "platform", system)
    monkeypatch.setenv(variable, value)
    assert disk_cache.folder() == Path(wanted)


PROCESS = """
from tests.compile.codegen.samples import LOOPS, check
from tests.compile.codegen.running import native
for name in ("softmax", "total", "column_sums"):
    check(LOOPS[name](), native(LOOPS[name]().kernel))
print("right")
"""


@pytest.mark.slow
def test_cache_accepts_writes_of_several_processes_at_once(cache):
    started = [
        subprocess.Popen([sys.executable, "-c", PROCESS], cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0].strip() for process in started] == ["right"] * 3
    assert len(list(cache.iterdir())) == 3


# Memory ---------------------------------------------------------------------------------------------------------------


def scaled(number, function="mul"):
    """A kernel that differs from all others."""
    body = [For("i", "lo", "hi", [Let("x", "load", ("a", "i"), FLOAT), Let("y", function, ("x", number), FLOAT),
                                  Store("a", "i", "y")])]
    return Kernel("kernel", [Parameter("a", FLOAT, 4, "inout")], body, 4, "elements")


def live_engines():
    gc.collect()
    return {id(found): found for found in gc.get_objects() if type(found).__name__ == "ExecutionEngine"}


@pytest.mark.slow
@pytest.mark.parametrize("function", ["mul", "mod"])  # the second calls an outside function
def test_unused_machine_code_is_freed(cache, monkeypatch, function):
    monkeypatch.setattr(native, "RECENT", 2)
    monkeypatch.setattr(native, "SHARED", 4)
    before = live_engines().keys()
    kept = compiled(scaled(0.5, function))
    for number in range(20):
        compiled(scaled(float(number), function))
    # The engine of `kept`, and the engines of the two functions used last.
    assert len(live_engines().keys() - before) <= 3
    array = np.float32([1, 4, 9, 16])
    on_arrays(kept)([array], 0, 4)
    np.testing.assert_allclose(array, [0.5, 2, 4.5, 8] if function == "mul" else [0, 0, 0, 0])
    del kept
    native._compiler.cache_clear()
    assert not live_engines().keys() - before


def test_most_recent_code_is_kept(cache, compilations):
    for _ in range(3):
        for number in range(4):
            compiled(scaled(float(number)))
    assert len({id(each) for each in native._compiler().recent}) == 4 and len(compilations) == 4
    assert len(native._compiler().made) == 4


def test_kernels_share_an_engine_only_if_they_call_nothing(cache):
    made = [
        compiled(scaled(float(n), op)).engine for op in ("mul", "mod") for n in (3, 5, 7)
    ]
    if sys.platform == "linux":
        assert made[0] is made[1] is made[2]
    assert len({*made[2:]}) == 4


def test_object_files_of_other_kinds_are_not_read():
    for code in (b"", b"\xcf\xfa\xed\xfe" + bytes(99), b"\x7fELF\x01\x01" + bytes(99)):
        assert not native.calls_nothing(code)


LEAKS = """
import ctypes, gc, warnings
import minigrad as mg
warnings.simplefilter("ignore")

def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

def dropped(start, stop):
    for k in range(start, stop):
        mg.jit(lambda x: (x * k + 1).sum())(mg.ones(100))

def shapes(f, start, stop):
    for n in range(start, stop):
        f(mg.ones(n))

dropped(0, 50)
before = resident()
dropped(50, 300)  # a thousand would take minutes
print(resident() - before)
f = mg.jit(lambda x: (x * 2 + 1).sum())
shapes(f, 10, 40)
before = resident()
shapes(f, 100, 250)
print(resident() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory a process has")
def test_functions_that_are_dropped_and_shapes_take_little_memory(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MINIGRAD_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LEAKS], env=environment, capture_output=True, text=True, check=True)
    assert all(float(megabytes) < 10 for megabytes in done.stdout.split()), done.stdout


# Errors ---------------------------------------------------------------------------------------------------------------


def test_missing_llvmlite_is_an_error_that_says_what_to_do(monkeypatch):
    native.llvmlite.cache_clear()
    forget()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    try:
        with pytest.raises(CompileError, match=r"llvmlite could not be loaded(.|\n)*pip install llvmlite"):
            compiled(softmax().kernel)
    finally:
        native.llvmlite.cache_clear()
        forget()


def test_kernels_that_llvm_refuses_are_an_error_with_the_text(cache):
    wrong = Let("y", "lt", ("x", 1.0), FLOAT)  # the result of `lt` is a bool
    body = [For("i", "lo", "hi", [Let("x", "load", ("a", "i"), FLOAT), wrong, Store("a", "i", "y")])]
    with pytest.raises(CompileError, match=r"LLVM refused a kernel(.|\n)*define"):
        compiled(Kernel("kernel", [Parameter("a", FLOAT, 4, "inout")], body, 4, "elements"))
    run(softmax())


def test_half_precision_needs_a_processor_that_converts_it(cache):
    compiler = native._Compiler(native.llvmlite(), native.processor()._replace(triple="x86_64", features="+sse2"))
    with pytest.raises(CompileError, match="no instructions for float16"):
        compiler.text(every_operation(np.dtype(np.float16)).kernel)


def test_function_that_the_system_lacks_is_an_error_and_not_a_crash(cache):
    with pytest.raises(CompileError, match="no function fortytwof"):
        native._compiler()._find("fortytwof")


def test_vectors_are_wide_only_where_much_is_computed():
    compiler = native._Compiler(native.llvmlite(), native.processor()._replace(features="+avx512f,+f16c"))
    assert '"512"' in compiler.text(softmax().kernel)
    assert '"256"' in compiler.text(LOOPS["total"]().kernel)


def test_a_function_that_llvm_does_not_find_itself_is_found_for_it():
    compiler, found = native._Compiler(native.llvmlite(), native.processor()), {}
    compiler.binding = SimpleNamespace(address_of_symbol=lambda name: None, add_symbol=found.__setitem__)
    compiler._find("tanh")
    tanh = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(found["tanh"])
    assert tanh(0.5) == pytest.approx(math.tanh(0.5))
    with pytest.raises(CompileError, match="no function no_such_function"):
        compiler._find("no_such_function")
