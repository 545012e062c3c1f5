"""Files of tensors: minigrad and other programs read the files; damaged or hostile files are errors."""

import builtins
import io
import json
import os
import struct
import threading
import zipfile

import numpy as np
import pytest
import safetensors.numpy

import minigrad as mg
from minigrad.support import files

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


def raw(header, data=b""):
    """The bytes of a safetensors file with this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(kind, shape, begin, end):
    return {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}


@pytest.fixture
def tensors():
    rng = np.random.default_rng(0)
    made = {f"of.{name}": mg.asarray(rng.integers(0, 2, (2, 3)).astype(name)) for name in DTYPES}
    return made | {
        "scalar": mg.asarray(2.5), "empty": mg.zeros((0, 3)), "../../x": mg.ones(1),
        "turned": mg.reshape(mg.arange(6.0), (2, 3)).T, "tracked": mg.ones(2, requires_grad=True) * 3,
        "every other": mg.arange(6)[::2], "a numpy array": np.arange(3)[::-1],
    }


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_saved_tensors_are_loaded_bit_for_bit(tmp_path, tensors, suffix):
    path = tmp_path / f"all.{suffix}"
    mg.io.save_file(tensors, path)
    loaded = mg.io.load_file(path)
    assert loaded.keys() == tensors.keys() and os.listdir(tmp_path) == [path.name]
    for name, tensor in tensors.items():
        array = tensor if isinstance(tensor, np.ndarray) else tensor.numpy_copy()
        found = loaded[name].numpy_copy()
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes()), name
        loaded[name][...] = 0  # its own memory, which can be written
    assert mg.io.load_file(path)["scalar"].item() == 2.5


def test_files_are_exchanged_with_the_safetensors_library(tmp_path, tensors):
    ours, theirs = tmp_path / "ours.safetensors", tmp_path / "theirs.safetensors"
    mg.io.save_file(tensors, ours, metadata={"epoch": "7"})
    arrays = safetensors.numpy.load_file(ours)
    assert arrays["turned"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    assert arrays["every other"].tolist() == [0, 2, 4]
    safetensors.numpy.save_file(arrays, theirs, {"epoch": "8"})
    loaded = mg.io.load_file(theirs)
    assert all(loaded[name].tolist() == array.tolist() for name, array in arrays.items())
    with mg.io.open_file(ours) as one, mg.io.open_file(theirs) as other:
        assert (dict(one.metadata), dict(other.metadata)) == ({"epoch": "7"}, {"epoch": "8"})


@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_a_part_is_read_without_the_rest(tmp_path, suffix):
    path = tmp_path / f"large.{suffix}"
    mg.io.save_file({"a": mg.reshape(mg.arange(12), (4, 3)), "b": mg.ones(5)}, path)
    with mg.io.open_file(path) as file:
        assert sorted(file) == ["a", "b"] and len(file) == 2 and "b" in file and file.shape("a") == (4, 3)
        assert file.part("a", slice(1, 3)).tolist() == [[3, 4, 5], [6, 7, 8]]
        assert file.part("a", (0, slice(None))).tolist() == [0, 1, 2]
        assert repr(file) == f"<2 tensors in {path}>"
    assert mg.io.load_file(path, names=["b"]).keys() == {"b"}
    assert mg.io.load_file(path, names=["b"], device="cpu:1")["b"].device == "cpu:1"
    with pytest.raises(mg.FileError, match=r"there is no tensor 'c' in .*\n  Expected: a, b"):
        mg.io.load_file(path, names=["c"])


def test_unsupported_element_types_become_wider_ones_or_are_refused(tmp_path):
    path = tmp_path / "others.safetensors"
    values = np.array([1.0, -2.5, np.inf, 1e30], np.float32)
    half = (values.view(np.uint32) >> 16).astype("<u2")
    wide = np.array([0, 1, 2**32 - 1], "<u4")
    header = {
        "bfloat16": entry("BF16", [4], 0, 8), "uint16": entry("U16", [4], 8, 16),
        "uint32": entry("U32", [3], 16, 28), "uint64": entry("U64", [1], 28, 36),
    }
    path.write_bytes(raw(header, half.tobytes() + half.tobytes() + wide.tobytes() + bytes(8)))
    loaded = mg.io.load_file(path, names=["bfloat16", "uint16", "uint32"])
    assert loaded["bfloat16"].dtype == mg.float32 and loaded["bfloat16"].tolist()[:3] == [1.0, -2.5, np.inf]
    assert loaded["uint16"].dtype == mg.int32 and loaded["uint16"].tolist() == half.tolist()
    assert loaded["uint32"].dtype == mg.int64 and loaded["uint32"].tolist() == wide.tolist()
    with mg.io.open_file(path) as file:
        assert file.part("bfloat16", slice(1, 2)).tolist() == [-2.5]
    with pytest.raises(mg.FileError, match=r"'uint64' in .* has elements of type U64, which minigrad lacks"):
        mg.io.load_file(path)


WHOLE = raw({"a": entry("F32", [2], 0, 8)}, bytes(8))
DAMAGED = {
    "empty": b"",
    "cut in the header": WHOLE[:12],
    "cut in the data": WHOLE[:-1],
    "with more at the end": WHOLE + b"\0",
    "a header without end": struct.pack("<Q", 1 << 62) + WHOLE[8:],
    "no JSON": raw(b"{'a': 1}", bytes(8)),
    "nested deep": raw(b"[" * 100_000, bytes(8)),
    "huge": raw({"a": entry("F32", [1 << 40, 1 << 40], 0, 8)}, bytes(8)),
    "negative": raw({"a": entry("F32", [-2], 0, 8)}, bytes(8)),
    "shape and bytes differ": raw({"a": entry("F32", [3], 0, 8)}, bytes(8)),
    "overlapping": raw({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 0, 8)}, bytes(8)),
    "beyond the end": raw({"a": entry("F32", [2], 8, 16)}, bytes(8)),
    "an unknown type": raw({"a": entry("OBJECT", [2], 0, 8)}, bytes(8)),
    "a type that is a list": raw({"a": entry([], [2], 0, 8)}, bytes(8)),
    "a list": raw([1], bytes(8)),
    "an entry that is a number": raw({"a": 8}, bytes(8)),
    "an entry without a type": raw({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "a shape of booleans": raw({"a": entry("F64", [True], 0, 8)}, bytes(8)),
    "three offsets": raw({"a": entry("F32", [2], 0, 8) | {"data_offsets": [0, 4, 8]}}, bytes(8)),
    "a gap": raw({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)),
    "metadata that are numbers": raw({"__metadata__": {"epoch": 3}, "a": entry("F32", [2], 0, 8)}, bytes(8)),
    "not UTF-8": raw(b'{"\xff": 1}', bytes(8)),
    "a pickle": b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02ls",
    "a zip archive, as torch.save writes": b"PK\x03\x04" + bytes(60),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_the_safetensors_library_refuses_the_same_files(content):
    with pytest.raises(Exception):  # noqa: B017
        safetensors.deserialize(content)


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_or_hostile_file_is_refused(tmp_path, content):
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(mg.FileError, match=r"load_file: .*weights\.safetensors is not a safetensors file, or it is"):
        mg.io.load_file(path)


def test_an_archive_is_closed_at_the_end_of_its_block(tmp_path):
    np.savez(tmp_path / "weights.npz", w=np.ones(3))
    with mg.io.open_file(tmp_path / "weights.npz") as file:
        assert file["w"].tolist() == [1, 1, 1]
    with pytest.raises(mg.FileError, match="already closed"):
        file["w"]


def npz(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(header, data=b""):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


NOT_NPZ = {
    "an object": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"\x80\x04N."),
    "huge": npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({1 << 40},)}}", bytes(4)),
    "code in the header": npy("__import__('os').abort()"),
    "too short": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", bytes(7)),
    "no array": b"text",
}


@pytest.mark.parametrize("content", NOT_NPZ.values(), ids=NOT_NPZ.keys())
def test_a_hostile_archive_is_refused(tmp_path, content):
    path = tmp_path / "weights.npz"
    npz(path, {"a.npy": content})
    with pytest.raises(mg.FileError, match=r"load_file: .*weights\.npz is not a \.npz file, or it is damaged: "):
        mg.io.load_file(path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(mg.FileError, match=r"is not a .npz file, or it is damaged: File is not a zip file"):
        mg.io.load_file(path)


def test_unsupported_values_are_refused(tmp_path):
    path = tmp_path / "w.safetensors"
    with pytest.raises(mg.FileError, match=r"'name' is a str, and files of weights hold tensors only"):
        mg.io.save_file({"name": "first"}, path)
    with pytest.raises(mg.FileError, match=r"tensors by name are a dict, not a PosixPath\n  Expected: save_file\(mode"):
        mg.io.save_file(path, {})
    with pytest.raises(mg.FileError, match=r"names are strings, and 1 is an int"):
        mg.io.save_file({1: mg.ones(1)}, path)
    with pytest.raises(mg.FileError, match=r"metadata are strings by name, and 'epoch' is not"):
        mg.io.save_file({}, path, metadata={"epoch": 1})
    with pytest.raises(mg.FileError, match=r"an .npz file cannot hold metadata"):
        mg.io.save_file({}, tmp_path / "w.npz", metadata={"epoch": "1"})
    with pytest.raises(mg.FileError, match=r"there is no folder .*nowhere\n  Hint: make the folder first"):
        mg.io.save_file({}, tmp_path / "nowhere" / "w.safetensors")
    with pytest.raises(mg.DtypeError, match=r"is not a dtype that minigrad has"):
        mg.io.save_file({"c": np.ones(1, complex)}, path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*w.safetensors"):
        mg.io.load_file(path)
    assert os.listdir(tmp_path) == []


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "w.safetensors"
    mg.io.save_file({"a": mg.ones(3)}, path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left"):
        mg.io.save_file({"a": mg.zeros(3)}, path)
    assert mg.io.load_file(path)["a"].tolist() == [1.0] * 3 and os.listdir(tmp_path) == ["w.safetensors"]


def test_a_reader_never_sees_half_a_file(tmp_path):
    path = tmp_path / "w.safetensors"
    values = [mg.full((50_000,), float(n)) for n in range(8)]
    mg.io.save_file({"a": values[0]}, path)

    def write():
        for value in values:
            mg.io.save_file({"a": value}, path)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        seen = mg.io.load_file(path)["a"]
        assert seen.min().item() == seen.max().item()
    writer.join()


def test_model_that_does_not_fit_lists_all_differences(tmp_path):
    path = tmp_path / "model.safetensors"
    mg.io.save_file({"0.weight": mg.ones((3, 3)), "0.scale": mg.ones(1)}, path)
    model = mg.nn.Sequential(mg.nn.Linear(2, 3))
    with pytest.raises(mg.MinigradError) as error:
        model.load_state_dict(mg.io.load_file(path))
    for part in ("missing:    0.bias", "unexpected: 0.scale", "mismatched: 0.weight is (3, 3) in the state and (3, 2)"):
        assert part in str(error.value)


@pytest.mark.parametrize(("record", "field", "value"), [
    (b"PK\x01\x02", 42, 0xFFFFFFF0), (b"PK\x05\x06", 16, 0x7FFFFFFF),
])
def test_an_npz_file_whose_offsets_lead_elsewhere_is_refused(tmp_path, record, field, value):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.ones(10), y=np.zeros((3, 3)))
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.rfind(record) + field, value)
    path.write_bytes(content)
    with pytest.raises(mg.FileError, match=r"a\.npz is not a \.npz file, or it is damaged: "):
        mg.io.load_file(path)


def test_dimensions_beyond_numpys_limit_are_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    header = json.dumps({"x": {"dtype": "F32", "shape": [1] * 70, "data_offsets": [0, 4]}}).encode()
    path.write_bytes(raw(header + b" " * (-len(header) % 8), bytes(4)))
    with pytest.raises(mg.MinigradError, match=r"maximum supported dimension .* found 70"):
        mg.io.load_file(path)


WRITERS = [
    lambda path: mg.io.save_file({"x": mg.ones(1000)}, f"{path}.safetensors"),
    lambda path: mg.io.save_file({"x": mg.ones(1000)}, f"{path}.npz"),
    lambda path: mg.jit(lambda x: x * 2).save(f"{path}.program", mg.ones(3)),
    lambda path: mg.viz.graph((mg.ones(3, requires_grad=True) * 2).sum()).save(f"{path}.svg"),
    lambda path: mg.profile().save(f"{path}.json"),
    lambda path: mg.io.save_checkpoint(f"{path}.checkpoint", weights={"w": mg.ones(3)}),
]
WRITER_NAMES = ["safetensors", "npz", "program", "view", "profile", "checkpoint"]


@pytest.mark.parametrize("save", WRITERS, ids=WRITER_NAMES)
def test_full_disk_is_a_minigrad_error_and_leaves_no_file(tmp_path, monkeypatch, save):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(mg.StorageError, match="No space left on device"):
        save(tmp_path / "a")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("save", WRITERS, ids=WRITER_NAMES)
def test_folder_that_cannot_be_written_is_a_minigrad_error_that_names_the_file(tmp_path, monkeypatch, save):
    def refused(*given, **named):
        raise OSError(30, "Read-only file system", str(given[0]))

    def opened(path, mode="r", *given, **named):
        return refused(path) if ".minigrad-" in str(path) and mode[0] in "wrxa" else real(path, mode, *given, **named)

    real = io.open
    for place in (builtins, io):
        monkeypatch.setattr(place, "open", opened)
    monkeypatch.setattr(os, "unlink", refused)  # such a disk refuses it even where there is no such file
    with pytest.raises(mg.StorageError, match=r"a\.\w+ cannot be written: Read-only file system") as caught:
        save(tmp_path / "a")
    assert ".part" not in str(caught.value)
