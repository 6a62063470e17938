"""The served book with its jobs: a real server, a real notebook, real processes, and requests that mean no good."""

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest
import templates
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from flamebook.places import ROOT
from flamebook.runs import notebook
from flamebook.site.book import live
from flamebook.site.book.jobs import Jobs, Limits

PARAMETERS = """\
n_users: int = 1000  # users
epsilon0: float = 1.0  # local budget
label: str = "plain"  # a word
seed: int = 0  # pause in tenths of a second
"""
BODY = """\
import json, os, time
from pathlib import Path
time.sleep(seed / 10)
if n_users == 13: raise ValueError("thirteen is refused")
Path(os.environ["FLAMELIB_RUN_FOLDER"], "results.json").write_text(json.dumps({"scaled": n_users * epsilon0}))
label
"""
NOTHING = {"notebook": "tiny", "parameters": {}}
JSON = {"Content-Type": "application/json"}


def write_notebook(path: Path) -> None:
    """A notebook of three cells, one of which takes its time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(templates.notebook(PARAMETERS, BODY, "1 + 1", text="# Tiny")))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with one notebook and a built book of one page."""
    write_notebook(tmp_path / "notebooks" / "tiny.ipynb")
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "html" / "index.html").write_text("<p>The book</p>")
    (tmp_path / "_build" / "html" / ".hidden").write_text("hidden")
    (tmp_path / "_build" / "secret").write_text("secret")
    return tmp_path


class Served:
    """A server in this process, and a reader of it."""

    def __init__(self, root: Path, jobs: Jobs) -> None:
        self.root, self.jobs = root, jobs
        socket, self.port = bind_unused_port()
        self.server = HTTPServer(live.application(root, jobs, {"localhost"}), max_body_size=live.LARGEST_BODY)
        self.server.add_sockets([socket])

    async def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> HTTPResponse:
        """One request, whatever comes of it."""
        text = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        said = ({} if text is None else JSON) | {name.replace("_", "-"): value for name, value in headers.items()}
        request = HTTPRequest(f"http://127.0.0.1:{self.port}{path}", method, said, text, request_timeout=60)
        try:
            return await AsyncHTTPClient(force_instance=True).fetch(request, raise_error=False)
        except HTTPClientError as fault:  # the connection was closed
            return HTTPResponse(request, fault.code)

    async def run(self, swept: bool = False, **given: Any) -> dict[str, Any]:
        """Ask for a run of the tiny notebook."""
        answer = await self.ask("/api/live/jobs", "POST", {"notebook": "tiny", "parameters": given, "sweep": swept})
        assert answer.code == 202, answer.body
        found: dict[str, Any] = json.loads(answer.body)
        return found

    async def until(self, job: dict[str, Any], *states: str) -> dict[str, Any]:
        """Wait until a job is in one of these states."""
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            found: dict[str, Any] = json.loads((await self.ask(f"/api/live/jobs/{job['id']}")).body)
            if found["state"] in states:
                return found
            await asyncio.sleep(0.1)
        raise AssertionError(f"still {found}")


@contextlib.asynccontextmanager
async def served(root: Path, limits: Limits = Limits(), local: bool = True) -> AsyncIterator[Served]:  # noqa: B008
    """A server that ends with its jobs."""
    jobs = Jobs(root, limits, local)
    one = Served(root, jobs)
    try:
        yield one
    finally:
        one.server.stop()
        await jobs.close()


