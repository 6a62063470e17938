"""Where a published file is on this machine, and how it gets there: digest first, atomically, or not at all."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

Where = Literal["FLAMELIB_DATA", "cache", "nowhere"]
SECONDS_TO_ANSWER = 15


class DataError(RuntimeError):
    """A data file is missing or is not the published one; the message is one sentence fit for a user."""


class MissingData(DataError):
    """Not on this machine and not to be had from its origin; another set may stand in."""


def present(entry: Mapping[str, Any], file: Mapping[str, Any]) -> tuple[Where, Path | None]:
    """The first place that holds a file of this name, good or not."""
    own = os.environ.get("FLAMELIB_DATA")
    if own:
        if not Path(own).is_dir():
            raise DataError(f"FLAMELIB_DATA must name a folder that exists, got {own!r}")
        for folder in entry["folders"]:
            if (Path(own) / folder / file["name"]).is_file():
                return "FLAMELIB_DATA", Path(own) / folder / file["name"]
    cached = cache(entry) / file["name"]
    return ("cache", cached) if cached.is_file() else ("nowhere", None)


def cache(entry: Mapping[str, Any]) -> Path:
    """The folder of this set in the user's cache."""
    import pooch

    return Path(pooch.os_cache("flamelib")) / str(entry["folders"][0])


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    import pooch

    return str(pooch.file_hash(path, alg="sha256"))


def locate(name: str, entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """The path of a file whose digest is the published one; downloaded if it is nowhere.

    A wrong file in ``FLAMELIB_DATA`` is refused and left alone; one in the cache is removed and fetched again.
    """
    where, path = present(entry, file)
    if path:
        found = digest(path)
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
        cache(entry).mkdir(parents=True, exist_ok=True)
        return _from_archive(entry, file) if entry["archive"] else _from_origin(entry, file)
    except OSError as error:
        if error.filename is not None:
            raise DataError(f"{file['name']} of {name} cannot be stored in the cache: {error}") from None
        raise MissingData(f"{file['name']} of {name} is not on this machine and its origin did not answer") from None


def _from_origin(entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    for origin in entry["origin"][:-1]:
        try:
            return _retrieve(origin + file["name"], cache(entry), file["name"], file["sha256"])
        except OSError as error:
            if error.filename is not None:
                raise
    return _retrieve(entry["origin"][-1] + file["name"], cache(entry), file["name"], file["sha256"])


def _from_archive(entry: Mapping[str, Any], file: Mapping[str, Any]) -> Path:
    """One archive holds many files: fetched once, each file checked as it is taken out."""
    archive = cache(entry) / Path(entry["origin"][0]).name
    if not archive.is_file():
        _retrieve(entry["origin"][0], cache(entry), archive.name, None)
    target = cache(entry) / str(file["name"])
    partial = target.with_suffix(f".{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(archive) as members:
            partial.write_bytes(members.read(f"{entry['archive']}{file['name']}"))
        _same(partial, file["name"], file["sha256"])
        return partial.replace(target)
    except (zipfile.BadZipFile, KeyError) as error:
        archive.unlink()
        raise DataError(f"{archive.name} is not the published archive: {error}") from None
    finally:
        partial.unlink(missing_ok=True)


def _same(path: Path, name: str, expected: str) -> None:
    found = digest(path)
    if found != expected:
        raise DataError(f"{name} as downloaded is not the published file: SHA-256 {found}, expected {expected}")


def _retrieve(url: str, folder: Path, name: str, sha256: str | None) -> Path:
    """pooch writes beside the target and moves the file into place after it has checked the digest."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    arrival = f"{name}.{os.getpid()}.partial"
    downloader = pooch.HTTPDownloader(timeout=SECONDS_TO_ANSWER)
    try:
        pooch.retrieve(url, known_hash=None, fname=arrival, path=folder, downloader=downloader)
        if sha256 is not None:
            _same(folder / arrival, name, sha256)
        return (folder / arrival).replace(folder / name)
    finally:
        (folder / arrival).unlink(missing_ok=True)
