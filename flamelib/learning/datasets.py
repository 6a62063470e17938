"""Real data behind a name: files are found, checked by digest and read; if another set stands in, that is said.

Files are looked for in the folder named by the environment variable ``FLAMELIB_DATA`` (original files, as
published), then in the user's cache, then at their origin, unless ``FLAMELIB_OFFLINE`` is set.  No file is read
before its SHA-256 digest is that of ``datasets.json``; a download arrives atomically or not at all.
"""

import functools
import gzip
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Bytes
from flamelib.core.extras import extra
from flamelib.core.vocabulary import DomainError

Where = Literal["FLAMELIB_DATA", "cache", "nowhere"]
Part = Literal["train", "test"]
State = Literal["good", "corrupt", "missing"]

_PARTS: tuple[Part, ...] = ("train", "test")
_ARRAYS = ("images", "labels")
_DIGITS = "digits"  # the set inside scikit-learn, which needs no file
_FALLBACK = ("mnist", _DIGITS)
_JOINED = {"letters-and-digits": ("mnist", "emnist-letters")}  # classes of the second set follow those of the first
_DIGITS_KEPT_FOR_TEST = 297  # its last images: it has no parts of its own
_OWN_KEPT_FOR_TEST = 6  # of so many rows of one's own file one, drawn with this seed
_OWN_SEED = 0
_LARGEST = {"images": 255, "labels": 2**16 - 1}  # of one's own whole numbers; a class is a bucket of a histogram
_AXES = {"images": 3, "labels": 1}
_SECONDS_TO_ANSWER = 15  # of an origin, before it counts as silent


class DataError(RuntimeError):
    """A data file is missing or is not the published one; the message is one sentence fit for a user."""


class MissingData(DataError):
    """The data are not on this machine and cannot be had from their origin; another set may stand in."""


@functools.cache
def _registry() -> Mapping[str, Any]:
    """Everything known of every downloadable set, by name; ``datasets.json`` as it stands."""
    listed = resources.files("flamelib.learning").joinpath("datasets.json")
    found: dict[str, Any] = json.loads(listed.read_text("utf-8"))
    return found


@dataclass(frozen=True)
class Dataset:
    """One part of one set: what was asked for, what it really is, and arrays read when first used.

    Labels lie in {0, ..., classes - 1}.  ``notice`` is one sentence for the page that shows results: what the data are,
    and why, if they stand in for those that were ``requested``.
    """

    name: str
    requested: str
    n: int
    classes: int
    notice: str
    readers: Mapping[str, Callable[[], NDArray[Any]]] = field(repr=False, compare=False)

    @functools.cached_property
    def images(self) -> Bytes:
        """Pictures, upright, shape ``(n, height, width)``, 0 is background and 255 full ink."""
        return self._read("images")

    @functools.cached_property
    def labels(self) -> NDArray[np.integer[Any]]:
        """Classes from 0 on, shape ``(n,)``: bytes, or 64-bit whole numbers where one exceeds 255."""
        return self._read("labels")

    @functools.cached_property
    def mean_intensity(self) -> NDArray[np.float64]:
        """Mean pixel of each picture as a number in [0, 1], shape ``(n,)``."""
        return np.asarray(self.images.mean(axis=(1, 2), dtype=np.float64) / 255)

    def _read(self, array: str) -> NDArray[Any]:
        if array not in self.readers:
            raise DomainError(f"{array} of {self.name} were not loaded; at hand: {', '.join(self.readers)}")
        return self.readers[array]()


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a set: where it was found, and whether its digest is the published one."""

    dataset: str
    file: str
    where: Where
    state: State


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of the list of sets."""

    name: str
    title: str
    arrays: tuple[str, ...]
    classes: int
    train: int
    test: int
    bytes: int | None
    licence: str
    origin: tuple[str, ...]


def listing() -> tuple[Listed, ...]:
    """Every set by name, those that are joined from others and the digits inside scikit-learn last."""
    found = {name: _listed(name, entry) for name, entry in _registry().items()}
    digits = Listed(_DIGITS, "handwritten digits, 8 x 8", _ARRAYS, 10, 1500, 297, 0, "BSD-3-Clause", ("scikit-learn",))
    joined = (_together(name, [found[member] for member in members]) for name, members in _JOINED.items())
    return *found.values(), *joined, digits


