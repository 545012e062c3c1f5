"""Data in files, and the sets that are bundled."""

import hashlib
import re
import sys

import numpy as np
import pytest

import minigrad as mg

FOLDER = mg.data.bundled.FOLDER


# tables -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_tables_are_read(tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"power": [130.0, 95.5, 68.0], "doors": [2, 4, 4], "origin": ["US", "Japan", "US"]})
    path = tmp_path / f"cars.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    table = mg.data.read_table(path)
    assert table[1] == {"power": 95.5, "doors": 4, "origin": "Japan"} and len(table) == 3
    assert table.matrix(["doors", "origin"]).tolist() == [[2, 0, 1], [4, 1, 0], [4, 0, 1]]
    (batch,) = mg.data.DataLoader(table, 3)
    assert batch["power"].tolist() == [130, 95.5, 68] and batch["origin"] == ["US", "Japan", "US"]


def test_a_number_that_is_missing_is_named(tmp_path):
    table = mg.data.Table({"a": [1.0, np.nan], "b": [1, 2]})
    with pytest.raises(mg.data.DataError, match="column 'a' has no number in row 1"):
        table.matrix()
    assert table.matrix(["b"]).tolist() == [[1], [2]]
    with pytest.raises(mg.data.DataError, match="there is no column 'c'"):
        table.matrix(["c"])
    with pytest.raises(mg.data.DataError, match="all columns have the same length"):
        mg.data.Table({"a": [1], "b": [1, 2]})


def test_damaged_files_are_explained(tmp_path, monkeypatch):
    with pytest.raises(mg.data.DataError, match=r"read_table: there is no .*none.csv"):
        mg.data.read_table(tmp_path / "none.csv")
    path = tmp_path / "table.xls"
    path.touch()
    with pytest.raises(mg.ConversionError, match="is neither"):
        mg.data.read_table(path)
    path = tmp_path / "broken.csv"
    path.write_text('a,b\n"1')
    if "pandas" in sys.modules:
        with pytest.raises(mg.data.DataError, match="can't be read"):
            mg.data.read_table(path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mg.PackageError, match="files needs the package pandas, which is not installed") as error:
        mg.data.read_table(path)
    assert "pip install pandas" in str(error.value)


def test_standardized_columns_and_back():
    rows = np.random.default_rng(0).normal(3, 5, (50, 3)).astype(np.float32)
    rows[:, 1] = 7
    scale = mg.data.Standardize(rows)
    assert np.allclose(scale(rows).mean(0), 0, atol=1e-5) and np.allclose(scale(rows).std(0), [1, 0, 1], atol=1e-5)
    assert np.allclose(scale.inverse(scale(rows)), rows, atol=1e-5)


# pictures and text --------------------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, color in (("cat", (255, 0, 0)), ("dog", (0, 0, 255))):
        (tmp_path / name).mkdir()
        for i in range(3):
            image.new("RGB", (4 + i, 6), color).save(tmp_path / name / f"{i}.png")
    (tmp_path / "notes.txt").touch()
    return tmp_path


@pytest.mark.slow
def test_folders_of_pictures(pictures):
    folder = mg.data.ImageFolder(pictures, size=8)
    assert folder.classes == ["cat", "dog"] and len(folder) == 6
    loader = mg.data.DataLoader(folder, 6, workers=2)
    (batch,) = loader
    assert batch[0].shape == (6, 3, 8, 8) and batch[0].dtype == mg.float32 and batch[1].tolist() == [0, 0, 0, 1, 1, 1]
    assert batch[0][:, :, 2, 2].tolist() == [[1, 0, 0]] * 3 + [[0, 0, 1]] * 3
    picture, _ = mg.data.ImageFolder(pictures, mode="L")[1]
    assert picture.shape == (1, 6, 5)
    assert mg.data.ImageFolder(pictures, size=(2, 3))[0][0].shape == (3, 2, 3)


