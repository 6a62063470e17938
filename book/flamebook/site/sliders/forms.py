"""What can be filled in on a page: the form of a notebook's parameters, and the panels of figures that move.

The form is plain HTML that ``live.js`` brings to life: it makes the command, the file of parameters and, where the page
comes from ``make live``, the run itself.  Domains are said in the words that a refusal uses; the run checks again.
"""

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flamebook.runs.execute import RECEIPT, receipt_of
from flamebook.runs.notebook import Declared, conditions, declared, typed
from flamebook.site.sliders.figures import Figure
from flamelib.core.vocabulary import Domain
from flamelib.learning.datasets import listing

_DATA = "own-data-sets"


def form(page: Path, template: Path, binder: str = "") -> str:
    """The form of a page, as HTML; empty where the notebook declares nothing.

    Parameters
    ----------
    page : Path
        The executed notebook, whose parameters cell holds the values of the page.
    template : Path
        The notebook that is run again, whose parameters cell holds the defaults.
    binder : str
        Address at which Binder opens the notebook, if the book has one.
    """
    here, defaults = declared(page), declared(template)
    if not here:
        return ""
    fields = "\n".join(_field(one, defaults.get(name, one).default) for name, one in here.items())
    sets = "".join(f'<option value="{entry.name}"></option>' for entry in listing())
    name = html.escape(page.stem)
    opened = f'; or <a id="own-binder" href="{html.escape(binder)}">open the notebook on Binder</a>'
    launched = f"{opened} and give the command in a terminal there" if binder else ""
    return f"""\
<link rel="stylesheet" href="../_static/live.css">
<details class="fl-own" id="own" data-notebook="{name}" data-jointly={_data(conditions(template))}>\
<summary>Run this page with other values</summary>
<form class="fl-own-form" autocomplete="off" spellcheck="false" novalidate>
<p id="own-time"></p>
<div class="fl-own-fields">
{fields}
</div>
<datalist id="{_DATA}">{sets}</datalist>
<label class="fl-own-vary"><input type="checkbox" name="own-vary"> Vary: take several values of a field, separated by \
commas (lists by semicolons), and run every combination</label>
<p><button type="reset">Back to the page's values</button></p>
<p id="own-refusal" role="alert"></p>
<div id="own-here" hidden><button type="submit">Run it here</button> <a id="own-all">All results kept here</a>
<ul id="own-jobs" aria-live="polite"></ul></div>
<p>In a clone of the repository: <code id="own-command"></code> <button type="button" id="own-copy">Copy</button></p>
<p id="own-more"><button type="button" id="own-file">Parameters as a file</button>\
<span id="own-papermill"> for <code>papermill notebooks/{name}.ipynb mine.ipynb -f {name}.yml</code></span>\
{launched}. <a href="../files/{name}/receipt.json" download>Receipt</a> of the page's own run: \
digests, versions, seed and time.</p>
</form></details>
<script src="../_static/run_times.js" defer></script><script src="../_static/live.js" defer></script>
"""


def _field(one: Declared, default: Any) -> str:
    place, told = f"own-{one.name}", f"own-{one.name}-told"
    domain = one.domain.rpartition(", each ")[2]  # of one entry, as a refusal says it
    known = _data({"kind": one.element, "list": one.several, "domain": domain} | _bounds(one))
    words = html.escape(f"{one.about}; {one.domain}; here {typed(one.default)}")
    sets = f' list="{_DATA}"' if one.name.endswith("dataset") else ""
    return (
        f'<div><label for="{place}"><code>{one.name}</code></label>'
        f'<input id="{place}" name="{one.name}" value="{html.escape(typed(one.default))}"{sets}'
        f' data-default="{html.escape(typed(default))}"'
        f' data-known={known} aria-describedby="{told}"><small id="{told}">{words}</small></div>'
    )


def _data(value: Any) -> str:
    """An attribute's value, within single quotes, for it is full of double ones."""
    text = html.escape(json.dumps(value, separators=(",", ":")), quote=False)
    return "'" + text.replace("'", "&#39;") + "'"


def _bounds(one: Declared) -> dict[str, Any]:
    """What a browser can check of a domain."""
    domain = one.one or Domain("")
    found: dict[str, Any] = {"whole": domain.whole}
    for end in ("low", "high"):
        bound = getattr(domain, end)
        if abs(bound) != float("inf"):
            found |= {end: bound, f"open_{end}": getattr(domain, f"open_{end}")}
    found |= {"least": domain.least} if domain.least else {}
    return found | ({"choices": list(domain.choices)} if domain.choices else {})


def panel(figure: Figure) -> str:
    """What stands below a figure that moves until somebody opens it; ``sliders_figures.js`` fills it then.

    >>> from flamebook.site.sliders.figures import BLANKET
    >>> panel(BLANKET)[:55]
    '<details class="fl-card fl-move" data-figure="blanket">'
    """
    told = f"<summary>Move the parameters: {html.escape(figure.title)}</summary>"
    without = "<noscript><p>This needs JavaScript; <code>flamelib evaluate</code> computes the same.</p></noscript>"
    return f'<details class="fl-card fl-move" data-figure="{figure.name}">{told}{without}</details>\n'


def binder_address(settings: Mapping[str, Any], name: str) -> str:
    """Where Binder opens a notebook of the book with these settings of the theme; empty where it has no address.

    >>> theme = {"repository_url": "https://github.com/o/r", "repository_branch": "main"}
    >>> binder_address(theme | {"launch_buttons": {"binderhub_url": "https://hub"}}, "ask")
    'https://hub/v2/gh/o/r/main?urlpath=lab/tree/notebooks/ask.ipynb'
    >>> binder_address(theme, "ask")
    ''
    """
    hub = settings.get("launch_buttons", {}).get("binderhub_url", "")
    site, _, place = settings.get("repository_url", "").partition("github.com/")
    if not (hub and site and place):
        return ""
    return f"{hub}/v2/gh/{place}/{settings['repository_branch']}?urlpath=lab/tree/notebooks/{name}.ipynb"


def times(runs_folder: Path) -> str:
    """A script with the seconds of every run of the book; pages read it, so that they themselves carry no times."""
    receipts = (receipt_of(path.parent) for path in sorted(runs_folder.glob(f"*/{RECEIPT}")))
    found = {receipt.notebook: receipt.seconds for receipt in receipts if receipt}
    return f"const flamebookTimes = {json.dumps(found)};\n"