def _together(name: str, parts: Sequence[Listed]) -> Listed:
    title = " and ".join(one.title.partition(",")[0] for one in parts)
    licence = "; ".join(f"{one.name}: {one.licence}" for one in parts)
    classes, train, test, size = (
        sum(getattr(one, number) for one in parts) for number in ("classes", "train", "test", "bytes")
    )
    return Listed(name, title, _ARRAYS, classes, train, test, size, licence, tuple(one.name for one in parts))


def _listed(name: str, entry: Mapping[str, Any]) -> Listed:
    arrays, sizes, origin = tuple(entry["parts"]["train"]), entry["sizes"], tuple(entry["origin"])
    sizes_known = [file["bytes"] for file in _files(entry)]
    size = None if None in sizes_known else sum(sizes_known)
    return Listed(
        name, entry["title"], arrays, entry["classes"], sizes["train"], sizes["test"], size, entry["licence"], origin
    )


def load(
    name: str,
    part: Part = "train",
    want: Sequence[str] | None = None,
    fallback: Sequence[str] = _FALLBACK,
) -> Dataset:
    """The set of this name, or the first of ``fallback`` that can be had; the record says which.

    ``name`` is one of :func:`listing`, or the path of your own ``.npz`` file with arrays ``images`` (whole numbers
    0..255, three axes) and ``labels`` (whole numbers 0..65535, one axis), either or both.  Of a file with both, a model
    can be trained: ``test_images`` and ``test_labels`` are its test part, and where it has none, a sixth of its
    rows is, drawn with a fixed seed.  A file with only one of them has no test part: all rows are answers of users.
    ``want`` names the arrays that are needed.  The names of ``fallback`` are tried in order when the set is not on this
    machine and cannot be had; a file that is not the published one is never passed over, but raises :class:`DataError`.
    """
    for candidate in (name, *fallback):
        _known(candidate, part, want)
    reason: DataError | None = None
    for candidate in dict.fromkeys((name, *fallback)):
        try:
            return _one(candidate, name, part, want, reason)
        except MissingData as missing:
            reason = reason or missing
    raise reason or DataError(f"{name} cannot be had")


def refuse(argument: str, name: str, want: Sequence[str] = ()) -> None:
    """Refuse a name that :func:`load` does not know, or a set without these arrays; the sentence names the argument.

    A file of one's own has to be there; what it holds is not looked at.
    """
    names = [listed.name for listed in listing() if listed.classes]
    if name.endswith(".npz") and Path(name).is_file():
        return
    if name not in names:
        raise DomainError(
            f"{argument} must be one of {', '.join(names)}, or the path of an .npz file that exists, got {name!r}"
        )
    lacking = [array for array in want if name in _registry() and array not in _registry()[name]["parts"]["train"]]
    if lacking:
        raise DomainError(f"{argument} must be a data set with {' and '.join(want)}, got {name!r}")


def stand_in(name: str, want: Sequence[str] | None = None, parts: Sequence[Part] = _PARTS) -> tuple[str, str] | None:
    """The set that :func:`load` returns in place of this one, and why; ``None`` where the set itself can be had.

    Raises
    ------
    DataError
        If a file is not the published one.
    """
    for part in parts:
        try:
            load(name, part, want, fallback=())
        except MissingData as missing:
            for other in _FALLBACK:
                with suppress(MissingData):
                    return load(other, part, want, fallback=()).name, str(missing)
            raise
    return None


def fetch(name: str) -> tuple[Path, ...]:
    """Every file of the set on this machine, downloaded where missing; their paths."""
    _known(name, "train", None)
    return tuple(_locate(member, entry, file) for member, entry, file in _all_files(name))


def places(name: str) -> tuple[tuple[str, int], ...]:
    """The files of the set that are on this machine, good or not: ``set/file`` and bytes."""
    found = ((f"{member}/{file['name']}", _present(entry, file)[1]) for member, entry, file in _all_files(name))
    return tuple((file, path.stat().st_size) for file, path in found if path)


def verify(name: str) -> tuple[FileState, ...]:
    """The state of every file of the set, without downloading or changing anything."""
    _known(name, "train", None)
    return tuple(_state(member, file) for member, _, file in _all_files(name))