@pytest.mark.slow
def test_a_broken_picture_is_named(pictures):
    (pictures / "cat" / "1.png").write_bytes(b"not a picture")
    with pytest.raises(mg.data.DataError, match="item 1 of ImageFolder could not be loaded") as error:
        list(mg.data.DataLoader(mg.data.ImageFolder(pictures, size=4), 2, workers=2))
    assert "1.png" in str(error.value)
    with pytest.raises(mg.data.DataError, match="there are no pictures in folders of"):
        mg.data.ImageFolder(pictures / "cat")
    with pytest.raises(mg.data.DataError, match="ImageFolder: there is no"):
        mg.data.ImageFolder(pictures / "bird")


def test_text_is_read_line_by_line(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("eins\r\nzwö\n\nlast".encode())
    lines = mg.data.TextLines(path)
    assert list(lines) == ["eins", "zwö", "", "last"] and lines[-1] == "last" and len(lines) == 4
    with pytest.raises(IndexError):
        lines[4]


def test_letters_as_numbers_and_back():
    alphabet = mg.data.Alphabet(["abc", "cad"])
    assert alphabet.decode(alphabet.encode("dcba")) == "dcba" and len(alphabet) == 5
    with pytest.raises(mg.data.DataError, match="the alphabet has no 'x'"):
        alphabet.encode("axe")
    assert mg.data.pad([alphabet.encode("ab"), alphabet.encode("d")]).tolist() == [[1, 2], [4, 0]]
    pictures, labels = mg.data.pad([(np.ones((1, 2)), 3), (np.ones((2, 1)), 4)], -1)
    assert pictures.tolist() == [[[1, 1], [-1, -1]], [[1, -1], [1, -1]]] and labels.tolist() == [3, 4]


# bundled sets -------------------------------------------------------------------------------------------------------


def test_bundled_sets_have_a_licence():
    text = (FOLDER / "THIRD_PARTY.md").read_text(encoding="utf-8")
    named = re.findall(r"^## (\S+):", text, re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".md")
    assert text.count("Licence: ") == len(named)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 200_000, "it ships with every installation"


def test_the_airfoil_table_is_the_original():
    """The file in the repository has the published hash."""
    lines = (FOLDER / "airfoil.csv").read_text(encoding="utf-8").splitlines()[1:]
    original = "".join(line.replace(",", "\t") + "\r\n" for line in lines)
    published = "74c75fd71783f1e6b71f8a622b993dc592897a97cd689c5090a07147a1b097b3"
    assert hashlib.sha256(original.encode()).hexdigest() == published
    train, test = mg.data.airfoil()
    assert len(train) + len(test) == 1503


def test_digits_are_scikit_learns():
    datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
    known = datasets.load_digits()
    parts = [part.arrays for part in mg.data.digits()]
    ours = {(image.tobytes(), int(label)) for images, labels in parts for image, label in zip(images, labels)}
    images = (known.images / 16).astype(np.float32)
    theirs = {(image.tobytes(), int(label)) for image, label in zip(images, known.target)}
    assert ours == theirs


def test_the_karate_club_is_networkxs():
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    known = networkx.karate_club_graph()
    edges, labels = mg.data.karate()
    assert {tuple(pair) for pair in edges.numpy().T.tolist()} == set(known.to_directed().edges)
    assert labels.tolist() == [int(known.nodes[i]["club"] == "Officer") for i in range(34)]


def test_held_out_parts_are_disjoint_and_always_the_same():
    train, test = mg.data.names()
    assert not set(train) & set(test) and len({*train, *test}) == 5163
    pictures = [{image.tobytes() for image in part.arrays[0]} for part in mg.data.digits()]
    assert not pictures[0] & pictures[1]
    assert np.bincount(mg.data.digits()[1].arrays[1]).min() >= 25, "every digit is tested"
    digest = hashlib.sha256()
    for part in (mg.data.digits()[1].arrays[0], mg.data.airfoil()[1].matrix(), "".join(test).encode()):
        digest.update(part)
    assert digest.hexdigest() == "52b57b6790e38f8c436cfc17fc8727267800dcf01e0c4a39e69dc2d9cbeabd81"
