"""``make live``: the built book served to this machine, with its notebooks to run.

The command is ``python -m flamebook.site.book.live``.  Nothing is served but what was built and what was run; nothing
runs but the book's own notebooks with checked values.
The requests of pages of other sites are refused: their names, and names that were made to point here, are not ours.
"""

import argparse
import asyncio
import ipaddress
import json
import math
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.template import Template
from tornado.web import Application, HTTPError, RequestHandler, StaticFileHandler

from flamebook.places import FINGERPRINT, ROOT
from flamebook.site.book.build import HTML
from flamebook.site.book.jobs import ACTIVE, Job, Jobs, Limits, QueueFull
from flamelib.core.vocabulary import DomainError

LARGEST_BODY = 64 * 1024
RESULT = r"[a-z0-9_]+/[0-9a-f]{12}"

LIST = Template("""\
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Results kept here</title><style>:root{color-scheme:light dark}
body{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}code{overflow-wrap:anywhere}
th,td{padding:.35rem .7rem;border-bottom:1px solid #8888;text-align:left;vertical-align:top}</style></head><body>
<p><a href="/index.html">The book</a></p><h1>Results kept here</h1>
{% if jobs %}<div class="wide" tabindex="0"><table>
<thead><tr><th scope="col">page</th><th scope="col">values other than the page's</th><th scope="col">result</th>
</tr></thead><tbody>{% for job in jobs %}<tr>
<td><a href="/notebooks/{{ job['notebook'] }}.html">{{ job['notebook'] }}</a></td>
<td>{% for name, value in job['changed'].items() %}<code>{{ name }}={{ value }}</code> {% end %}</td>
<td>{% if job['address'] %}\
<a href="/{{ job['address'] }}">{{ 'sweep' if job['points'] else 'run' }} {{ job['id'] }}</a>\
{% else %}{{ job['state'] }}{% end %}{% if job['told'] %}: {{ job['told'] }}{% end %}</td></tr>{% end %}</tbody>
</table></div>{% else %}<p>Nothing was run yet. Pages with figures have a form: <em>Run this page with other
values</em>.</p>{% end %}</body></html>
""")


class _Guarded(RequestHandler):
    """What every answer needs: a request that was meant for this server, and headers that keep pages apart."""

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Cross-Origin-Resource-Policy", "same-origin")
        self.set_header("Content-Security-Policy", "frame-ancestors 'self'")
        self.set_header("Referrer-Policy", "same-origin")

    def prepare(self) -> None:
        names: set[str] = self.settings["names"]
        if not _ours(urlsplit(f"//{self.request.host}").hostname or "", names):
            raise HTTPError(403, reason="this server goes by another name")
        if self.request.method in ("GET", "HEAD"):
            return
        origin = self.request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != self.request.host:
            raise HTTPError(403, reason="this request comes from another site")
        if self.request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            raise HTTPError(403, reason="this request comes from another site")


def _ours(host: str, names: set[str]) -> bool:
    """A name of this machine, or a number: only names can be made to point somewhere else."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host in names
    return True


class _Files(_Guarded, StaticFileHandler):
    """What was built: no hidden file, nothing above the folder."""

    async def get(self, path: str, include_body: bool = True) -> None:
        if "\0" in path or any(part.startswith(".") for part in path.split("/")):
            raise HTTPError(404)
        await super().get(path, include_body)


class _Results(_Files):
    """What was run.  It is the work of a notebook, so it may ask the server for nothing."""

    def set_default_headers(self) -> None:
        super().set_default_headers()
        policy = "connect-src 'none'; form-action 'none'; base-uri 'none'; object-src 'none'; frame-ancestors 'self'"
        self.set_header("Content-Security-Policy", policy)
        self.set_header("Cache-Control", "no-cache")


class _Api(_Guarded):
    @property
    def jobs(self) -> Jobs:
        found: Jobs = self.settings["jobs"]
        return found

    def told(self, status: int, answer: Any) -> None:
        """Answer with JSON."""
        self.set_status(status)
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(answer))

    def write_error(self, status_code: int, **_: Any) -> None:
        self.told(status_code, {"refused": self._reason})

    def job(self, digest: str) -> Job:
        found = self.jobs.find(digest)
        if found is None:
            raise HTTPError(404, reason="there is no such run")
        return found


class _Live(_Api):
    def get(self) -> None:
        """What the server is; that it answers is what a page wants to know."""
        limits = self.jobs.limits
        self.told(200, {"at_once": limits.at_once, "waiting": limits.waiting, "seconds": limits.seconds})


class _Jobs(_Api):
    def get(self) -> None:
        """What was asked for and what is kept, of one notebook if it is named."""
        jobs = self.jobs.listed(self.get_query_argument("notebook", ""))
        self.told(200, [self.jobs.report(job) for job in jobs[:100]])

    def post(self) -> None:
        """Ask for a run: 202 and its report, 400 and a sentence."""
        if self.request.headers.get("Content-Type", "").partition(";")[0].strip() != "application/json":
            raise HTTPError(415, reason="a request must be JSON")
        try:
            asked = json.loads(self.request.body)
            name, given, swept = asked["notebook"], asked["parameters"], asked.get("sweep", False)
            if not (isinstance(name, str) and isinstance(given, dict) and isinstance(swept, bool)):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise HTTPError(400, reason="a request names notebook, parameters and, for a sweep, sweep") from None
        try:
            job = self.jobs.ask(name, given, swept)
        except DomainError as refusal:
            self.told(400, {"refused": str(refusal)})
        except QueueFull as refusal:
            self.told(503, {"refused": str(refusal)})
        else:
            self.told(202, self.jobs.report(job))


class _Job(_Api):
    def get(self, digest: str) -> None:
        """How a job is doing."""
        self.told(200, self.jobs.report(self.job(digest)))

    async def delete(self, digest: str) -> None:
        """End a job that waits or runs; a result that is there stays."""
        job = self.job(digest)
        if job.state in ACTIVE:
            await self.jobs.cancel(job)
        self.told(200, self.jobs.report(job))


class _List(_Guarded):
    def get(self) -> None:
        """The page of everything that was asked for and everything that is kept."""
        jobs: Jobs = self.settings["jobs"]
        self.set_header("Cache-Control", "no-store")
        self.finish(LIST.generate(jobs=[jobs.report(job) for job in jobs.listed()]))


class _Icon(_Guarded):
    def get(self) -> None:
        """The book's, for pages that name none."""
        self.redirect("/_static/favicon.svg", permanent=True)


