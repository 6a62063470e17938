/* Figures that move in place: a panel below a figure of the book, whose sliders redraw its curves there.
 *
 * Nothing is loaded before a reader opens a panel, or follows a link to one.  What it then shows at once was computed by
 * the same functions when the book was built; Python starts meanwhile. */
"use strict";

(() => {
  const BASE = new URL(".", document.currentScript.src).href;
  const panels = new Map([...document.querySelectorAll(".fl-move")].map((box) => [box.dataset.figure, box]));
  const make = (kind, content = [], told = {}) => {
    const element = Object.assign(document.createElement(kind), told);
    element.append(...content);
    return element;
  };

  const added = (element) =>
    new Promise((done, failed) => {
      Object.assign(element, { onload: done, onerror: () => failed(new Error("this copy of the book lacks what the figure needs")) });
      document.head.append(element);
    });

  let brought = null;
  /** What every panel needs; its own facts come with the others'. */
  const bring = () =>
    (brought ??= Promise.all([
      added(make("link", [], { rel: "stylesheet", href: `${BASE}sliders.css` })),
      ...["sliders_python.js", "sliders_chart.js"].map((name) => added(make("script", [], { src: BASE + name }))),
    ]).then(() => flamelibSliders.told("figures")));

  /* The address: #move=FIGURE&name=value&... */

  function asked() {
    const words = new URLSearchParams(location.hash.slice(1));
    return panels.has(words.get("move")) ? words : null;
  }

  /** One slider: its parameter's value, told by its place, by its words, and set from either. */
  function control(figure, told, moved) {
    const { written, tidy } = flamelibSliders;
    const id = `${figure.name}-${told.name}`;
    const few = told.choices.length ? told.choices : null;
    const to = (value) => (told.log ? Math.log10(value) : value);
    const from = (exponent) => (told.log ? tidy(told.whole, 10 ** exponent) : exponent);
    const [low, high] = [to(told.low), to(told.high)];
    const steps = few ? few.length - 1 : told.log ? 200 : high - low;
    const slider = make("input", [], { type: "range", id, min: 0, max: steps });
    const output = make("output");
    output.htmlFor = id;
    let value = told.start;
    const show = () => {
      output.textContent = written(value);
      slider.setAttribute("aria-valuetext", written(value));
    };
    const set = (wanted) => {
      const inside = Math.min(told.high, Math.max(told.low, wanted));
      const nearest = (one) => Math.abs(to(one) - to(inside));
      value = few ? few.reduce((best, one) => (nearest(one) < nearest(best) ? one : best)) : told.whole ? Math.round(inside) : inside;
      slider.value = few ? few.indexOf(value) : ((to(value) - low) / (high - low)) * steps;
      show();
    };
    slider.addEventListener("input", () => {
      const place = Number(slider.value);
      value = few ? few[place] : { 0: told.low, [steps]: told.high }[place] ?? from(low + ((high - low) * place) / steps);
      show();
      moved();
    });
    const label = make("label", [told.label], { htmlFor: id });
    set(told.start);
    return { name: told.name, set, value: () => value, element: make("div", [label, output, slider], { className: "fl-control" }) };
  }

  function panel(box, facts) {
    const figure = facts.figures[box.dataset.figure];
    const controls = [figure.x, ...figure.sliders].map((told) => control(figure, told, moved));
    const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    chart.setAttribute("role", "img");
    const status = make("p", [], { className: "fl-note" });
    status.setAttribute("role", "status");
    const caption = make("caption");
    const rows = new Map(figure.curves.map((one) => [one.key, row(one)]));
    const table = make("table", [caption, make("tbody", [...rows.values()].map((one) => one.line))], { className: "fl-values" });
    const link = make("a", ["Link to these values"]);
    const csv = make("button", ["Download the curves as CSV"], { type: "button" });
    const again = make("button", ["Start values"], { type: "button" });
    const notebook = Object.keys(figure.words).length ? make("a", ["Run the notebook with these values"]) : "";
    const plot = make("figure", [chart], { className: "fl-plot" });
    const form = make("form", controls.map((one) => one.element), { className: "fl-moves", onsubmit: () => false });
    form.setAttribute("aria-label", `Parameters of: ${figure.title}`);
    box.append(form, status, plot, table, make("p", [link, csv, again, notebook], { className: "fl-options" }));

    let put = null; // a message to the library
    let why = "Starting Python in this page …";
    let shown = figure.opens;
    let wanted = false;
    let waiting = 0;

    function row(one) {
      const title = make("th", [one.words], { scope: "row" });
      const sample = make("span");
      flamelibChart.sample(sample, one);
      title.prepend(sample);
      const [value, where] = [make("td", [], { className: "fl-value" }), make("td")];
      return { line: make("tr", [title, value, where]), value, where };
    }

    const inputs = () => Object.fromEntries(controls.map((one) => [one.name, one.value()]));
    const words = () => [figure.x, ...figure.sliders].map((told, at) => `${told.symbol} = ${flamelibSliders.written(controls[at].value())}`).join(", ");

    /** Everything that follows from the values but the curves. */
    function follow() {
      const hash = `#${new URLSearchParams({ move: figure.name, ...inputs() })}`;
      link.href = hash;
      if (!notebook) return hash;
      const given = { ...figure.fixed, ...inputs() };
      const fields = Object.entries(figure.words).map(([name, here]) => [name, flamelibSliders.written(given[here])]);
      const top = new URL(document.documentElement.dataset.content_root ?? "../", location.href);
      notebook.href = `${new URL(`${figure.notebook}.html`, top).href}?${new URLSearchParams(fields)}#own`;
      return hash;
    }

    function moved() {
      wanted = true;
      box.dataset.live = "moved";
      clearTimeout(waiting);
      waiting = setTimeout(answer, 30);
    }

    function answer() {
      const hash = follow();
      if (wanted) history.replaceState(null, "", hash);
      if (wanted && put) {
        const reply = put({ want: "figure", figure: figure.name, inputs: inputs() });
        shown = reply.found;
        if (reply.refused) why = reply.refused;
      }
      box.dataset.live = put ? "live" : "waiting";
      draw();
    }

    function draw() {
      const current = put || !wanted;
      plot.classList.toggle("fl-stale", !current);
      if (shown) flamelibChart.draw(chart, figure, shown.curves, controls[0].value());
      chart.setAttribute("aria-label", `Chart: ${figure.title}. The values at the mark are in the table below.`);
      caption.textContent = `At ${words()}${figure.always && `; always ${figure.always}`}`;
      for (const [key, { value, where }] of rows) {
        const told = current ? (shown?.marked[key] ?? {}) : {};
        value.textContent = told.shown ?? (current ? "—" : "…");
        where.textContent = told.refused ?? [{ upper: "upper bound", lower: "lower bound", exact: "exact", value: "a formula's value, no bound" }[told.gives], told.at ? `computed at ${told.at}` : ""].filter(Boolean).join(", ");
        where.title = told.command ?? "";
      }
      status.textContent = current && put ? `Computed for ${words()} by flamelib itself, in this page.` : why;
    }

    function download() {
      const names = [...controls.slice(1).map((one) => one.name), ...Object.keys(figure.fixed)];
      const others = names.map((name) => ({ ...figure.fixed, ...inputs() })[name]);
      const lines = [["curve", "statement", "gives", ...names, figure.x.name, "value"]];
      for (const one of figure.curves) {
        const { x, y, gives } = shown.curves[one.key];
        x.forEach((at, index) => y[index] !== null && lines.push([`"${one.words}"`, one.statement, gives, ...others, at, y[index]]));
      }
      const text = lines.map((line) => `${line.join(",")}\n`).join("");
      const file = make("a", [], { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: `${figure.name}.csv` });
      file.click();
      setTimeout(() => URL.revokeObjectURL(file.href), 1000);
    }

    function restore() {
      const given = asked();
      if (given?.get("move") !== figure.name) return;
      for (const one of controls) if (given.has(one.name) && Number(given.get(one.name)) > 0) one.set(Number(given.get(one.name)));
      moved();
    }

    csv.addEventListener("click", download);
    again.addEventListener("click", () => {
      [figure.x, ...figure.sliders].forEach((told, at) => controls[at].set(told.start));
      moved();
    });
    addEventListener("hashchange", restore);
    addEventListener("resize", () => draw());
    answer();
    restore();
    // What can be seen at once is painted before Python keeps the browser busy.
    requestAnimationFrame(() => setTimeout(begin));

    const begin = () => flamelibSliders.start(facts.runtime).then(
      (started) => {
        put = started;
        answer();
      },
      (fault) => {
        why = `Python could not be started here (${fault.message}), so that the figure stays at its start values.`;
        for (const one of controls) one.element.querySelector("input").disabled = true;
        [figure.x, ...figure.sliders].forEach((told, at) => controls[at].set(told.start));
        wanted = false;
        answer();
      },
    );
  }

  async function open(box) {
    if (!box.open || box.dataset.live) return;
    box.dataset.live = "loading";
    try {
      panel(box, await bring());
    } catch (fault) {
      box.append(make("p", [fault.message], { className: "fl-note" }));
    }
  }

  function follow() {
    const box = panels.get(asked()?.get("move"));
    if (!box) return;
    box.open = true;
    box.scrollIntoView();
  }

  for (const box of panels.values()) box.addEventListener("toggle", () => open(box));
  addEventListener("hashchange", follow);
  follow();
})();
