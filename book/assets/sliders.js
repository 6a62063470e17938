/* The page of sliders: parameters and a target in, the library's own answers out.  Without Python in the page the controls
 * step through a grid of values that were computed when the book was built. */
"use strict";

(() => {
  const { number, tidy, written } = flamelibSliders;
  const NAMES = [...document.querySelectorAll(".fl-sliders input[name]")].map((field) => field.name);
  const WORDS = {
    kary: "k-ary response",
    laplace: "Laplace",
    any: "any ε₀-LDP",
    binary: "binary response",
    coordinate: "one coordinate, Laplace",
    padded: "one coordinate, k-ary",
    vector: "a vector, Laplace",
    round: "one round",
    rounds: "T rounds",
    target: "T rounds of ε each",
    sums: "noisy sums",
    shares: "split and mix",
  };
  const SYMBOLS = { mass: "γ", epsilon: "ε", delta: "δ", divergence: "Rényi", distance: "distance", messages: "messages", bits: "bits", noise_bound: "error" };
  const GIVES = { upper: "upper bound", exact: "exact", lower: "lower bound", value: "value" };
  const $ = (id) => document.getElementById(`fl-${id}`);
  let facts = null;
  let put = null; // a message to the library
  let mode = "starting"; // starting | live | grid
  let found = {};

  /* Controls */

  const values = () => Object.fromEntries(NAMES.map((name) => [name, $(name).value.trim()]));

  const nearest = (axis, value) =>
    axis.reduce((best, at, index) => (Math.abs(Math.log(at / value)) < Math.abs(Math.log(axis[best] / value)) ? index : best), 0);

  function fromSlider(name) {
    const position = Number($(`${name}-slider`).value);
    $(name).value = written(mode === "grid" ? facts.axes[name][position] : tidy(facts.whole.includes(name), 10 ** position));
  }

  function toSlider(name) {
    const slider = $(`${name}-slider`);
    const value = number($(name).value);
    if (value > 0) slider.value = mode === "grid" ? nearest(facts.axes[name], value) : Math.log10(value);
    slider.setAttribute("aria-valuetext", $(name).value);
  }

  function snap(name) {
    const value = number($(name).value);
    const axis = facts.axes[name];
    $(name).value = written(axis[value > 0 ? nearest(axis, value) : 0]);
  }

  function intoGrid(reason) {
    mode = "grid";
    for (const name of NAMES) {
      Object.assign($(`${name}-slider`), { min: 0, max: facts.axes[name].length - 1, step: 1 });
      snap(name);
      toSlider(name);
    }
    say(`${reason} The controls step through a grid of values computed by the same functions when the book was built.`);
  }

  /* Address */

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of NAMES) if (given.has(name)) $(name).value = given.get(name);
  }

  function writeAddress(inputs) {
    const hash = `#${new URLSearchParams(inputs)}`;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  /* Answers */

  function looked(row, inputs) {
    let at = 0;
    for (const name of row.needs) {
      const index = facts.axes[name].indexOf(number(inputs[name]));
      if (index < 0) return undefined;
      at = at * facts.axes[name].length + index;
    }
    const value = facts.grid[row.key][at];
    if (value !== null) return { value };
    return { refused: row.recorded ? "not a point of the recorded grid" : "outside the regime of the statement" };
  }

  function answered(inputs) {
    if (mode === "live") return put({ want: "answers", inputs });
    return { found: Object.fromEntries(facts.rows.map((row) => [row.key, looked(row, inputs)])) };
  }

  function update() {
    const inputs = values();
    NAMES.forEach(toSlider);
    const reply = answered(inputs);
    found = reply.found ?? {};
    $("refusal").textContent = reply.refused ?? "";
    for (const name of NAMES) {
      const wrong = reply.refused?.startsWith(`${name} `) ?? false;
      $(name).setAttribute("aria-invalid", wrong);
    }
    if (!reply.refused) writeAddress(inputs);
    facts.rows.forEach((row) => show(row, found[row.key]));
    document.documentElement.dataset.sliders = mode;
    drawLater(inputs, !reply.refused);
  }

  /* Table */

  /** Six digits, rounded to the safe side: an upper bound is never shown too small, a lower one never too large. */
  const rounded = (value, gives) => {
    const nearest = Number(value.toPrecision(6));
    const side = { upper: 1, lower: -1 }[gives] ?? 0;
    if (side * (nearest - value) >= 0) return nearest;
    return Number((nearest + side * 10 ** (Math.floor(Math.log10(Math.abs(value))) - 5)).toPrecision(6));
  };

  const digits = ({ value, gives }) => {
    if (value === "inf") return "∞";
    return String($("digits").checked ? value : rounded(value, gives));
  };

  function cell(kind, ...content) {
    const element = document.createElement(kind);
    element.append(...content);
    return element;
  }

  function makeRow(row) {
    const line = document.createElement("tr");
    line.id = `fl-row-${row.key}`;
    const about = Object.assign(document.createElement("span"), { className: "fl-about", textContent: WORDS[row.about] });
    const title = cell("th", row.label, " ", about);
    title.scope = "row";
    const copy = Object.assign(document.createElement("button"), { type: "button", className: "fl-copy", textContent: "copy" });
    copy.setAttribute("aria-label", `copy the command of ${row.label}, ${WORDS[row.about]}`);
    copy.hidden = true;
    copy.addEventListener("click", () => copied(copy, line.dataset.command));
    line.append(title, cell("td"), cell("td"), cell("td", copy));
    return line;
  }

  function makePart([part, heading]) {
    const title = document.createElement("th");
    Object.assign(title, { colSpan: 4, scope: "rowgroup", textContent: heading });
    const body = document.createElement("tbody");
    const line = body.appendChild(document.createElement("tr"));
    line.className = "fl-part";
    line.append(title);
    body.append(...facts.rows.filter((row) => row.part === part).map(makeRow));
    return body;
  }

  const direction = (reply) => {
    if (reply?.refused) return reply.refused;
    if (reply?.value === "inf") return "outside the regime of the statement";
    return `${GIVES[reply?.gives] ?? ""}${reply?.at ? ", computed at " : ""}`;
  };

  /** The point of a grid, broken between its inputs only. */
  const point = (reply) =>
    (reply?.at?.split(/(?<=,) /) ?? []).flatMap((text) => [Object.assign(document.createElement("span"), { className: "fl-point", textContent: text }), " "]);

  function show(row, reply) {
    const line = $(`row-${row.key}`);
    const [, value, gives] = line.children;
    const copy = line.querySelector("button");
    value.className = "fl-value";
    value.dataset.value = reply?.value ?? "";
    value.textContent = reply === undefined ? "…" : reply.refused ? "—" : `${SYMBOLS[row.answers]} = ${digits(reply)}`;
    gives.replaceChildren(direction(reply), ...point(reply));
    line.title = reply?.source ?? "";
    line.dataset.command = reply?.command ?? "";
    copy.hidden = !reply?.command;
    copy.title = reply?.command ?? "";
  }

  async function copied(button, command) {
    $("command").textContent = command;
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    } catch {
      getSelection().selectAllChildren($("command"));
    }
  }

  const say = (text) => ($("status").textContent = text);

  /* Chart */

  let pending = 0;

  function drawLater(inputs, valid) {
    clearTimeout(pending);
    if (valid) pending = setTimeout(() => draw(inputs), 120);
  }

  const charted = () => facts.charts.find(({ name }) => name === $("which").value);

  function draw(inputs) {
    const chart = charted();
    const { name } = chart.x;
    const drawn = mode === "live" ? (put({ want: "curves", figure: chart.name, inputs }).found ?? {}) : fromGrid(chart, inputs);
    flamelibChart.draw($("chart"), chart, drawn, number(inputs[name]));
    const others = chart.needs.filter((need) => need !== name).map((need) => `${need} ${inputs[need]}`);
    const about = `${chart.title}, ${chart.curves.length} curves, at ${others.join(", ")}.`;
    $("chart").setAttribute("aria-label", `${about} The values at ${name} ${inputs[name]} are in the table.`);
    $("legend").replaceChildren();
    flamelibChart.legend($("legend"), chart.curves.map((one) => ({ ...one, value: within(found[one.key]) })));
  }

  /** What a curve says at the mark, for the legend. */
  const within = (reply) => (reply?.value === undefined || reply.value === null ? "" : `${{ upper: "≤", lower: "≥" }[reply.gives] ?? "="} ${digits(reply)}`);

  function fromGrid(chart, inputs) {
    const { name } = chart.x;
    const x = facts.axes[name];
    const along = (row) => x.map((at) => looked(row, { ...inputs, [name]: String(at) })?.value ?? null);
    return Object.fromEntries(chart.curves.map(({ key }) => [key, { x, y: along(facts.rows.find((row) => row.key === key)) }]));
  }

  /** The chart follows the parameter in use, unless that is one of every part. */
  function follow(name) {
    if ($(name).closest("fieldset").matches(":first-of-type") || charted().needs.includes(name)) return;
    $("which").value = facts.charts.find(({ needs }) => needs.includes(name))?.name ?? charted().name;
  }

  /* Start */

  function listen() {
    for (const name of NAMES) {
      $(`${name}-slider`).addEventListener("input", () => (fromSlider(name), follow(name), update()));
      $(name).addEventListener("input", () => mode === "grid" || (follow(name), update()));
      $(name).addEventListener("change", () => {
        if (mode !== "grid") return;
        snap(name);
        follow(name);
        update();
      });
    }
    $("digits").addEventListener("change", () => facts.rows.forEach((row) => show(row, found[row.key])));
    $("reset").addEventListener("click", () => {
      for (const name of NAMES) $(name).value = $(name).defaultValue;
      update();
    });
    window.addEventListener("resize", () => drawLater(values(), !$("refusal").textContent));
    window.addEventListener("hashchange", () => (readAddress(), update()));
  }

  async function begin() {
    readAddress();
    try {
      facts = await flamelibSliders.told("values");
    } catch {
      say("This copy of the book was built without the values of this page; build it with `make book`.");
      return;
    }
    $("rows").append(...Object.entries(facts.parts).map(makePart));
    $("which").append(...facts.charts.map(({ name, title }) => new Option(title, name)));
    $("which").addEventListener("change", () => draw(values()));
    say("Starting Python in this page …");
    listen();
    update();
    try {
      put = await flamelibSliders.start(facts.runtime);
      mode = "live";
      say(`Computed in this page by flamelib itself, Python ${facts.runtime.python} (Pyodide ${facts.runtime.version}).`);
    } catch (fault) {
      intoGrid(facts.runtime ? `Python could not be started here (${fault.message}).` : fault.message);
    }
    update();
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
