"""One page by the book's own builder: numbers, references and citations are those of the book that was built last.

The build of the book leaves what Sphinx knows of all its pages in a folder (:data:`SEED`).  Here that folder is copied,
the one page is read anew in its place and written, and nothing else: seconds, where the whole book takes minutes.
"""

import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

SEED = Path("_build/doctrees")
ENVIRONMENT = "environment.pickle"

# What a single page has no use for: other pages beside it, a search, buttons that fetch what lies elsewhere.
_ALONE = {
    "html_sidebars": {"**": []},
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_use_index": False,
    "use_thebe": False,
}
_ALONE_THEME = {
    "article_header_start": [],
    "article_header_end": ["article-header-buttons.html"],
    "use_fullscreen_button": False,
    "disable_search": True,
    "show_prev_next": False,
    "launch_buttons": {},
}


class NotBuilt(RuntimeError):
    """The book's builder cannot make this page; the message says why."""


def build(notebook: Path, root: Path, folder: Path) -> Path:
    """Build the page of an executed notebook of the book into a folder and return its path there.

    Parameters
    ----------
    notebook : Path
        ``NAME.ipynb``, of which the book has a page.
    root : Path
        The checkout, in which the book was built.
    folder : Path
        An empty folder; the page lies in ``notebooks`` beneath, its styles and scripts in ``_static``.

    Raises
    ------
    NotBuilt
        Where no book was built, it has no such page, or the builder gives up.
    """
    page = f"notebooks/{notebook.stem}"
    if not (root / SEED / f"{page}.doctree").is_file():
        raise NotBuilt("the book that this page belongs to is not built here")
    with tempfile.TemporaryDirectory(prefix="flamelib-") as desk:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what other packages warn of is nothing of the page's
                _write(notebook, page, root, folder, Path(desk))
        except Exception as fault:  # whatever an extension raises: the page is then made without them
            raise NotBuilt(f"the book's builder gave up ({type(fault).__name__}: {fault})") from fault
    return folder / f"{page}.html"


def _write(notebook: Path, page: str, root: Path, folder: Path, desk: Path) -> None:
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    source, doctrees = desk / "source", desk / "doctrees"
    (source / "notebooks").mkdir(parents=True)
    (source / "book").symlink_to((root / "book").resolve())
    shutil.copy(notebook, source / "notebooks" / f"{notebook.stem}.ipynb")
    shutil.copytree(root / SEED, doctrees)
    _moved(doctrees / ENVIRONMENT)
    with _path_kept(), patch_docutils(None), docutils_namespace():
        settings = _settings(root, source)
        app = Sphinx(source, None, folder, doctrees, "html", settings, status=None, warning=StringIO())
        app.setup_extension("sphinx_multitoc_numbering")
        if page not in app.env.all_docs:
            raise NotBuilt("what is known of the book's pages is of another version of the builder")
        _write_only(app, page)


@contextmanager
def _path_kept() -> Iterator[None]:
    """The builder adds the folder of the book's own extension to the path."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before


def _settings(root: Path, source: Path) -> dict[str, Any]:
    from jupyter_book.config import get_final_config  # type: ignore[import-untyped]

    given = {"latex_individualpages": False, "external_toc_path": (root / "book" / "_toc.yml").resolve().as_posix()}
    settings: dict[str, Any] = get_final_config(
        user_yaml=root / "_config.yml", cli_config=given, sourcedir=source, validate=False
    )[0]
    theme = {name: value for name, value in settings["html_theme_options"].items() if not name.startswith("use_")}
    buttons = {name: False for name in settings["html_theme_options"] if name.startswith("use_")}
    # The form and the foot are those of a page of the book, to which this one leads back; one file holds its figures.
    settings["extensions"] = [name for name in settings["extensions"] if name not in ("forms", "light", "foot")]
    return settings | _ALONE | {"html_theme_options": theme | buttons | {"use_download_button": False} | _ALONE_THEME}


def _moved(environment: Path) -> None:
    """Sphinx refuses an environment of another folder; one of no folder it takes."""
    import pickle

    with environment.open("rb") as file:
        known = pickle.load(file)
    known.srcdir = ""
    with environment.open("wb") as file:
        pickle.dump(known, file, pickle.HIGHEST_PROTOCOL)


def _write_only(app: Any, page: str) -> None:
    """Read one page anew and write it, as Sphinx does with all of them."""
    from sphinx.environment.collectors.toctree import TocTreeCollector
    from sphinx.util.build_phase import BuildPhase
    from sphinx.util.parallel import SerialTasks

    builder, environment = app.builder, app.env
    cited = environment.get_domain("cite")
    for bibliography in cited.bibliographies.values():
        bibliography.bibfiles[:] = list(cited.bibdata.bibfiles)
    # The other pages are as they were, though their sources are not here.
    environment.find_files = lambda config, builder: None
    environment.get_outdated_files = lambda config_changed: (set(), {page}, set())
    # So are the numbers, this page's too: numbering all figures anew would take most of the time.
    numbers = environment.toc_fignumbers.get(page, {})
    builder.read()
    TocTreeCollector().assign_section_numbers(environment)
    environment.toc_fignumbers[page] = numbers
    builder.finish_tasks = SerialTasks()
    app.emit("write-started", builder)
    builder.prepare_writing({page})
    environment.dlfiles.clear()
    for name in [name for name, (pages, _) in environment.images.items() if page not in pages]:
        del environment.images[name]
    builder.copy_assets()
    app.phase = BuildPhase.RESOLVING
    resolved = environment.get_and_resolve_doctree(page, builder)
    app.phase = BuildPhase.WRITING
    builder.write_doc_serialized(page, resolved)
    builder.write_doc(page, resolved)
    builder.copy_image_files()  # such as what a cell had drawn before it failed
    app.emit("build-finished", None)  # here extensions lay out their styles
