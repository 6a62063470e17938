/* The bench: a request and a budget in, every mechanism of the recorded grid out.  The grid comes as a script, because a
 * page opened from disk may load scripts and nothing else. */
"use strict";

const flamelibBench = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const FIELDS = ["task", "n_users", "dimension", "rounds", "delta", "budget"];
  const START = { task: "mean", n_users: "10000", dimension: "16", rounds: "12", delta: "1e-6", budget: "epsilon=1" };
  const TASKS = { mean: "mean of numbers in [0, 1]", histogram: "frequencies of items" };
  const BUDGETS = { epsilon: ["central ε, of all rounds", "ε"], epsilon0: ["local ε₀, of one report", "ε₀"] };
  const COLUMNS = [
    ["name", "mechanism"], ["epsilon", "certified ε"], ["claimed", "claimed ε"], ["error", "error"], ["bits", "bits"],
    ["messages", "messages"], ["local", "local ε₀"], ["trusted", "who must be trusted"], ["adjacency", "neighbours"],
  ];
  const SORTED = ["name", "epsilon", "error", "bits"];
  const MARKERS = {
    s: "M-4-4H4V4H-4Z", v: "M-5-4H5L0 5Z", "^": "M-5 4H5L0-5Z", o: "M4.5 0A4.5 4.5 0 1 1-4.5 0A4.5 4.5 0 1 1 4.5 0Z",
    D: "M0-5.5L5.5 0L0 5.5L-5.5 0Z", P: "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z", x: "M-4-4L4 4M-4 4L4-4",
    "*": "M0-6L1.5-2L5.7-1.9L2.4.8L3.5 4.9L0 2.5L-3.5 4.9L-2.4.8L-5.7-1.9L-1.5-2Z",
  };
  const FARTHEST = 100; // a larger epsilon promises nothing
  const $ = (name) => document.getElementById(`bench-${name}`);
  const form = document.querySelector(".fl-bench");
  const table = document.querySelector(".fl-bench-table");
  let grid = null;
  let order = "error";

  const written = (value) => (value < 1e-3 && value > 0 ? value.toExponential() : String(value));
  const make = (kind, content = [], told = {}) => {
    const element = Object.assign(document.createElement(kind), told);
    element.append(...content);
    return element;
  };

  /* The grid */

  function request() {
    const point = {};
    for (const name of FIELDS.slice(0, 5)) point[name] = grid.axes[name].findIndex((one) => written(one) === form.elements[name].value);
    const [asked, size] = form.elements.budget.value.split("=");
    return { point, asked, size: Number(size) };
  }

  function look(mechanism, field, point) {
    const { along, values } = mechanism[field];
    const length = (axis) => (axis === "budget" ? grid.budgets[mechanism.asked] : grid.axes[axis]).length;
    return values[along.reduce((index, axis) => index * length(axis) + point[axis], 0)];
  }

  function answer(mechanism, point, budget) {
    const found = { ...mechanism };
    for (const field of ["epsilon", "claimed", "error", "messages", "bits", "reason"]) found[field] = look(mechanism, field, { ...point, budget });
    if (found.reason !== null) found.refused = grid.reasons[found.reason];
    if (mechanism.asked === "epsilon0") found.local = grid.budgets.epsilon0[budget];
    return found;
  }

  /** The row of a mechanism, as `flamelib compare` gives it. */
  function row(mechanism, { point, asked, size }) {
    const budgets = grid.budgets[mechanism.asked];
    if (mechanism.asked === asked) return answer(mechanism, point, budgets.indexOf(size));
    if (asked === "epsilon0") return { ...mechanism, refused: grid.unasked };
    for (let budget = budgets.length - 1; budget >= 0; budget--) {
      const found = answer(mechanism, point, budget);
      if (found.refused || found.epsilon <= size) return found;
    }
    return { ...mechanism, refused: `no local budget of ${budgets.join(", ")} keeps epsilon ${size}: ask without a list of them` };
  }

  function command({ asked, size }) {
    const words = FIELDS.slice(0, 5).map((name) => `${name}=${form.elements[name].value}`);
    const list = asked === "epsilon" ? ` epsilon0=${grid.budgets.epsilon0.join(",")}` : "";
    return `flamelib compare ${words.join(" ")} ${asked}=${size}${list}`;
  }

  /* Table */

  const told = {
    claimed: (one) => (one.claimed === null ? "none" : written(one.claimed)),
    local: (one) => (one.local === undefined ? "" : String(one.local)),
    adjacency: (one) => (one.warning ? `${one.adjacency} (not comparable)` : one.adjacency),
  };

  function line(one) {
    const [name, ...others] = COLUMNS.map(([field]) => field);
    const head = make("th", [one[name]], { scope: "row", title: one.document });
    if (one.refused) return make("tr", [head, make("td", [`refused: ${one.refused}`], { colSpan: others.length })], { className: "fl-refused" });
    const cells = others.map((field) => {
      const cell = make("td", [told[field] ? told[field](one) : typeof one[field] === "number" ? written(one[field]) : one[field]]);
      cell.dataset.field = field;
      if (typeof one[field] === "number") cell.dataset.value = one[field];
      return cell;
    });
    return make("tr", [head, ...cells], { className: one.warning ? "fl-incomparable" : "" });
  }

  function warn(rows) {
    const marked = rows.filter((one) => one.warning && !one.refused);
    $("warnings").replaceChildren(...marked.map((one) => make("li", [make("em", [one.name]), ` is not comparable: it ${one.warning}.`])));
  }

  function sorted(rows) {
    const field = order.replace("-", "");
    const sign = order === field ? 1 : -1;
    const compare = (a, b) => (a[field] > b[field]) - (a[field] < b[field]);
    return [...rows].sort((a, b) => Boolean(a.refused) - Boolean(b.refused) || (a.refused ? 0 : sign * compare(a, b)));
  }

  function heads() {
    const made = COLUMNS.map(([field, label]) => {
      if (!SORTED.includes(field)) return make("th", [label], { scope: "col" });
      const button = make("button", [label], { type: "button", title: `sort by ${label}` });
      button.dataset.sort = field;
      button.addEventListener("click", () => {
        order = order === field ? `-${field}` : field;
        update();
      });
      return make("th", [button], { scope: "col" });
    });
    table.tHead.rows[0].replaceChildren(...made);
  }

  function markOrder() {
    for (const button of table.tHead.querySelectorAll("button")) {
      const field = button.dataset.sort;
      const way = { [field]: "ascending", [`-${field}`]: "descending" }[order];
      if (way) button.parentElement.setAttribute("aria-sort", way);
      else button.parentElement.removeAttribute("aria-sort");
    }
  }

  /* Chart */

  function put(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  function marker(parent, { hue, marker: kind }, [x, y], size, hollow = false) {
    const open = hollow || kind === "x" ? " fl-open" : "";
    return put(parent, "path", { class: `fl-hue-${hue}${open}`, d: MARKERS[kind], transform: `translate(${x} ${y}) scale(${size})` });
  }

  const drawn = (one) => !one.refused && one.error > 0 && one.epsilon <= FARTHEST;
  const power = (exponent) => (exponent < 0 || exponent > 2 ? `10${[...String(exponent)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}` : String(10 ** exponent));

  function axis(values, start, end) {
    const logs = values.map(Math.log10);
    const low = Math.floor(Math.min(...logs));
    const high = Math.max(low + 1, Math.ceil(Math.max(...logs)));
    const place = (value) => Number((start + ((Math.log10(value) - low) / (high - low)) * (end - start)).toFixed(1));
    return { place, ticks: Array.from({ length: high - low + 1 }, (_, index) => low + index) };
  }

  function frame(chart, points) {
    const width = Math.max(320, Math.min(760, chart.parentElement.clientWidth));
    const [left, right, top, bottom] = [66, width - 14, 12, 352];
    chart.setAttribute("viewBox", `0 0 ${width} 400`);
    const x = axis(points.flatMap((one) => [one.epsilon, ...(one.claimed > 0 && one.claimed <= FARTHEST ? [one.claimed] : [])]), left, right);
    const y = axis(points.map((one) => one.error), bottom, top);
    for (const tick of x.ticks) {
      const at = x.place(10 ** tick);
      put(chart, "line", { class: "fl-bench-grid", x1: at, x2: at, y1: top, y2: bottom });
      put(chart, "text", { x: at, y: bottom + 18, "text-anchor": "middle" }, power(tick));
    }
    for (const tick of y.ticks) {
      const at = y.place(10 ** tick);
      put(chart, "line", { class: "fl-bench-grid", x1: left, x2: right, y1: at, y2: at });
      put(chart, "text", { x: left - 6, y: at + 4, "text-anchor": "end" }, power(tick));
    }
    put(chart, "text", { x: (left + right) / 2, y: 394, "text-anchor": "middle" }, "certified ε");
    put(chart, "text", { transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "error");
    return (epsilon, error) => [x.place(epsilon), y.place(error)];
  }

  function draw(rows, { point }) {
    const chart = $("chart");
    chart.replaceChildren();
    const series = grid.mechanisms.map((one) => grid.budgets[one.asked].map((_, budget) => answer(one, point, budget)).filter(drawn));
    const points = series.flat();
    if (!points.length) return;
    const at = frame(chart, points);
    for (const line of series.filter((one) => one.length)) {
      const places = line.map((one) => at(one.epsilon, one.error));
      const dashes = line[0].warning ? { "stroke-dasharray": "2 4" } : {};
      put(chart, "path", { class: `fl-hue-${line[0].hue} fl-open`, d: `M${places.join("L")}`, ...dashes });
      line.forEach((one, index) => marker(chart, one, places[index], 0.7));
    }
    for (const one of rows.filter(drawn)) {
      const place = at(one.epsilon, one.error);
      if (one.claimed > 0 && one.claimed <= FARTHEST) {
        const claim = at(one.claimed, one.error);
        put(chart, "path", { class: `fl-hue-${one.hue} fl-open fl-faint`, d: `M${place}L${claim}` });
        marker(chart, one, claim, 1.4, true).dataset.claim = one.name;
      }
      const shape = marker(chart, one, place, 1.5);
      shape.dataset.name = one.name;
      put(shape, "title", {}, `${one.name}: ε ${written(one.epsilon)}, error ${written(one.error)}`);
    }
    chart.setAttribute("aria-label", `Error against certified epsilon, both logarithmic, ${rows.filter(drawn).length} mechanisms; the values are in the table above.`);
  }

  function legend() {
    const items = grid.mechanisms.map((one) => {
      const item = make("li");
      marker(put(item, "svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }), one, [0, 0], 1.2);
      item.append(one.name);
      return item;
    });
    $("legend").replaceChildren(...items);
  }

  /* Page */

  function update() {
    const asked = request();
    const rows = grid.mechanisms.map((one) => row(one, asked));
    table.tBodies[0].replaceChildren(...sorted(rows).map(line));
    markOrder();
    warn(rows);
    $("told").textContent = `${rows.filter((one) => !one.refused).length} of ${rows.length} mechanisms serve this request.`;
    $("command").textContent = command(asked);
    draw(rows, asked);
    const state = new URLSearchParams(FIELDS.map((name) => [name, form.elements[name].value]));
    state.set("sort", order);
    if (location.hash !== `#${state}`) history.replaceState(null, "", `#${state}`);
  }

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of FIELDS) {
      const wanted = [given.get(name), form.elements[name].value, START[name]];
      form.elements[name].value = wanted.find((value) => [...form.elements[name].options].some((one) => one.value === value));
    }
    const sort = given.get("sort");
    if (SORTED.includes(sort?.replace("-", ""))) order = sort;
  }

  function fill() {
    for (const name of FIELDS.slice(0, 5)) {
      const options = grid.axes[name].map((one) => new Option(TASKS[one] ?? one.toLocaleString("en", { maximumSignificantDigits: 3, notation: one < 1e-3 ? "scientific" : "standard" }).replace("E", "e"), written(one)));
      form.elements[name].replaceChildren(...options);
      form.elements[name].value = START[name];
    }
    const groups = Object.entries(BUDGETS).map(([asked, [label, symbol]]) =>
      make("optgroup", grid.budgets[asked].map((size) => new Option(`${symbol} = ${size}`, `${asked}=${size}`)), { label }),
    );
    form.elements.budget.replaceChildren(...groups);
    form.elements.budget.value = START.budget;
  }

  async function copied() {
    try {
      await navigator.clipboard.writeText($("command").textContent);
      $("copy").textContent = "copied";
      setTimeout(() => ($("copy").textContent = "copy command"), 1500);
    } catch {
      getSelection().selectAllChildren($("command"));
    }
  }

  function receive(recorded) {
    grid = recorded;
    fill();
    heads();
    legend();
    readAddress();
    form.addEventListener("input", update);
    form.addEventListener("submit", (event) => event.preventDefault());
    $("copy").addEventListener("click", copied);
    addEventListener("resize", () => draw(grid.mechanisms.map((one) => row(one, request())), request()));
    addEventListener("hashchange", () => (readAddress(), update()));
    update();
  }

  return { receive };
})();