def play(root: Path, story: Callable[[Served], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Tell a story to a server and leave no process behind."""

    async def whole() -> None:
        async with served(root, **settings) as one:
            await story(one)

    asyncio.run(whole())
    assert at_work(root) == []


def at_work(root: Path) -> list[str]:
    """Processes that have to do with a checkout."""
    found = []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if one.pid != os.getpid() and one.cwd().startswith(str(root)) and one.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(one.cmdline()))
    return found


def half_written(root: Path) -> list[Path]:
    """Hidden folders that a run works in."""
    return list((root / "_build").glob("own/**/.*"))


def test_from_a_request_to_a_page_and_never_twice(root: Path) -> None:
    asked = {"n_users": 2000, "label": "<script>alert(1)</script><img src=x onerror=alert(1)>"}

    async def story(server: Served) -> None:
        job = await server.run(**asked | {"n_users": "2e3"})
        assert job["id"] == notebook.digest(
            root / "notebooks" / "tiny.ipynb", {"n_users": 2000, "epsilon0": 1.0, "label": asked["label"], "seed": 0}
        )
        assert job["changed"]["n_users"] == "2000"
        done = await server.until(job, "done", "failed")
        assert done["address"] == f"own/tiny/{job['id']}/tiny.html", done
        page = await server.ask(f"/{done['address']}")
        assert page.code == 200
        assert "connect-src 'none'" in page.headers["Content-Security-Policy"]
        made = (root / "_build" / done["address"]).stat().st_mtime_ns
        assert json.loads((root / "_build" / "own" / "tiny" / job["id"] / "results.json").read_text()) == {
            "scaled": 2000.0
        }
        again = await server.run(**asked)
        assert (again["id"], again["state"]) == (job["id"], "done")
        assert (root / "_build" / done["address"]).stat().st_mtime_ns == made
        listed = (await server.ask("/own/")).body
        assert done["address"].encode() in listed
        assert b"&lt;script&gt;alert" in listed + page.body
        assert not re.findall(rb"<script>alert|<img src=x", listed + page.body), "a text is no markup"

    async def later(server: Served) -> None:
        (kept,) = json.loads((await server.ask("/api/live/jobs?notebook=tiny")).body)
        assert (kept["state"], kept["changed"]["n_users"]) == ("done", "2000")
        assert (await server.run(**asked))["state"] == "done"
        (root / "notebooks" / "tiny.ipynb").write_text(
            (root / "notebooks" / "tiny.ipynb").read_text().replace("1 + 1", "3")
        )
        assert (await server.run(**asked))["state"] != "done", "made from what no longer lies there"

    play(root, story)
    play(root, later)


def test_two_at_once_the_third_waits_and_the_fourth_is_one_too_many(root: Path) -> None:
    async def story(server: Served) -> None:
        first, second = [await server.run(seed=600 + at) for at in range(2)]
        for job in (first, second):
            await server.until(job, "running")
        third = await server.run(seed=602)
        assert (third["state"], third["place"]) == ("queued", 1)
        assert (await server.run(seed=602))["id"] == third["id"], "two readers, one job"
        full = await server.ask("/api/live/jobs", "POST", {"notebook": "tiny", "parameters": {"seed": 603}})
        assert (full.code, b"waiting" in full.body) == (503, True)
        while (await server.until(first, "running"))["done"] == 0:
            await asyncio.sleep(0.1)
        assert len(half_written(root)) >= 2
        began = at_work(root)
        assert sum("ipykernel" in words for words in began) == 2
        gone = json.loads((await server.ask(f"/api/live/jobs/{first['id']}", "DELETE")).body)
        assert gone["state"] == "cancelled"
        await server.until(third, "running")
        assert [path for path in half_written(root) if first["id"] in path.name] == []
        assert (await server.run(seed=600))["state"] == "queued", "what was cancelled may be asked for again"

    play(root, story, limits=Limits(waiting=1))
    assert half_written(root) == []


def test_what_fails_or_takes_too_long_says_so(root: Path) -> None:
    async def story(server: Served) -> None:
        told = await server.until(await server.run(n_users=13), "failed", "partly", "done")
        assert (told["state"], told["told"], told["address"]) == ("failed", "ValueError: thirteen is refused", "")
        again = await server.run(n_users=13)
        assert (again["state"], again["told"]) == ("failed", told["told"]), "nothing was computed, whoever asks"
        results = root / "_build" / "own" / "tiny" / told["id"] / "results.json"
        results.write_text('{"scaled": 13.0}')
        assert (await server.run(n_users=13))["state"] == "partly"

    async def slow(server: Served) -> None:
        told = await server.until(await server.run(seed=600), "failed", "done")
        assert "stopped after 0.05 minutes" in told["told"]

    play(root, story)
    play(root, slow, limits=Limits(seconds=3))


def test_a_run_that_asks_for_too_much_memory_fails(root: Path) -> None:
    path = root / "notebooks" / "tiny.ipynb"
    path.write_text(path.read_text().replace("1 + 1", "len(bytes(8 * 2**30))"))

    async def story(server: Served) -> None:
        job = await server.until(await server.run(), "failed", "partly", "done")
        page = root / "_build" / "own" / "tiny" / job["id"] / "tiny.html"
        assert "MemoryError" in job["told"] or "MemoryError" in page.read_text()

    play(root, story, limits=Limits())


REFUSED: list[tuple[Any, int, str]] = [
    ({"notebook": "nothing", "parameters": {}}, 400, "notebook must be one of tiny"),
    ({"notebook": "../notebooks/tiny", "parameters": {}}, 400, "notebook must be one of tiny"),
    ({"notebook": "tiny", "parameters": {"bogus": 1}}, 400, "bogus"),
    ({"notebook": "tiny", "parameters": {"n_users": "1"}}, 400, "n_users must be a whole number in"),
    ({"notebook": "tiny", "parameters": {"n_users": {"a": 1}}}, 400, "n_users must be"),
    ({"notebook": "tiny", "parameters": {"label": ["a"]}}, 400, "label must be a text"),
    (b'{"notebook": "tiny", "parameters": {"epsilon0": NaN}}', 400, "epsilon0 must be a number in"),
    (b'{"notebook": "tiny", "parameters": {"n_users": ' + b"9" * 5000 + b"}}", 400, "a request names"),
    (b"[" * 50_000, 400, "a request names"),
    ({"notebook": "tiny", "parameters": {}, "sweep": True}, 400, "some parameter must have several values"),
    ({"notebook": "tiny", "parameters": {"seed": ",".join(map(str, range(51)))}, "sweep": True}, 400, "51 points"),
    ({"notebook": ["tiny"], "parameters": {}}, 400, "a request names"),
    ([], 400, "a request names"),
    (b"", 400, "a request names"),
]


def test_hostile_requests_start_nothing(root: Path) -> None:
    async def story(server: Served) -> None:
        for body, code, words in REFUSED:
            answer = await server.ask("/api/live/jobs", "POST", body)
            assert (answer.code, words in json.loads(answer.body)["refused"]) == (code, True), (body, answer.body)
        here = f"127.0.0.1:{server.port}"
        for headers, code in (
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": f"http://127.0.0.1:{server.port + 1}"}, 403),
            ({"Host": "evil.example"}, 403),
            ({"Host": f"evil.example:{server.port}", "Origin": f"http://evil.example:{server.port}"}, 403),
            ({"Sec_Fetch_Site": "cross-site"}, 403),
            ({"Content_Type": "text/plain"}, 415),
            ({"Content_Type": "application/x-www-form-urlencoded", "Origin": f"http://{here}"}, 415),
        ):
            assert (await server.ask("/api/live/jobs", "POST", NOTHING, **headers)).code == code, headers
        assert (await server.ask("/index.html", Host="evil.example")).code == 403
        assert (await server.ask("/api/live", Host="localhost")).code == 200
        assert (await server.ask("/api/live/jobs", "POST", b" " * (live.LARGEST_BODY + 1))).code in (400, 599)
        assert json.loads((await server.ask("/api/live/jobs")).body) == []
        assert not (root / "_build" / "own").exists()

    play(root, story)


def test_only_what_was_built_is_served(root: Path) -> None:
    kept = root / "_build" / "own" / "tiny" / "0123456789ab"
    kept.mkdir(parents=True)
    (kept / "tiny.html").write_text("a page")
    (kept / ".hidden").write_text("hidden")
    (kept.parent / ".0123456789ab.part-x").mkdir()
    (kept.parent / ".0123456789ab.part-x" / "tiny.html").write_text("half")

    async def story(server: Served) -> None:
        assert (await server.ask("/")).body == b"<p>The book</p>"
        assert (await server.ask("/own/tiny/0123456789ab/tiny.html")).body == b"a page"
        for path in (
            "/.hidden", "/../secret", "/%2e%2e/secret", "/..%2fsecret", "/own/tiny/0123456789ab/.hidden", "/secret",
            "/own/tiny/0123456789ab/../../../secret", "/own/tiny/0123456789ab/%2e%2e/%2e%2e/%2e%2e/secret",
            "/own/tiny/.0123456789ab.part-x/tiny.html", "/own/tiny/0123456789ab/%00", "/notebooks/tiny.ipynb",
            "/sweeps/tiny/0123456789ab/../../../secret", "/%2fetc/passwd",
            "/api/live/jobs/..%2f..", "/api/live/jobs/ffffffffffff",
        ):  # fmt: skip
            answer = await server.ask(path)
            assert answer.code in (400, 403, 404), path
            assert b"secret" not in (answer.body or b""), path

    play(root, story)


def test_data_that_cannot_be_read_are_refused_at_once(root: Path) -> None:
    tiny = root / "notebooks" / "tiny.ipynb"
    tiny.write_text(tiny.read_text().replace('label: str = \\"plain\\"', 'dataset: str = \\"digits\\"'))
    (root / "mine.npz").write_bytes(b"no data")

    async def story(server: Served) -> None:
        for name, told in (("/etc/passwd", "must be one of"), (str(root / "mine.npz"), "is not a readable .npz file")):
            for body in ({"dataset": name}, {"dataset": name, "seed": 1}):
                answer = await server.ask("/api/live/jobs", "POST", {"notebook": "tiny", "parameters": body})
                assert (answer.code, told in json.loads(answer.body)["refused"]) == (400, True), answer.body

    async def open_to_others(server: Served) -> None:
        for name in (str(root / "mine.npz"), str(root / "none.npz")):
            answer = await server.ask("/api/live/jobs", "POST", {"notebook": "tiny", "parameters": {"dataset": name}})
            assert "dataset must be a name, no file" in json.loads(answer.body)["refused"], "nor is it told which exist"

    play(root, story)
    play(root, open_to_others, local=False)


def test_make_live_looks_at_its_place_before_it_builds_anything(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    make = ["make", "live", "HOST=192.0.2.1", f"PYTHON={sys.executable}"]
    done = subprocess.run(make, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("HOST and PORT must be an address of this machine and a free port in 0..65535, got ")
    assert done.stdout == ""
    assert not (tmp_path / ".venv").exists()


def test_a_server_that_is_killed_leaves_no_process_and_nothing_half_written(root: Path) -> None:
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom flamebook.site.book import live\n"
        "asyncio.run(live.serve(Path(sys.argv[1]), '127.0.0.1', 0, live.Limits(), asyncio.Event()))"
    )
    places = os.pathsep.join([str(ROOT), str(ROOT / "book")])
    server = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": places},
    )  # fmt: skip
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]

    async def begin() -> None:
        for seed in (600, 601):
            body = json.dumps({"notebook": "tiny", "parameters": {"seed": seed}})
            await AsyncHTTPClient().fetch(f"{address}/api/live/jobs", method="POST", headers=JSON, body=body)

    asyncio.run(begin())
    _wait(lambda: sum("ipykernel" in words for words in at_work(root)) == 2 and len(half_written(root)) >= 2)
    server.send_signal(signal.SIGKILL)
    server.communicate()
    _wait(lambda: at_work(root) == [] and half_written(root) == [])
    assert list((root / "_build").glob("own/tiny/*")) == []


def _wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)
