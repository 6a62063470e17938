"""Data by name: the published file or a plain refusal, over loopback and from disk; never half a file."""

import functools
import gzip
import hashlib
import http.server
import io
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from flamebook.places import ROOT
from flamelib.core.vocabulary import DomainError
from flamelib.learning import datasets
from flamelib.learning.datasets import DataError, MissingData

NOWHERE = "http://127.0.0.1:9/"


def idx(array):
    shape = np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(b"\0\0\x08" + bytes([array.ndim]) + shape + array.tobytes())


def described(name, content):
    return {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


IMAGES = np.arange(3 * 2 * 4, dtype=np.uint8).reshape(3, 2, 4)
LABELS = np.array([1, 2, 1], dtype=np.uint8)
CONTENT = {"tiny-images.gz": idx(IMAGES), "tiny-labels.gz": idx(LABELS)}


def entry(origin, **changes):
    part = {array: described(f"tiny-{array}.gz", CONTENT[f"tiny-{array}.gz"]) for array in ("images", "labels")}
    return {
        "title": "Tiny", "people": "nobody", "licence": "none", "folders": ["tiny", "Tiny/raw"], "classes": 2,
        "first_label": 1, "transposed": True, "origin": origin, "archive": None, "sizes": {"train": 3, "test": 3},
        "parts": {"train": part, "test": part}, **changes,
    }  # fmt: skip


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A machine without data: an empty cache, no folder, an origin that does not answer."""
    for name in ("FLAMELIB_DATA", "FLAMELIB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    register(monkeypatch, [NOWHERE])
    return tmp_path


def register(monkeypatch, origin, **changes):
    known = {"tiny": entry(origin, **changes), "mnist": entry([NOWHERE], folders=["other"])}
    monkeypatch.setattr(datasets, "_registry", lambda: known)


@pytest.fixture
def server(tmp_path):
    """A folder served over loopback."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            """Nothing to say."""

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{httpd.server_port}/"
    httpd.shutdown()
    httpd.server_close()


def put(folder, content=CONTENT):
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in content.items():
        (folder / name).write_bytes(body)


def cached(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())


def check_tiny(found):
    assert (found.images == IMAGES.transpose(0, 2, 1)).all()
    assert (found.labels == LABELS - 1).all()
    assert (found.n, found.classes, found.name, found.requested) == (3, 2, "tiny", "tiny")
    assert found.notice == "Data: 3 images and labels of Tiny (train part)."


def test_a_joined_set_has_the_classes_of_the_second_behind_those_of_the_first(alone, monkeypatch):
    monkeypatch.setattr(datasets, "_JOINED", {"both": ("tiny", "tiny")})
    monkeypatch.setenv("FLAMELIB_DATA", str(alone / "own"))
    put(alone / "own" / "tiny")
    found, one = datasets.load("both"), datasets.load("tiny")
    assert (found.n, found.classes, found.name) == (6, 4, "both")
    assert np.array_equal(found.images, np.concatenate([one.images, one.images]))
    assert found.labels.tolist() == [*one.labels, *(one.labels + 2)]
    assert datasets.places("both") == 2 * datasets.places("tiny")


@pytest.mark.parametrize("layout", ["tiny", "Tiny/raw"])
def test_the_named_folder_comes_first_and_is_left_alone(alone, monkeypatch, layout):
    put(alone / "own" / layout)
    monkeypatch.setenv("FLAMELIB_DATA", str(alone / "own"))
    check_tiny(datasets.load("tiny"))
    assert cached(alone) == []


def test_a_download_lands_in_the_cache_whole_and_is_used_again(alone, monkeypatch, server):
    folder, origin = server
    put(folder)
    register(monkeypatch, [NOWHERE, origin])  # the first mirror does not answer
    check_tiny(datasets.load("tiny"))
    assert cached(alone) == ["tiny-images.gz", "tiny-labels.gz"]
    register(monkeypatch, [NOWHERE])
    check_tiny(datasets.load("tiny"))
    monkeypatch.setenv("FLAMELIB_OFFLINE", "1")
    check_tiny(datasets.load("tiny"))


@pytest.mark.parametrize("damage", [lambda body: body[:-7], lambda body: body + b"x", lambda _: b"", lambda _: b"no"])
def test_a_wrong_download_names_file_and_digests_and_leaves_nothing(alone, monkeypatch, server, damage):
    folder, origin = server
    wrong = {name: damage(body) for name, body in CONTENT.items()}
    put(folder, wrong)
    register(monkeypatch, [origin])
    with pytest.raises(DataError) as refusal:
        datasets.load("tiny")
    for word in ("tiny-images.gz", *(hashlib.sha256(c["tiny-images.gz"]).hexdigest() for c in (CONTENT, wrong))):
        assert word in str(refusal.value)
    assert cached(alone) == []


def test_a_damaged_cache_is_mended_from_the_origin(alone, monkeypatch, server):
    folder, origin = server
    put(folder)
    register(monkeypatch, [origin])
    paths = datasets.fetch("tiny")
    paths[0].write_bytes(b"damaged")
    assert {(s.file, s.state) for s in datasets.verify("tiny")} == {
        ("tiny-images.gz", "corrupt"),
        ("tiny-labels.gz", "good"),
    }
    check_tiny(datasets.load("tiny"))
    assert {s.state for s in datasets.verify("tiny")} == {"good"}


@pytest.mark.parametrize("damage", [lambda body: body[: len(body) // 2], lambda _: b"not gzip"])
def test_a_damaged_file_of_yours_is_refused_and_kept(alone, monkeypatch, damage):
    put(alone / "own" / "tiny", {name: damage(body) for name, body in CONTENT.items()})
    monkeypatch.setenv("FLAMELIB_DATA", str(alone / "own"))
    with pytest.raises(DataError, match=r"tiny-images\.gz is not the published file: SHA-256 \w{64}, expected \w{64}"):
        datasets.load("tiny")  # although mnist and the digits could stand in
    assert (alone / "own" / "tiny" / "tiny-images.gz").exists()


def test_an_archive_is_fetched_once_and_its_files_are_checked(alone, monkeypatch, server):
    folder, origin = server
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in CONTENT.items():
            archive.writestr(f"gzip/{name}", body)
    (folder / "all.zip").write_bytes(packed.getvalue())
    register(monkeypatch, [f"{origin}all.zip"], archive="gzip/")
    check_tiny(datasets.load("tiny"))
    assert cached(alone) == ["all.zip", "tiny-images.gz", "tiny-labels.gz"]


@pytest.mark.parametrize("members", [None, {}, {"gzip/tiny-images.gz": b"wrong"}])
def test_a_wrong_archive_leaves_no_file_of_the_set(alone, monkeypatch, server, members):
    folder, origin = server
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in (members or {}).items():
            archive.writestr(name, body)
    (folder / "all.zip").write_bytes(packed.getvalue() if members is not None else b"no archive")
    register(monkeypatch, [f"{origin}all.zip"], archive="gzip/")
    with pytest.raises(DataError, match=r"all\.zip|tiny-images\.gz"):
        datasets.load("tiny")
    assert not [name for name in cached(alone) if name != "all.zip"]


def test_without_network_another_real_set_stands_in_and_says_so(alone):
    found = datasets.load("tiny")
    assert (found.name, found.requested) == ("digits", "tiny")
    assert found.images.shape == (1500, 8, 8)
    assert found.images.max() == 255
    assert found.n == 1500
    for word in ("tiny could not be had", "did not answer", "1,500 real handwritten digits inside scikit-learn"):
        assert word in found.notice
    assert "\n" not in found.notice


def test_without_network_and_fallback_there_is_one_sentence(alone):
    with pytest.raises(MissingData, match=r"^tiny-images\.gz of tiny is not on this machine and its origin did"):
        datasets.load("tiny", fallback=())
    with pytest.raises(MissingData):
        datasets.fetch("tiny")
    assert cached(alone) == []


def test_a_cache_that_cannot_be_written_is_named(alone, monkeypatch, server):
    folder, origin = server
    put(folder)
    register(monkeypatch, [origin])
    (alone / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot be stored in the cache"):
        datasets.load("tiny")


def test_a_folder_that_is_not_there_is_named(alone, monkeypatch):
    monkeypatch.setenv("FLAMELIB_DATA", str(alone / "nothing"))
    with pytest.raises(DataError, match="FLAMELIB_DATA must name a folder that exists"):
        datasets.load("tiny")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "mnits"}, "name must be one of mnist, fashion-mnist, emnist-letters, emnist-byclass, deployments"),
        ({"name": "deployments"}, "name must be that of images or labels"),
        ({"name": "mnist", "part": "validation"}, "part must be one of train, test"),
        ({"name": "mnist", "want": ("pixels",)}, "want must be chosen from images, labels"),
        ({"name": "mnist", "fallback": ("nothing",)}, "name must be one of"),
    ],
)
def test_requests_nobody_can_meet_are_refused_by_name(arguments, sentence):
    with pytest.raises(DomainError, match=sentence):
        datasets.load(**arguments)


@pytest.mark.parametrize(
    "body", [b"", b"plain", CONTENT["tiny-images.gz"][:20], gzip.compress(b"\0\0\x0d\x01\0\0\0\x01\0"),
             gzip.compress(b"\0\0\x08\x02\0\0\0\x05"), gzip.compress(b"\0\0\x08\x01\0\0\0\x05abc"), gzip.compress(b"")],
    ids=["empty", "plain", "cut", "kind", "no-sizes", "short", "no-head"],
)  # fmt: skip
def test_what_is_no_idx_file_is_named(tmp_path, body):
    (tmp_path / "some.gz").write_bytes(body)
    with pytest.raises(DataError, match=r"some\.gz is not a whole"):
        datasets._read_idx(tmp_path / "some.gz")


def test_your_own_data(tmp_path):
    mine = str(tmp_path / "mine.npz")
    np.savez(mine, labels=LABELS)
    found = datasets.load(mine)
    assert (found.labels == LABELS).all()
    assert (found.n, found.classes, found.notice) == (3, 3, "Your own data: mine.npz.")
    with pytest.raises(DataError, match=r"mine\.npz must hold images, and it holds labels alone"):
        datasets.load(mine, want=("images",))
    with pytest.raises(DataError, match=r"mine\.npz must hold images and labels"):
        datasets.load(mine, "test")
    np.savez(mine, labels=LABELS, images=IMAGES[:2])
    with pytest.raises(DataError, match=r"mine\.npz must hold"):
        datasets.load(mine)
    Path(mine).write_bytes(b"PK")
    with pytest.raises(DataError, match=r"mine\.npz is not a readable"):
        datasets.load(mine)


@pytest.mark.parametrize(
    ("held", "sentence"),
    [
        ({"labels": LABELS * 1.0}, "labels that are whole numbers in 0..65535, got dtype float64"),
        ({"labels": [1, np.nan]}, "labels that are whole numbers in 0..65535, got NaN"),
        ({"labels": LABELS > 1}, "labels that are whole numbers in 0..65535, got dtype bool"),
        ({"labels": [0, -1]}, "labels that are whole numbers in 0..65535, got -1"),
        ({"labels": [0, 70_000]}, "labels that are whole numbers in 0..65535, got 70000"),
        ({"labels": LABELS[:, None]}, r"labels with one axis, one row a person, got shape \(3, 1\)"),
        ({"labels": LABELS[:0]}, r"labels that are not empty, got shape \(0,\)"),
        ({"images": IMAGES[0]}, r"images with three axes, one row a person, got shape \(2, 4\)"),
        ({"images": IMAGES.astype(int) + 250}, r"images that are whole numbers in 0..255, got \d+"),
        ({"images": IMAGES[:2], "labels": LABELS}, "as many images as labels, got 2 and 3"),
        ({"answers": LABELS}, "images or labels, and it holds answers"),
        ({"labels": np.array([None])}, "Object arrays cannot be loaded"),
    ],
)
def test_own_data_that_will_not_do_are_named_each_in_its_own_words(tmp_path, held, sentence):
    np.savez(tmp_path / "mine.npz", **held)
    with pytest.raises(DataError, match=rf"^mine\.npz (must hold|is not a readable \.npz file:) {sentence}"):
        datasets.load(str(tmp_path / "mine.npz"))


def test_own_data_may_be_whole_numbers_of_any_dtype(tmp_path):
    mine = str(tmp_path / "mine.npz")
    for dtype in (np.int8, np.int64, np.uint32):
        np.savez(mine, labels=LABELS.astype(dtype), images=IMAGES.astype(dtype))
        found = datasets.load(mine, want=("images", "labels"))
        assert set(found.labels) | set(datasets.load(mine, "test").labels) == {1, 2}
        assert found.images.dtype == np.uint8
    np.savez(mine, labels=[3, 1000])
    found = datasets.load(mine)
    assert (list(found.labels), found.classes) == ([3, 1000], 1001)


def test_damaged_own_files_are_one_sentence(tmp_path):
    mine = tmp_path / "mine.npz"
    np.savez(mine, labels=np.arange(200))
    whole = mine.read_bytes()
    with (tmp_path / "array.npy").open("wb") as file:
        np.save(file, LABELS)
    damaged = whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]
    for content in (b"", b"no", whole[:40], whole[:-1], damaged, (tmp_path / "array.npy").read_bytes()):
        mine.write_bytes(content)
        with pytest.raises(DataError, match=r"^mine\.npz is not a readable .npz file: [^\n]+$") as refusal:
            datasets.load(str(mine))
        assert "pickle" not in str(refusal.value)


def test_what_stands_in_is_known_without_loading_it(alone, monkeypatch):
    assert datasets.stand_in("digits") is None
    put(alone / "own" / "tiny")
    monkeypatch.setenv("FLAMELIB_DATA", str(alone / "own"))
    assert datasets.stand_in("tiny") is None
    assert datasets.places("tiny") == tuple((f"tiny/{name}", len(body)) for name, body in [*CONTENT.items()] * 2)
    (alone / "own" / "tiny" / "tiny-labels.gz").unlink()
    name, why = datasets.stand_in("tiny")
    assert (name, "tiny-labels.gz of tiny is not on this machine" in why) == ("digits", True)
    assert datasets.stand_in("tiny", want=("images",)) is None


def test_your_own_data_are_split_where_they_have_no_test_part(tmp_path):
    mine = str(tmp_path / "mine.npz")
    images = np.arange(60, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), np.uint8)
    np.savez(mine, images=images, labels=np.arange(60, dtype=np.uint8))
    train, test = datasets.load(mine), datasets.load(mine, "test")
    assert (train.n, test.n) == (50, 10)
    assert sorted([*train.labels, *test.labels]) == list(range(60))
    assert all((one.images[:, 0, 0] == one.labels).all() for one in (train, test))
    assert train.notice == "Your own data: mine.npz, of whose 60 rows 10, drawn with seed 0, are kept for testing."
    assert (datasets.load(mine, "test").labels == test.labels).all()

    np.savez(mine, images=images[:4], labels=LABELS[:2].repeat(2), test_images=images[4:6], test_labels=LABELS[:2])
    train, test = datasets.load(mine), datasets.load(mine, "test")
    assert (train.n, test.n, (test.images == images[4:6]).all()) == (4, 2, True)
    assert train.notice == "Your own data: mine.npz, 4 rows to train and 2 to test."

    np.savez(mine, images=images, labels=np.arange(60, dtype=np.uint8), test_images=images[:2])
    with pytest.raises(DataError, match="both test_images and test_labels"):
        datasets.load(mine)
    np.savez(mine, images=images[:1], labels=LABELS[:1])
    with pytest.raises(DataError, match="two rows or more"):
        datasets.load(mine)


def test_the_registry_and_its_page_say_the_same():
    page = (ROOT / "data" / "README.md").read_text("utf-8")
    for name, about in datasets._registry().items():
        assert f"| `{name}` | {about['title']}" in page
        for word in (about["licence"], about["people"], *about["origin"], *(f"{n:,}" for n in about["sizes"].values())):
            assert word in page
        for part in about["parts"].values():
            for file in part.values():
                assert (
                    f"`{about['folders'][0]}/{file['name']}` | {file['bytes'] or 'not known'} | `{file['sha256']}`"
                    in page
                )


@pytest.fixture
def at_hand(monkeypatch):
    """No network: the sets of this machine, and the digits that are always there."""
    monkeypatch.setenv("FLAMELIB_OFFLINE", "1")
    return datasets.load


def test_characters_stand_upright(at_hand):
    """The mean picture of the letter t, or of the digit 1, has a vertical stem in the middle third."""
    found = at_hand("emnist-letters", "test", fallback=("digits",))
    asked = 1 if found.name != found.requested else "abcdefghijklmnopqrst".index("t")
    mean = found.images[found.labels == asked].mean(0)
    columns = mean.mean(0)
    assert len(columns) / 3 <= columns.argmax() < 2 * len(columns) / 3
    assert columns.max() > 1.25 * mean.mean(1).max()