def _read_idx(path: Path) -> Bytes:
    """The array in a gzip-compressed idx file of unsigned bytes (magic number 0x0800 + number of axes)."""
    try:
        raw = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path.name} is not a whole gzip file: {error}") from None
    axes = raw[3] if len(raw) > 4 and raw[:3] == b"\0\0\x08" else 0
    shape = tuple(int(size) for size in np.frombuffer(raw[4 : 4 + 4 * axes], dtype=">u4")) if axes else ()
    if len(shape) != axes or not axes or len(raw) != 4 + 4 * axes + int(np.prod(shape, dtype=np.int64)):
        raise DataError(f"{path.name} is not a whole idx file of unsigned bytes")
    return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


def _one(name: str, requested: str, part: str, want: Sequence[str] | None, reason: DataError | None) -> Dataset:
    if name == _DIGITS:
        return _digits(requested, part, want, reason)
    if name.endswith(".npz"):
        return _own(name, part, want)
    if name in _JOINED:
        return _joined(name, requested, part, want, reason)
    entry = _registry()[name]
    if not entry["classes"]:
        raise DomainError(f"name must be that of images or labels, got {name!r}, which holds descriptions")
    arrays = tuple(want) if want is not None else tuple(entry["parts"][part])
    paths = {array: _locate(name, entry, entry["parts"][part][array]) for array in arrays}
    readers = {array: functools.partial(_upright, path, entry, array) for array, path in paths.items()}
    n = entry["sizes"][part]
    notice = _notice(f"{n:,} {' and '.join(arrays)} of {entry['title']} ({part} part)", requested, name, reason)
    return Dataset(name, requested, n, entry["classes"], notice, readers)


def _upright(path: Path, entry: Mapping[str, Any], array: str) -> Bytes:
    read = _read_idx(path)
    if array == "labels":
        return read - np.uint8(entry["first_label"])
    return np.ascontiguousarray(read.transpose(0, 2, 1)) if entry["transposed"] else read


def _joined(name: str, requested: str, part: str, want: Sequence[str] | None, reason: DataError | None) -> Dataset:
    members = [_one(member, member, part, want, None) for member in _JOINED[name]]
    firsts = np.cumsum([0, *(one.classes for one in members[:-1])]).astype(np.uint8)
    readers: dict[str, Callable[[], NDArray[Any]]] = {
        "images": lambda: np.concatenate([one.images for one in members]),
        "labels": lambda: np.concatenate([one.labels + first for one, first in zip(members, firsts, strict=True)]),
    }
    listed = next(one for one in listing() if one.name == name)
    n = sum(one.n for one in members)
    notice = _notice(f"{n:,} images and labels of {listed.title} ({part} part)", requested, name, reason)
    kept = {array: readers[array] for array in (want or _ARRAYS)}
    return Dataset(name, requested, n, listed.classes, notice, kept)


def _digits(requested: str, part: str, want: Sequence[str] | None, reason: DataError | None) -> Dataset:
    with extra("learning"):
        from sklearn.datasets import load_digits

    bunch = load_digits()
    train = len(bunch.target) - _DIGITS_KEPT_FOR_TEST
    rows = slice(None, train) if part == "train" else slice(train, None)
    images = np.rint(bunch.images[rows] * (255 / 16)).astype(np.uint8)
    held = {"images": images, "labels": bunch.target[rows].astype(np.uint8)}
    readers = {array: functools.partial(held.__getitem__, array) for array in (want or _ARRAYS)}
    notice = _notice(f"{len(images):,} real handwritten digits inside scikit-learn", requested, _DIGITS, reason)
    return Dataset(_DIGITS, requested, len(images), 10, notice, readers)


def _own(name: str, part: str, want: Sequence[str] | None) -> Dataset:
    title = Path(name).name
    stored = {array: _fitting(title, array, values) for array, values in _arrays_in(name, title).items()}
    held = {array: stored[array] for array in _ARRAYS if array in stored}
    kept = {array: stored[f"test_{array}"] for array in _ARRAYS if f"test_{array}" in stored}
    lacking = [array for array in (want or ()) if array not in held]
    if lacking:
        raise DataError(f"{title} must hold {' and '.join(lacking)}, and it holds {', '.join(stored)} alone")
    _equally_many(title, held)
    _equally_many(title, kept, "test_")
    classes = 1 + max((int(one["labels"].max()) for one in (held, kept) if "labels" in one), default=-1)
    taken, told = _part_of_own(title, part, held, kept)
    readers = {array: functools.partial(taken.__getitem__, array) for array in taken}
    return Dataset(name, name, _rows(taken), classes, f"Your own data: {told}.", readers)


