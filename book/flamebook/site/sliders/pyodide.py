"""Python for the page of sliders: the core of Pyodide and the library's own sources, placed in the built book.

A page opened from disk may neither fetch files nor import modules, but it may load scripts.  So everything
travels as scripts that hand over text: the core gzipped and in base64 (smaller than the plain files), the
sources as they are.  One way of loading then serves a web server and a folder on disk alike.
"""

import base64
import gzip
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamebook.records import LOOKS, SOLID
from flamebook.runs import files, inputs
from flamebook.site.sliders import figures, page
from flamebook.site.sliders.figures import Curve, Figure
from flamebook.site.sliders.grids import RECORDED
from flamelib.core.statements import homes

# The package is asked for by name and version from whatever registry npm is set up with, and taken by digest.
VERSION = "314.0.7"
INTEGRITY = "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
PACKED = ("pyodide.asm.wasm", "pyodide.asm.mjs", "python_stdlib.zip")
# The memory of an interpreter that has started: a page that takes it over starts in a third of the time.
SNAPSHOT = "snapshot"
_SNAP = """
import { loadPyodide } from "./pyodide.mjs";
import { writeFileSync } from "node:fs";
writeFileSync("snapshot", (await loadPyodide({ _makeSnapshot: true })).makeMemorySnapshot());
"""
# What pages compute themselves, and the homes of the statements that are not read off recorded grids.
_SHOWN = [*page.ROWS, *(curve.row for figure in figures.FIGURES for curve in figure.curves)]
ROOTS = (figures.__name__, *dict.fromkeys(homes()[row.statement] for row in _SHOWN if not row.recorded))
OURS = ("flamelib", "flamebook")
CACHE = Path("_build/cache")
PATIENCE_S = 180


def install(html_folder: Path, cache: Path = CACHE) -> bool:
    """Place what the page of sliders needs into ``html_folder/_static/sliders``.

    The sources and the grid of values computed here are always placed; the core of Pyodide where the cache
    holds it or npm can bring it.

    Parameters
    ----------
    html_folder : Path
        The built book.
    cache : Path
        Folder that keeps the npm package and the grid between builds.

    Returns
    -------
    bool
        Whether the page computes in the browser; without, it shows the grid and says so.
    """
    folder = html_folder / "_static" / "sliders"
    folder.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    carried = sources()
    archive = package(cache)
    _hand_over(folder / "flamelib.js", "flamelib", carried)
    runtime = None if archive is None else _runtime(archive, folder)
    for name, told in _facts(cache, carried).items():
        _hand_over(folder / f"{name}.js", name, told | {"runtime": runtime})
    return archive is not None


def sources() -> dict[str, str]:
    """Every module that the sliders import, and the recorded grids, by path: nothing else runs in the browser.

    >>> sorted(sources())[:2]
    ['book/flamebook/__init__.py', 'book/flamebook/places.py']
    """
    grids = {RECORDED.relative_to(ROOT).as_posix(): RECORDED.read_text(encoding="utf-8")}
    code = _closure(ROOTS)
    if foreign := _foreign(code):
        raise ImportError(f"{min(foreign)} is not in the standard library, so the sliders cannot import it")
    return dict(sorted((grids | code).items()))


def _closure(roots: Iterable[str]) -> dict[str, str]:
    """Path to text, of every file that these modules import."""
    paths = inputs.modules("".join(f"import {root}\n" for root in roots), ROOT)
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _foreign(sources: Mapping[str, str]) -> set[str]:
    """What these import that a browser does not have."""
    tops = {name.partition(".")[0] for source in sources.values() for name in inputs.imported(source)}
    return tops - {*OURS, *sys.stdlib_module_names}


def package(cache: Path) -> Path | None:
    """The npm package ``pyodide`` of the pinned version and digest, from the cache or from npm; else ``None``."""
    archive = cache / f"pyodide-{VERSION}.tgz"
    if not _intact(archive) and (npm := shutil.which("npm")):
        _fetch(npm, archive)
    return archive if _intact(archive) else None


def _fetch(npm: str, archive: Path) -> None:
    part = Path(tempfile.mkdtemp(prefix="pyodide-", dir=archive.parent))
    quiet = ["--ignore-scripts", "--loglevel=error", "--fetch-retries=0", "--update-notifier=false"]
    command = [npm, "pack", f"pyodide@{VERSION}", "--pack-destination", str(part), *quiet]
    try:
        subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
        (part / archive.name).replace(archive)
    except (OSError, subprocess.SubprocessError):
        pass  # no network, or another package of this name: the digest of the archive decides
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _intact(archive: Path) -> bool:
    return archive.is_file() and integrity(archive.read_bytes()) == INTEGRITY


