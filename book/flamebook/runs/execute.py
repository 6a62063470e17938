"""One notebook, one set of parameters, one folder: executed through papermill, all of it or nothing.

The folder of a run holds the executed notebook, ``figures/``, ``results.json`` and ``receipt.json``; the
receipt names everything the result depends on by content, and is what decides whether a run is current.
"""

import contextlib
import json
import logging
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flamebook.runs import files, inputs, recorded
from flamebook.runs import notebook as stamp
from flamebook.runs.notebook import values
from flamebook.statements import STAND_INS
from flamelib.core.vocabulary import DomainError

RESUME = "FLAMELIB_RESUME"  # the folder in which long trainings keep where they are
RECEIPT = "receipt.json"
RESULTS = "results.json"
FAILED = ".failed"
PACKAGES = ("flamelib", "numpy", "scipy", "matplotlib", "scikit-learn", "dp-accounting", "torch", "papermill")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class RunFailed(RuntimeError):
    """A notebook has no result, for a cell raised an error or its process died; the message shows where and why."""


@dataclass(frozen=True, slots=True)
class Run:
    """A notebook with the values of all its parameters."""

    template: Path
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The folder above the notebook's own: where packages, ``data`` and the lock lie."""
        return self.template.resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a run was made from, what it left and what it took.

    Attributes
    ----------
    parameters : dict
        Every parameter of the notebook with the value used.
    inputs, outputs : dict of str to str
        Path to SHA-256: inputs from the root of the checkout, outputs from the folder of the run.
    seconds : float
        Wall time.
    peak_memory_mb : float
        Largest resident memory of the kernel.
    versions : dict of str to str
        Python and the packages that compute.
    faults : list of str
        What cells raised in a run that went on.
    stand_ins : dict of str to str
        Of data sets that could not be had: the parameter that names one, and a sentence on what stands in, and why.
    """

    notebook: str
    parameters: dict[str, Any]
    seed: int | None
    seconds: float
    peak_memory_mb: float
    versions: dict[str, str]
    inputs: dict[str, str]
    outputs: dict[str, str]
    faults: list[str] = field(default_factory=list)
    stand_ins: dict[str, str] = field(default_factory=dict)


def execute(
    template: Path,
    output_folder: Path,
    parameters: Mapping[str, Any],
    name: str = "",
    edition: str = "",
    tolerant: bool = False,
) -> Receipt:
    """Execute a notebook and leave its whole result in a folder, or leave the folder as it was.

    Parameters
    ----------
    template : Path
        A notebook whose first code cell is tagged ``parameters``.
    output_folder : Path
        New, empty, or the folder of an earlier run, which is replaced at the end.
    parameters : mapping of str to value
        Values for some of the declared parameters; the others keep their defaults.
    name : str
        Name of the run in links between pages; the notebook's by default.
    edition : str
        The profile of the book that the run belongs to: its statements have to hold then.  Empty for others.
    tolerant : bool
        Go on where a cell raises an error: a sentence stands in place of its output, and the receipt names it.

    Raises
    ------
    DomainError
        For a parameter that is not declared or does not belong to its domain, a folder that holds
        other things or cannot be written; before anything is started.
    RunFailed
        If a cell raises an error, unless ``tolerant``, or the process of the notebook dies.
    """
    run = Run(template, values(template, parameters))
    part = _part(output_folder)
    try:
        with files.filled(part):
            receipt = _execute_into(part, run, name or template.stem, edition, tolerant)
            files.put_in_place(part, output_folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return receipt


def _part(output_folder: Path) -> Path:
    ours = any((output_folder / name).exists() for name in (RECEIPT, RESULTS, "figures"))
    if output_folder.is_file() or (output_folder.is_dir() and not ours and any(output_folder.iterdir())):
        raise DomainError(f"output_folder must be new, empty or hold an earlier run, got {str(output_folder)!r}")
    part = output_folder.with_name(f".{output_folder.name}.part")
    if not files.remove_left(part):
        raise DomainError(f"output_folder must be one that no other run fills now, got {str(output_folder)!r}")
    try:
        (part / "figures").mkdir(parents=True)
    except OSError as fault:
        raise DomainError(f"output_folder must be writable, got {str(output_folder)!r} ({fault.strerror})") from None
    return part


def _execute_into(part: Path, run: Run, name: str, edition: str, tolerant: bool) -> Receipt:
    used = inputs.digests(run.template, run.root, run.parameters)
    lacking = stand_ins(run)
    for sentence in lacking.values():
        print(sentence, file=sys.stderr, flush=True)
    page = part / run.template.name
    template = part / ".template.ipynb"
    filled = stamp.with_values(stamp.read(run.template), run.parameters)
    stamp.write(template, stamp.going_on(filled) if tolerant else filled)
    started = time.perf_counter()
    with _surroundings(part, run, name, edition, lacking):
        _papermill(template, page, tolerant)
    seconds = time.perf_counter() - started
    template.unlink()
    executed, faults = stamp.faults_told(stamp.read(page), filled) if tolerant else (stamp.read(page), [])
    stamp.write(page, stamp.finished(executed))
    receipt = Receipt(
        notebook=run.template.stem,
        parameters=run.parameters,
        seed=run.parameters.get("seed"),
        seconds=round(seconds, 2),
        peak_memory_mb=_peak_memory_mb(),
        versions=recorded.versions(PACKAGES),
        inputs=used,
        outputs={path.relative_to(part).as_posix(): inputs.sha256(path) for path in _files(part)},
        faults=faults,
        stand_ins=lacking,
    )
    (part / RECEIPT).write_text(json.dumps(asdict(receipt), indent=1) + "\n", encoding="utf-8")
    return receipt


def stand_ins(run: Run) -> dict[str, str]:
    """What stands in for the data sets of a run that cannot be had, by the parameters that name them, in sentences.

    Raises
    ------
    DataError
        If a file of a data set is not the published one.
    """
    found = {}
    for name, reads in stamp.data_sets(run.template).items():
        # Imported here: most notebooks read no data.
        from flamelib.learning import datasets

        asked = run.parameters[name]
        if instead := datasets.stand_in(asked, reads.want or None, reads.parts):
            other, why = instead
            found[name] = (
                f"{name}: {other} stands in for {asked}, so that no verdict is given, for {why}; "
                "FLAMELIB_DATA may name the folder where the files lie"
            )
    return found


def _papermill(template: Path, page: Path, tolerant: bool) -> None:
    # Imported here: it takes a second, and checks of arguments come first.
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    logging.getLogger("papermill").addHandler(logging.NullHandler())  # what it says of a fault, we say
    # Kernels that start together race for TCP ports; sockets in the file system do not.
    sockets = Config({"KernelManager": {"transport": "ipc"}})
    try:
        papermill.execute_notebook(
            template,
            page,
            kernel_name="python3",
            cwd=page.parent,
            # Of a run of one's own; a book tells of all its runs in other words.
            progress_bar={"desc": page.stem} if tolerant and sys.stderr.isatty() else False,
            autosave_cell_every=2,
            config=sockets,
        )
    except PapermillExecutionError as fault:
        if tolerant:
            return
        _keep_failed(page)
        raise RunFailed(
            f"{page.stem}: cell {fault.cell_index + 1} raised {fault.ename}: {fault.evalue}\n"
            + "\n".join(f"    | {line}" for line in fault.source.splitlines())
        ) from None
    except RuntimeError as fault:
        why = f"the kernel ended before its work was done, perhaps for want of memory ({fault})"
        raise RunFailed(f"{page.stem}: {_at(page)}{why}") from None


def _at(page: Path) -> str:
    """The last cell that was begun on a page that papermill has left, in words; empty where none was."""
    cells = stamp.read(page)["cells"] if page.is_file() else []
    begun = [at for at, cell in enumerate(cells, 1) if cell["metadata"].get("papermill", {}).get("start_time")]
    return f"in cell {begun[-1]} " if begun else ""


def _keep_failed(page: Path) -> None:
    kept = page.parent.parent / FAILED
    kept.mkdir(exist_ok=True)
    shutil.copy(page, kept / page.name)


@contextlib.contextmanager
def _surroundings(folder: Path, run: Run, name: str, edition: str, lacking: Mapping[str, str]) -> Iterator[None]:
    """The kernel's environment: one thread, the run's folder, and no settings of the user's own."""
    path = os.pathsep.join(part for part in (str(run.root), os.environ.get("PYTHONPATH", "")) if part)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="flamelib-") as private:
        own = {"FLAMELIB_RUN": name, "FLAMELIB_RUN_FOLDER": str(folder.resolve()), "PYTHONPATH": path}
        own |= {"FLAMELIB_EDITION": edition}
        own |= {"FLAMELIB_RUN_PARAMETERS": json.dumps(run.parameters), STAND_INS: json.dumps(lacking)}
        own |= {"PYTHONHASHSEED": "0", "IPYTHONDIR": private, "JUPYTER_RUNTIME_DIR": private}
        own |= {RESUME: os.environ.get(RESUME) or str((run.root / "_build" / "resume").resolve())}
        own |= dict.fromkeys(ONE_THREAD, "1") | {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        if data := os.environ.get(inputs.DATA_SETS):
            own[inputs.DATA_SETS] = str(Path(data).resolve())
        os.environ.update(own)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != RECEIPT)


def _peak_memory_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def receipt_of(folder: Path) -> Receipt | None:
    """The receipt in a run's folder; ``None`` where there is none that can be read."""
    try:
        return Receipt(**json.loads((folder / RECEIPT).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def reason(run: Run, folder: Path) -> str:
    """Why the run in a folder is not current, in a few words; empty where it is."""
    receipt = receipt_of(folder)
    if receipt is None:
        return "not yet run"
    used = inputs.digests(run.template, run.root, run.parameters)
    if changed := inputs.differing((receipt.inputs, used), (receipt.parameters, run.parameters)):
        return changed
    left = {path.relative_to(folder).as_posix(): inputs.sha256(path) for path in _files(folder)}
    return "" if left == receipt.outputs else "its files were changed"