class _Nowhere(_Guarded):
    def prepare(self) -> None:
        super().prepare()
        raise HTTPError(404)


def application(root: Path, jobs: Jobs, names: set[str]) -> Application:
    """The book under ``root`` and its runs, for those who call the server by a number or one of these names."""
    built = root / "_build"
    return Application(
        [
            ("/api/live", _Live),
            ("/api/live/jobs", _Jobs),
            ("/api/live/jobs/([0-9a-f]{12})", _Job),
            ("/own/?", _List),
            ("/favicon.ico", _Icon),
            (rf"/own/({RESULT}/.+)", _Results, {"path": str(built / "own")}),
            (rf"/sweeps/({RESULT}/(?:index\.html|sweep\.csv|comparison\.(?:svg|png)))", _Results,
             {"path": str(built / "sweeps")}),
            ("/(.*)", _Files, {"path": str(root / HTML), "default_filename": "index.html"}),
        ],
        default_handler_class=_Nowhere,
        jobs=jobs,
        names=names,
        compress_response=True,
        log_function=lambda handler: None,
    )  # fmt: skip


async def serve(root: Path, host: str, port: int, limits: Limits, stop: asyncio.Event) -> None:
    """Serve until ``stop`` is set, and end every job then."""
    local = host == "localhost" or (_ours(host, set()) and ipaddress.ip_address(host).is_loopback)
    jobs = Jobs(root, limits, local)
    names = {"localhost"} if local else {"localhost", host, socket.gethostname(), socket.getfqdn()}
    server = HTTPServer(application(root, jobs, names), max_body_size=LARGEST_BODY)
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setblocking(False)
    server.add_socket(listening)
    shown = f"[{host}]" if ":" in host else host
    print(f"the book, with its notebooks to run, at http://{shown}:{listening.getsockname()[1]}", flush=True)
    try:
        await stop.wait()
    finally:
        server.stop()
        await jobs.close()


async def _until_stopped(given: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stop.set)
    limits = Limits(seconds=60 * given.minutes, memory_gb=given.memory)
    await serve(ROOT, given.host, given.port, limits, stop)


def _positive(text: str) -> float:
    if not 0 < float(text) < math.inf:
        raise ValueError(text)
    return float(text)


def main(words: Sequence[str]) -> int:
    """Serve the built book until interrupted; status 2 for a refusal."""
    usual = Limits()
    parser = argparse.ArgumentParser(prog="flamebook.site.book.live", description=main.__doc__)
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine; others see the book then")
    parser.add_argument("--minutes", type=_positive, default=usual.seconds / 60, help="what one run may take")
    parser.add_argument("--memory", type=_positive, default=usual.memory_gb, help="gigabytes that a process may map")
    given = parser.parse_args(words)
    if not (ROOT / HTML / FINGERPRINT).is_file():
        print(f"there is no built book in {ROOT / HTML}: run `make book` first", file=sys.stderr)
        return 2
    try:
        asyncio.run(_until_stopped(given))
    except (OSError, OverflowError) as fault:
        print(f"host and port must be free to listen at, got {given.host}:{given.port} ({fault})", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