def _arrays_in(name: str, title: str) -> dict[str, NDArray[Any]]:
    """The arrays of a file that have one of our names; one of them at least is no test array."""
    names = [f"{test}{array}" for test in ("", "test_") for array in _ARRAYS]
    try:
        if not zipfile.is_zipfile(name):
            raise DataError("it is not whole, or no archive of arrays as np.savez writes it")
        with np.load(name, allow_pickle=False) as file:
            found = list(file.files)
            stored = {array: np.asarray(file[array]) for array in names if array in found}
    except Exception as error:  # whatever the readers of zip files, headers and arrays make of a file that is damaged
        raise DataError(f"{title} is not a readable .npz file: {str(error) or type(error).__name__}") from None
    if not any(array in stored for array in _ARRAYS):
        raise DataError(f"{title} must hold images or labels, and it holds {', '.join(found[:5]) or 'nothing'}")
    return stored


def _fitting(title: str, array: str, values: NDArray[Any]) -> NDArray[Any]:
    """One array of one's own, in bytes where they suffice; refused unless it is what its name says."""
    kind = array.removeprefix("test_")
    what = f"{title} must hold {array} that are whole numbers in 0..{_LARGEST[kind]}"
    if values.dtype.kind not in "iu":
        unknown = values.dtype.kind in "fc" and bool(np.isnan(values).any())
        raise DataError(f"{what}, got {'NaN' if unknown else f'dtype {values.dtype}'}")
    if values.ndim != _AXES[kind]:
        wanted = "one axis" if _AXES[kind] == 1 else "three axes"
        raise DataError(f"{title} must hold {array} with {wanted}, one row a person, got shape {values.shape}")
    if not values.size:
        raise DataError(f"{title} must hold {array} that are not empty, got shape {values.shape}")
    if values.min() < 0 or values.max() > _LARGEST[kind]:
        outside = values.min() if values.min() < 0 else values.max()
        raise DataError(f"{what}, got {outside}")
    return values.astype(np.uint8 if values.max() <= 255 else np.int64)


def _equally_many(title: str, held: Mapping[str, NDArray[Any]], test: str = "") -> None:
    if len({len(values) for values in held.values()}) > 1:
        sizes = " and ".join(str(len(held[array])) for array in _ARRAYS)
        raise DataError(f"{title} must hold as many {test}images as {test}labels, got {sizes}")


def _rows(held: Mapping[str, NDArray[Any]]) -> int:
    """How many rows these arrays have."""
    return len(next(iter(held.values())))