def integrity(content: bytes) -> str:
    """Digest in the form that package registries publish.

    >>> integrity(b"")[:19]
    'sha512-z4PhNX7vuL3x'
    """
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def _runtime(archive: Path, folder: Path) -> dict[str, Any]:
    """Place the core as scripts, made once for each archive; what the loader must be told of it."""
    ready = archive.with_suffix("")
    if not (ready / "runtime.json").is_file():
        ready.mkdir(exist_ok=True)
        files.write(ready / "runtime.json", json.dumps(_unpack(archive, ready), allow_nan=False))
    for script in ready.glob("*.js"):
        shutil.copyfile(script, folder / script.name)
    told: dict[str, Any] = json.loads((ready / "runtime.json").read_text(encoding="utf-8"))
    return told


def _unpack(archive: Path, folder: Path) -> dict[str, Any]:
    with tarfile.open(archive) as packed:
        parts = {name: _member(packed, name) for name in PACKED} | _snapshot(packed)
        for name, content in parts.items():
            _hand_over(folder / f"{name}.js", name, base64.b64encode(gzip.compress(content, mtime=0)).decode())
        loader = _member(packed, "pyodide.js").decode().replace("//# sourceMappingURL=pyodide.js.map", "")
        info = json.loads(_member(packed, "pyodide-lock.json"))["info"]
    (folder / "pyodide.js").write_text(loader, encoding="utf-8")
    return {"version": VERSION, "python": info["python"], "parts": list(parts), "lock": {"info": info, "packages": {}}}


def _snapshot(packed: tarfile.TarFile) -> dict[str, bytes]:
    """The snapshot by its name, made by the core itself in Node; where that cannot be, pages do without."""
    with tempfile.TemporaryDirectory(prefix="pyodide-") as desk:
        folder = Path(desk)
        for name in (*PACKED, "pyodide.mjs", "pyodide-lock.json", "package.json"):
            (folder / name).write_bytes(_member(packed, name))
        (folder / "snap.mjs").write_text(_SNAP, encoding="utf-8")
        try:
            subprocess.run(["node", "snap.mjs"], cwd=folder, capture_output=True, timeout=PATIENCE_S, check=True)
            return {SNAPSHOT: (folder / SNAPSHOT).read_bytes()}
        except (OSError, subprocess.SubprocessError):
            return {}


def _member(packed: tarfile.TarFile, name: str) -> bytes:
    member = packed.extractfile(f"package/{name}")
    if member is None:
        raise FileNotFoundError(f"{name} is no file in the npm package of Pyodide {VERSION}")
    return member.read()


def _hand_over(path: Path, name: str, content: Any) -> None:
    """A script that gives ``content`` to the page."""
    told = json.dumps(content, allow_nan=False)
    path.write_text(f"flamelibSliders.receive({json.dumps(name)}, {told});\n", encoding="utf-8")


def _facts(cache: Path, carried: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What the page of sliders, and the figures that move, are told: computed once for each state of the sources."""
    words = json.dumps([carried, *map(repr, LOOKS.values())])
    kept = cache / f"sliders-{hashlib.sha256(words.encode()).hexdigest()[:16]}.json"
    if not kept.is_file():
        values = page.layout() | {"grid": page.grid(), "charts": [_layout(one) for one in figures.CHARTS]}
        moving = {one.name: _layout(one) | {"opens": _opens(one)} for one in figures.FIGURES}
        files.write(kept, json.dumps({"values": values, "figures": {"figures": moving}}, allow_nan=False))
    facts: dict[str, dict[str, Any]] = json.loads(kept.read_text(encoding="utf-8"))
    return facts


def _layout(figure: Figure) -> dict[str, Any]:
    """A figure that moves, as the page must know it: its axes, its sliders and the look of its curves."""
    upwards = {"label": figure.y, "log": figure.log, "least": figure.least, "most": figure.most}
    told = {name: getattr(figure, name) for name in ("name", "title", "fixed", "notebook", "words")}
    return told | {
        "x": figure.x.told(),
        "y": upwards,
        "sliders": [one.told() for one in figure.sliders],
        "needs": list(dict.fromkeys(name for curve in figure.curves for name in curve.row.needs)),
        "curves": [_look(curve) | {"steps": curve.steps(figure.x.name)} for curve in figure.curves],
        "always": ", ".join(f"{page.CALLED[name][1]} = {value:g}" for name, value in figure.fixed.items()).replace(
            "e-0", "e-"
        ),
    }


def _look(curve: Curve) -> dict[str, Any]:
    look = LOOKS[curve.look]
    dash = curve.dash if curve.dash is not None else "" if look.dash == SOLID else " ".join(map(str, look.dash[1]))
    told = {"key": curve.key, "words": curve.words or look.label, "recorded": bool(curve.row.recorded)}
    return told | {"hue": curve.hue or look.hue, "dash": dash, "statement": curve.row.statement}


def _opens(figure: Figure) -> dict[str, Any]:
    """What it shows when it opens, before anything has been started."""
    return {"curves": figure.curves_at(figure.start()), "marked": figure.marked(figure.start())}
