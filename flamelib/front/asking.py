"""Questions that need no record of one protocol: any statement by its id, all mechanisms for one request, an audit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flamelib.core.guarantees import RestsOn
from flamelib.front.results import Answer, rounded, table


def evaluate(statement: str, /, **inputs: Any) -> Answer:
    """The answer of a statement of the documents, by its id, to these inputs, as ``flamelib evaluate`` gives it.

    Parameters
    ----------
    statement : str
        An id such as ``flame:thm-4``; ``flamelib evaluate --list`` prints them all.
    **inputs
        Named as in the vocabulary; a local randomizer is a word (``randomizer="laplace"``) beside its parameters.

    Returns
    -------
    Answer
        ``.value``, ``.gives`` (upper, lower, exact, or a value that guarantees nothing), ``.adjacency``, ``.inputs``,
        ``.source``, and ``.uncertainty`` where there is one; a ``dict`` with these entries.

    Raises
    ------
    DomainError
        For an unknown id, or an input that is unknown, missing or outside its domain.

    Examples
    --------
    >>> evaluate("flame:thm-4", kept=157, epsilon=0.0022, delta=1e-8).gives
    'value'
    """
    from flamelib import answers
    from flamelib.core.vocabulary import DomainError

    if not isinstance(statement, str):
        raise DomainError(f"id must be a text, got {statement!r}")
    return Answer(answers.answer(statement, inputs, text=False))


class Comparison(Sequence[Any]):
    """Rows of all mechanisms for one request: a sequence that prints as a table, in the order of their errors."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def _lines(self) -> Iterator[tuple[str, ...]]:
        """The answers by their error, what else must be known of some, and why others do not answer."""
        yield ("mechanism", "error", "epsilon", "bits", "who must be trusted")
        answered = sorted((row for row in self if not hasattr(row, "reason")), key=lambda row: row.error)
        for row in answered:
            least = "at most" if row.lower is None else f"{rounded(row.lower, up=False)} to"
            yield (row.mechanism, rounded(row.error), f"{least} {rounded(row.epsilon)}", rounded(row.bits), row.trusted)
        for row in answered:
            if row.warning or row.rests_on != RestsOn.PROVEN:
                yield (row.mechanism, "; ".join(filter(None, (row.adjacency, row.rests_on, row.warning))))
        for row in self:
            if hasattr(row, "reason"):
                yield (row.mechanism, f"no answer: {row.reason}")

    def __repr__(self) -> str:
        lines = list(self._lines())
        widths = [max(len(line[i]) for line in lines if len(line) > i + 1) for i in range(4)]
        # A note takes the room of all columns after the first.
        return "\n".join("  ".join([*map(str.ljust, line[:-1], widths), line[-1]]) for line in lines)

    def _repr_html_(self) -> str:
        rows: dict[str, str] = {}
        for name, *cells in self._lines():
            rows[name] = "; ".join([*filter(None, [rows.get(name)]), *cells])
        return table(rows, "Mechanisms")


def compare(
    n_users: int,
    dimension: int = 1,
    rounds: int = 1,
    delta: float = 1e-6,
    task: str = "mean",
    *,
    epsilon: float | None = None,
    epsilon0: float | None = None,
) -> Comparison:
    """Every mechanism of the five documents for one request, at one budget: epsilon, error, bits, who is trusted.

    Parameters
    ----------
    n_users, dimension, rounds : int
        How many people there are, how many numbers each of them holds, and how often they are asked.
    delta : float
        Of the guarantee after all rounds.
    task : {"mean", "histogram"}
    epsilon, epsilon0 : float
        Exactly one of them: a central budget, or the local budget of one report, at which mechanisms whose reports are
        private by themselves are asked.

    Returns
    -------
    Comparison
        For each mechanism a row, with its lower end where that is known, or the reason why it does not answer.

    Examples
    --------
    >>> compare(n_users=10_000, epsilon0=1.0)[0].mechanism
    'local'
    """
    from flamelib.uses.deployments import Refusal, rows
    from flamelib.uses.lower_bounds import bracketed
    from flamelib.uses.workload import Request

    request = Request(n_users, dimension, rounds, delta, task)
    answers = rows(request, epsilon=epsilon, epsilon0=epsilon0)
    found = [one if isinstance(one, Refusal) else bracketed(one, request) for one in answers]
    return Comparison(sorted(found, key=lambda row: hasattr(row, "reason")))


def audit(
    protocol: Any,
    neighbours: tuple[Any, Any],
    statistic: Callable[[Any], float],
    trials: int,
    confidence: float = 0.95,
    *,
    delta: float = 0.0,
    rng: Any = None,
) -> Any:
    """Certified lower bound on the epsilon of a protocol, from runs on two neighbouring data sets.

    Parameters
    ----------
    protocol : record or callable
        A record as for :func:`account`, or a function of your own that takes data and a generator and returns what an
        observer sees.
    neighbours : pair
        Two data sets that the guarantee compares.
    statistic : callable
        Takes what an observer sees and returns a number, large or small where the first data set is more likely.
    trials : int
        Runs on each data set, at least 2; half of them choose the event that the others are counted for.
    confidence : float
        Probability, over the runs, that the bound is valid, in (0, 1).
    delta : float
        Of the guarantee, in [0, 1].
    rng : numpy.random.Generator, optional
        Left out, it is the generator of seed 0.

    Returns
    -------
    Audit
        ``.epsilon`` and ``.refutes(epsilon)``.

    Examples
    --------
    >>> from flamelib import KaryResponse, Shuffled
    >>> survey = Shuffled(KaryResponse(epsilon0=2.0, n_buckets=2), n_users=5)
    >>> audit(survey, ([0, 0, 0, 0, 0], [1, 0, 0, 0, 0]), lambda seen: seen.sum(), trials=2000).refutes(0.1)
    True
    """
    from flamelib.front.questions import view
    from flamelib.uses.auditing import audit as tried

    run = protocol if callable(protocol) else lambda data, own: view(protocol, data, own)
    return tried(run, neighbours, statistic, trials, confidence, delta=delta, rng=rng)