def _part_of_own(
    title: str, part: str, held: dict[str, NDArray[Any]], kept: dict[str, NDArray[Any]]
) -> tuple[dict[str, NDArray[Any]], str]:
    """The arrays of a part, and what is said of them."""
    n = _rows(held)
    if len(held) == 1:
        if part == "test":
            raise DataError(f"{title} must hold images and labels, for a model to be trained and tested")
        return held, title
    if kept:
        if kept.keys() != held.keys():
            raise DataError(f"{title} must hold both test_images and test_labels, or neither")
        if kept["images"].shape[1:] != held["images"].shape[1:]:
            raise DataError(f"{title} must hold test_images of the size of its images")
        return (held, kept)[part == "test"], f"{title}, {n:,} rows to train and {_rows(kept):,} to test"
    if n < 2:
        raise DataError(f"{title} must hold two rows or more, for a model to be trained and tested")
    order = np.random.default_rng(_OWN_SEED).permutation(n)
    cut = max(1, n // _OWN_KEPT_FOR_TEST)
    rows = np.sort(order[:cut] if part == "test" else order[cut:])
    told = f"{title}, of whose {n:,} rows {cut:,}, drawn with seed {_OWN_SEED}, are kept for testing"
    return {array: values[rows] for array, values in held.items()}, told


def _notice(what: str, requested: str, name: str, reason: DataError | None) -> str:
    if name == requested:
        return f"Data: {what}."
    return f"{requested} could not be had ({reason}); shown instead: {what}."


def _known(name: str, part: str, want: Sequence[str] | None) -> None:
    names = [*_registry(), *_JOINED, _DIGITS]
    if name not in names and not name.endswith(".npz"):
        raise DomainError(f"name must be one of {', '.join(names)}, or the path of an .npz file, got {name!r}")
    if part not in _PARTS:
        raise DomainError(f"part must be one of train, test, got {part!r}")
    has = tuple(_registry()[name]["parts"][part]) if name in _registry() else _ARRAYS
    for array in want or ():
        if array not in has:
            raise DomainError(f"want must be chosen from {', '.join(has)} for {name}, got {array!r}")


def _all_files(name: str) -> list[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    """Set, entry and file, for every file that a set consists of; the digits inside scikit-learn have none."""
    members = () if name == _DIGITS else _JOINED.get(name, (name,))
    return [(one, _registry()[one], file) for one in members for file in _files(_registry()[one])]


def _files(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [file for part in entry["parts"].values() for file in part.values()]


def _state(name: str, file: Mapping[str, Any]) -> FileState:
    where, path = _present(_registry()[name], file)
    found = _digest(path) if path else ""
    state: State = "missing" if path is None else "good" if found == file["sha256"] else "corrupt"
    return FileState(name, file["name"], where, state)


# --- where a file is, and how it gets there ---------------------------------------------------------


def _present(entry: Mapping[str, Any], file: Mapping[str, Any]) -> tuple[Where, Path | None]:
    """The first place that holds a file of this name, good or not."""
    own = os.environ.get("FLAMELIB_DATA")
    if own:
        if not Path(own).is_dir():
            raise DataError(f"FLAMELIB_DATA must name a folder that exists, got {own!r}")
        for folder in entry["folders"]:
            if (Path(own) / folder / file["name"]).is_file():
                return "FLAMELIB_DATA", Path(own) / folder / file["name"]
    cached = _cache(entry) / file["name"]
    return ("cache", cached) if cached.is_file() else ("nowhere", None)


def _cache(entry: Mapping[str, Any]) -> Path:
    """The folder of this set in the user's cache."""
    with extra("learning"):
        import pooch

    return Path(pooch.os_cache("flamelib")) / str(entry["folders"][0])


def _digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _locate(name: str, entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """The path of a file whose digest is the published one; downloaded if it is nowhere.

    A wrong file in ``FLAMELIB_DATA`` is refused and left alone; one in the cache is removed and fetched again.
    """
    where, path = _present(entry, file)
    if path:
        found = _digest(path)
        if found == file["sha256"]:
            return path
        if where == "FLAMELIB_DATA":
            raise DataError(f"{path} is not the published file: SHA-256 {found}, expected {file['sha256']}")
        path.unlink()
    return _download(name, entry, file)


def _download(name: str, entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    if os.environ.get("FLAMELIB_OFFLINE"):
        raise MissingData(f"{file['name']} of {name} is not on this machine and FLAMELIB_OFFLINE is set")
    try:
        _cache(entry).mkdir(parents=True, exist_ok=True)
        return _from_archive(entry, file) if entry["archive"] else _from_origin(entry, file)
    except OSError as error:
        if error.filename is not None:
            raise DataError(f"{file['name']} of {name} cannot be stored in the cache: {error}") from None
        raise MissingData(f"{file['name']} of {name} is not on this machine and its origin did not answer") from None


def _from_origin(entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    for origin in entry["origin"]:
        try:
            return _retrieve(origin + file["name"], _cache(entry), file["name"], file["sha256"])
        except OSError as error:
            if error.filename is not None:  # the disk, not the network
                raise
    raise ConnectionError("no origin answers")


def _from_archive(entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """One archive holds many files: fetched once, each file checked as it is taken out."""
    archive = _cache(entry) / Path(entry["origin"][0]).name
    _retrieve(entry["origin"][0], _cache(entry), archive.name, None)
    target = _cache(entry) / str(file["name"])
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(archive) as members:
            partial.write_bytes(members.read(f"{entry['archive']}{file['name']}"))
        if (found := _digest(partial)) != file["sha256"]:
            raise DataError(f"{file['name']} in {archive.name} is not the published file: SHA-256 {found}")
        return partial.replace(target)
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise DataError(f"{archive.name} is not the published archive: {error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _retrieve(url: str, folder: Path, name: str, sha256: str | None) -> Path:
    """The file, there already or downloaded: moved into place by pooch after it has checked the digest."""
    with extra("learning"):
        import pooch

    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(url, sha256, name, folder, downloader=pooch.HTTPDownloader(timeout=_SECONDS_TO_ANSWER))
    except ValueError as wrong:  # its first sentence names the file and both digests
        raise DataError(f"{name} is not the published file: {str(wrong).partition('. ')[0]}") from None
    return folder / name
