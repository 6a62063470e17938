"""What runs and accounts cost, from the records: for the page "Speed, cost, and other software"."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from flamebook.runs import recorded
from flamebook.runs.recorded import Row


def section() -> str:
    """Both tables in MyST."""
    about = recorded.provenance("growth.csv")
    told = (
        "The largest crowd of which a run and an account ended within "
        f"{about['limits']['seconds']} s and {about['limits']['megabytes']} MB, with the processor time and the memory "
        f"beyond that of the program itself; {about['standing']['dimension']:,} coordinates or buckets, one round. "
        f"Recorded on {about['date']} ({about['machine']}); the whole record, with rounds and coordinates as well, "
        "is `data/results/growth.csv`.\n"
    )
    costs, times = recorded.rows("growth.csv"), recorded.rows("benchmarks.csv")
    return "\n".join(["## What a run costs", "", told, *growth(costs), "", *speeds(times)])


def growth(rows: Iterable[Row]) -> Iterator[str]:
    """One line a protocol: the largest crowd of a run and of an account, and what they took."""
    ended = [row for row in rows if row["axis"] == "users" and row["seconds"] and not row["ended"]]
    largest = {(row["protocol"], row["question"]): row for row in ended}  # rows stand from the smallest crowd up
    yield "| protocol | users of a run | time | memory | users of an account | time |"
    yield "|---|--:|--:|--:|--:|--:|"
    for protocol in dict.fromkeys(row["protocol"] for row in ended):
        run, account = largest[protocol, "run"], largest[protocol, "account"]
        yield (
            f"| {protocol} | {int(run['size']):,} | {float(run['seconds']):.2g} s | {float(run['megabytes']):,.0f} MB "
            f"| {int(account['size']):,} | {1000 * float(account['seconds']):.0f} ms |"
        )


def speeds(rows: Iterable[Row]) -> Iterator[str]:
    """What `make bench` measured, one folded table a subject, the machine above them all."""
    machines = "; ".join(dict.fromkeys(row["machine"] for row in rows))
    yield from ("## Speed", "", f"Recorded by `make bench`: the median of several rounds. Measured on: {machines}.", "")
    for subject, some in groupby(rows, itemgetter("subject")):
        lines = [f"| {row['what']} | {row['median']} | {row['rounds']} |" for row in some]
        yield from (f":::{{dropdown}} {subject}: {len(lines)} measured", "", "| what | median | rounds |")
        yield from ("|---|--:|--:|", *lines, ":::", "")
