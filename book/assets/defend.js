/* Defend your epsilon: a request in, every mechanism out, the recommended one with the paragraph for a review.  Answers
 * come from recorded grids, which are a script, because a page opened from disk may load scripts and nothing else.  Training is
 * answered by a formula. */
"use strict";

const flamelibDefend = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const FIELDS = ["task", "n_users", "dimension", "rounds", "delta"];
  const BUDGETS = { epsilon: ["target ε, for all rounds together", "ε"], epsilon0: ["local ε₀, of one report", "ε₀"] };
  const WORDS = {
    n_users: "people", dimension: "numbers or items", rounds: "rounds", missing: "people who may collude, or be missing", rate: "the chance of a record or person",
    noise: "the noise", steps: "steps", failure: "δ", joining: "the chance of a client", records: "records of a client", crowd: "people who may check in",
  };
  const FALLING = ["n_users", "items", "delta"]; // along these a larger number is easier, along the others harder
  const WAVERING = 1.03; // errors waver by less, where whole numbers are chosen: added between recorded points
  const SAID = { n_users: "people", crowd: "people", numbers: "numbers of a person in all rounds", rounds: "rounds", items: "items" };
  const MARKERS = {
    s: "M-4-4H4V4H-4Z", v: "M-5-4H5L0 5Z", "^": "M-5 4H5L0-5Z", o: "M4.5 0A4.5 4.5 0 1 1-4.5 0A4.5 4.5 0 1 1 4.5 0Z",
    D: "M0-5.5L5.5 0L0 5.5L-5.5 0Z", P: "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z", x: "M-4-4L4 4M-4 4L4-4",
    "*": "M0-6L1.5-2L5.7-1.9L2.4.8L3.5 4.9L0 2.5L-3.5 4.9L-2.4.8L-5.7-1.9L-1.5-2Z",
  };
  const $ = (name) => document.getElementById(`defend-${name}`);
  const form = document.querySelector(".fl-defend");
  const training = $("training");
  const table = document.querySelector(".fl-defend-table");
  const kept = new URLSearchParams(); // what the address keeps: the last values of both forms that were answered
  let grid = null;

  const written = (value) => (value < 1e-3 && value > 0 ? value.toExponential() : value >= 1e5 ? value.toLocaleString("en") : String(value));
  /** The next number of five digits that is not below this one. */
  const upwards = (value) => {
    const near = Number(value.toPrecision(5));
    return near >= value * (1 - 1e-12) ? near : Number((value * (1 + 1e-4)).toPrecision(5));
  };
  const counted = (value) => value.toLocaleString("en");
  const make = (kind, content = [], told = {}) => {
    const element = Object.assign(document.createElement(kind), told);
    element.append(...content);
    return element;
  };

  /* The request */

  class Refused extends Error {
    constructor(name, sentence) {
      super(sentence);
      this.field = name;
    }
  }

  const field = (name) => form.elements[name] ?? training.elements[name];
  const typed = (name) => field(name).value.replace(/[,\s_]/g, "");
  const relied = () => [...form.elements.trust].filter((box) => box.checked).map((box) => box.value);

  function whole(name, least) {
    const value = Number(typed(name));
    if (typed(name) !== "" && Number.isInteger(value) && value >= least && value <= 2 ** 53) return value;
    throw new Refused(name, `${WORDS[name]} must be a whole number of at least ${least}, got “${field(name).value}”.`);
  }

  function within(name, least, most) {
    const value = Number(typed(name));
    if (value >= least && value <= most) return value;
    throw new Refused(name, `${WORDS[name]} must be a number from ${least} to ${most}, got “${field(name).value}”.`);
  }

  /** What a form asks for; nothing where a value is outside its domain: then its field is marked, and why is told. */
  function read(from, ask, tell) {
    for (const one of from.elements) one.removeAttribute("aria-invalid");
    try {
      return ask();
    } catch (fault) {
      if (!(fault instanceof Refused)) throw fault;
      field(fault.field).setAttribute("aria-invalid", "true");
      tell(`${fault.message[0].toUpperCase()}${fault.message.slice(1)}`);
      return null;
    }
  }

  function request() {
    const task = form.elements.task.value;
    const [people, missing] = [whole("n_users", 2), whole("missing", 0)];
    if (people - missing < 2) throw new Refused("missing", `${WORDS.missing} must leave at least 2 others, got “${field("missing").value}” of ${counted(people)}.`);
    const found = { task, people, missing, n_users: people - missing, dimension: whole("dimension", task === "mean" ? 1 : 2), rounds: whole("rounds", 1), delta: Number(typed("delta")) };
    if (!(found.delta > 0 && found.delta < 1)) throw new Refused("delta", `δ must be a number between 0 and 1, such as 1e-8, got “${form.elements.delta.value}”.`);
    [found.asked, found.size] = form.elements.budget.value.split("=");
    found.size = Number(found.size);
    found.trust = ["nobody", ...relied()];
    return found;
  }

  /** Why no recorded answer reaches a request; nothing where one does. */
  function beyond(asked) {
    const { delta: [least], ...reach } = grid.reach;
    for (const [name, [from, most]] of Object.entries(reach)) {
      if (asked[name] < from || asked[name] > most) return `The recorded answers reach from ${counted(from)} to ${counted(most)} ${WORDS[name]}, and ${name === "n_users" && asked.missing ? "there remain" : "you ask for"} ${counted(asked[name])}.`;
    }
    return asked.delta < least ? `The recorded answers reach down to δ = ${least}, and you ask for ${asked.delta}.` : "";
  }

  /* The grids, read on the safe side */

  /** The table of a mechanism with this column that answers the request. */
  function holding(mechanism, column, { task, dimension }) {
    return mechanism.tables.find((one) => column in one.columns && one.tasks.includes(task) && one.dimensions[0] <= dimension && dimension <= one.dimensions[1]);
  }

  function look({ axes }, { along, values }, at, asked) {
    const length = (axis) => (axis === "budget" ? grid.budgets[asked] : axes[axis]).length;
    return values[along.reduce((index, axis) => index * length(axis) + at[axis], 0)];
  }

  /** What an axis counts of a request. */
  function measured(axis, asked) {
    if (axis === "numbers") return asked.dimension * asked.rounds;
    return asked[{ crowd: "n_users", items: "dimension" }[axis] ?? axis];
  }

  /** The next point at a value or below it, or at it or above; -1 where there is none. */
  function nearest(points, value, below) {
    const found = points.filter((point) => (below ? point <= value : point >= value));
    return points.indexOf(below ? Math.max(...found) : Math.min(...found));
  }

  /** The places of the next harder recorded request, or of the next easier one; nothing where there is none. */
  function beside({ axes }, asked, isHarder) {
    const place = ([axis, points]) => {
      const value = measured(axis, asked);
      return [axis, axis === "crowd" ? points.indexOf(value) : nearest(points, value, FALLING.includes(axis) === isHarder)];
    };
    const at = Object.entries(axes).map(place);
    return at.some(([, index]) => index < 0) ? null : Object.fromEntries(at);
  }

  /** The largest value of a cost at the corners of the cell, at this request; nothing where one of them has none. */
  function largest(mechanism, column, asked, budget) {
    const table = holding(mechanism, column, asked);
    if (!table) return column === "absence" ? 0 : null;
    let corners = [{ budget }];
    for (const [axis, points] of Object.entries(table.axes)) {
      const wanted = axis === "delta" ? Math.min(asked.delta, Math.max(...points)) : measured(axis, asked); // a larger delta asks for less
      const ends = new Set([nearest(points, wanted, true), nearest(points, wanted, false)]);
      corners = corners.flatMap((at) => [...ends].map((index) => ({ ...at, [axis]: index })));
    }
    const { powers = {}, ...values } = table.columns[column];
    const found = corners.map((at) => look(table, values, at, mechanism.asked));
    const more = column === "error" && found.length > 1 ? WAVERING : 1;
    return found.includes(null) ? null : more * Math.max(...found) * Object.entries(powers).reduce((product, [name, power]) => product * asked[name] ** power, 1);
  }

  function costs(mechanism, asked, budget) {
    const [error, absence, bits] = ["error", "absence", "bits"].map((column) => largest(mechanism, column, asked, budget));
    return error === null || bits === null ? null : { error: upwards(Math.hypot(error, absence)), bytes: Math.ceil(bits / 8 - 1e-9) };
  }

  /** What explicit data sets lose at the next easier recorded request; nothing where none is recorded. */
  function least(mechanism, asked, budget) {
    const table = holding(mechanism, "lower", asked);
    const at = table?.below.includes(asked.task) && beside(table, asked, false);
    return at ? look(table, table.columns.lower, { ...at, budget }, mechanism.asked) : null;
  }

  function answer(mechanism, asked, budget) {
    const reason = mechanism.refuses[asked.task];
    if (reason) return { mechanism, refused: reason };
    const unordered = mechanism.tables.some(({ axes }) => "crowd" in axes);
    if (asked.missing && unordered) return { mechanism, refused: "its ε may rise with the number of people, so that nothing is proven for it where people collude or are missing" };
    const size = grid.budgets[mechanism.asked][budget];
    const found = costs(mechanism, asked, budget);
    if (!found) return { mechanism, refused: "no recorded point lies on the safe side of your request; the command answers it" };
    // A sum is tuned to its budget.
    if (mechanism.asked === "epsilon") return { mechanism, budget: size, upper: size, lower: null, point: null, ...found };
    const table = holding(mechanism, "epsilon", asked);
    const at = beside(table, asked, true);
    if (!at) return { mechanism, refused: "it is answered only at recorded numbers of people, and yours is not one of them; the command answers it" };
    const upper = look(table, table.columns.epsilon, { ...at, budget }, mechanism.asked);
    if (upper === null) return { mechanism, refused: `no ε of at most ${grid.farthest} is recorded for it, and a larger one promises next to nothing` };
    const point = Object.fromEntries(Object.entries(at).map(([axis, index]) => [axis, table.axes[axis][index]]));
    return { mechanism, budget: size, upper, lower: least(mechanism, asked, budget), point, ...found };
  }

  /** A mechanism at the budget that is asked for; private reports at the largest recorded one that keeps a target. */
  function row(mechanism, asked) {
    const budgets = grid.budgets[mechanism.asked];
    if (mechanism.asked === asked.asked) return answer(mechanism, asked, budgets.indexOf(asked.size));
    if (asked.asked === "epsilon0") return { mechanism, refused: "nothing that one person sends is private by itself: ask for a target ε" };
    for (let budget = budgets.length - 1; budget >= 0; budget--) {
      const found = answer(mechanism, asked, budget);
      if (!found.refused && found.upper <= asked.size) return found;
    }
    const least = answer(mechanism, asked, 0);
    return least.refused ? least : { mechanism, refused: `none of the recorded local budgets, from ${budgets[0]} upwards, keeps ε = ${asked.size} here` };
  }

  const granted = (one, asked) => asked.trust.includes(one.mechanism.needs);
  const merit = (one, asked) => one.error * (asked.asked === "epsilon" ? 1 : one.upper);
  // Recommended and comparable, then more trust, then refused; what is not comparable comes last.
  const rank = (one, asked) => (one.mechanism.warning ? 3 : one.refused ? 2 : granted(one, asked) ? 0 : 1);

  function ranked(asked) {
    const rows = grid.mechanisms.map((mechanism) => row(mechanism, asked));
    return rows.sort((a, b) => rank(a, asked) - rank(b, asked) || (a.refused || b.refused ? 0 : merit(a, asked) - merit(b, asked)));
  }

  /* Words */

  function command(asked, one) {
    const quoted = (name) => (/[^a-z-]/.test(name) ? `"${name}"` : name);
    const budget = one ? `${one.mechanism.asked}=${one.budget}` : `${asked.asked}=${asked.size}`;
    const alone = one ? [`mechanism=${quoted(one.mechanism.name)}`] : [];
    return ["flamelib compare", ...alone, ...FIELDS.map((name) => `${name}=${asked[name]}`), budget].join(" ");
  }

  /** A share in percent, rounded up. */
  const percent = (share, digits) => Math.min(Math.ceil(share * 100 * 10 ** digits + 1e-9) / 10 ** digits, 100);

  /** How sure somebody can become who was half sure, rounded up. */
  function sure(epsilon) {
    const share = 1 / (1 + Math.exp(-epsilon));
    const found = percent(share, share < 0.99 ? 0 : 2);
    return found < 100 ? `${found} % sure` : "all but certain";
  }

  /** The rate of misses and of false alarms where both are the same: the corner of the trade-off curve. */
  const corner = (epsilon, delta) => (1 - delta) / (1 + Math.exp(epsilon));

  /** What somebody achieves at most who tests for one of two data sets: by the lines of the trade-off curve. */
  function attack(epsilon, delta) {
    const [ratio, alarms] = [Math.exp(epsilon), 0.01];
    const hits = Math.min(ratio * alarms + delta, 1 - (1 - delta - alarms) / ratio);
    return `membership advantage at most ${percent(1 - 2 * corner(epsilon, delta), 1)} %; hits at most ${percent(hits, 1)} % at 1 % of false alarms`;
  }

  const listed = (point) => Object.entries(point).map(([axis, value]) => (axis === "delta" ? `δ = ${written(value)}` : `${SAID[axis]}: ${counted(value)}`)).join("; ");

  function held({ task, dimension, people, rounds }) {
    const each = task === "mean" ? (dimension === 1 ? "one number in [0, 1]" : `${counted(dimension)} numbers in [0, 1]`) : `one of ${counted(dimension)} items`;
    const what = task === "mean" ? "the mean over all people" : "how frequent each item is";
    return `Each of ${counted(people)} people holds ${each}. ${rounds === 1 ? `We publish ${what}, once.` : `In each of ${counted(rounds)} rounds we publish ${what}.`}`;
  }

  const bytes = (one) => `${counted(one.bytes)} ${one.bytes === 1 ? "byte" : "bytes"}`;
  const odds = (one, asked) =>
    `For somebody who thinks two versions of a person's data equally likely, either of them becomes at most ${sure(one.upper)}, except with probability δ = ${asked.delta}.`;

  const edition = ({ version, date, address } = grid.edition) => `flamelib ${version} of ${date}${address ? ` (${address})` : ""}`;

  function review(one, asked) {
    const { mechanism } = one;
    const local = mechanism.asked === "epsilon0" ? `, with a local budget of ε₀ = ${one.budget} for every report` : ", with noise tuned to this budget";
    const proof = mechanism.rests_on === "proven" ? "this bound and its numerical error are proven in the book that comes with the library" : "the book cites this theorem and does not prove it";
    const planned = mechanism.needs === "others" ? ", for whom the noise is planned" : "";
    const upper = one.point ? `It was computed for the next harder recorded request (${listed(one.point)}), whose true ε is no smaller than ours` : "It is the budget for which the noise is chosen";
    const rounds = asked.rounds === 1 ? "in the one round" : "in all rounds together";
    return [
      held(asked),
      ...(asked.missing ? [`Up to ${counted(asked.missing)} of them may tell an attacker all they know, or be missing: every number here is that of the other ${counted(asked.n_users)}${planned}.`] : []),
      `We use the mechanism “${mechanism.title}” (${mechanism.document})${local}.`,
      `It is (ε, δ)-differentially private ${rounds} with ε at most ${written(one.upper)} (rounded up) and δ = ${asked.delta}; neighbouring data sets differ in the data of one person, all of which may be replaced by any other (${mechanism.adjacency}).`,
      `${upper}, by ${edition()}.`,
      `The bound rests on ${mechanism.theorem} (statement ${mechanism.statement} of the theorem index of flamelib); ${proof}.`,
      one.lower ? `Conversely, ${asked.missing ? "if as many do tell, " : ""}explicit data sets lose ε = ${written(one.lower)} (rounded down), so that no analysis can promise less.` : `No lower bound is stated here, and the true ε may be smaller; where a lower bound is known, it is the “lower” in the answer of ${command(asked, one)}.`,
      odds(one, asked),
      `The root mean squared error of one published number is at most ${written(one.error)}, and a person sends about ${bytes(one)} a round.`,
      `Must be trusted: ${mechanism.trusted}.`,
      "Not stated here: that programs and people follow the protocol, that random numbers are good, what other releases about the same people add, and what groups of people who share a secret can expect (for k people, k times ε, with a larger δ).",
    ].join(" ");
  }

  function receipt(one, asked) {
    const { name: mechanism, document, statement, theorem, adjacency, rests_on, trusted } = one.mechanism;
    return {
      what: "a certified epsilon, recorded by flamelib and read on the safe side",
      request: Object.fromEntries(FIELDS.map((name) => [name, asked[name]])),
      asked: { [asked.asked]: asked.size },
      people: asked.people,
      colluding_or_missing: asked.missing,
      mechanism, document, statement, theorem,
      edition: grid.edition,
      parameter: { [one.mechanism.asked]: one.budget },
      epsilon: { at_most: one.upper, at_least: one.lower, computed_at: one.point },
      delta: asked.delta,
      adjacency, rests_on, trusted,
      error_at_most: one.error,
      bytes_about: one.bytes,
      sampling_rate: grid.sampling_rate,
      odds: odds(one, asked),
      attack: attack(one.upper, asked.delta),
      review: review(one, asked),
      command: command(asked, one),
    };
  }

  /* The answer and the table */

  function tell(one, asked) {
    $("sheet").hidden = !one;
    if (!one) return;
    const facts = {
      "ε": `at most ${written(one.upper)}${one.lower ? ` and at least ${written(one.lower)}` : ""}, with δ = ${asked.delta}${one.point ? "; the command below computes it at exactly your values" : ""}`,
      "an attacker": attack(one.upper, asked.delta),
      neighbours: `${one.mechanism.adjacency}: all data of one person`,
      "must be trusted": one.mechanism.trusted,
      "how": one.mechanism.asked === "epsilon0" ? `every report with local budget ε₀ = ${one.budget}` : `noise tuned to ε = ${one.budget}`,
      error: `at most ${written(one.error)}, root mean square of one published number`,
      "sent": `about ${bytes(one)} by a person in a round`,
    };
    $("name").textContent = `Recommended: ${one.mechanism.title}`;
    $("odds").textContent = odds(one, asked);
    $("facts").replaceChildren(...Object.entries(facts).flatMap(([name, words]) => [make("dt", [name]), make("dd", [words])]));
    curve($("curve"), one.upper, asked.delta);
    $("review").textContent = review(one, asked);
    $("command").textContent = command(asked, one);
    $("download").href = `data:application/json;charset=utf-8,${encodeURIComponent(`${JSON.stringify(receipt(one, asked), null, 1)}\n`)}`;
  }

  function line(one, asked, recommended) {
    const { mechanism } = one;
    const why = [mechanism.warning && `not comparable (${mechanism.adjacency}): ${mechanism.warning}`, one.refused, !mechanism.warning && !one.refused && (granted(one, asked) ? mechanism.adjacency : `${mechanism.adjacency}; needs more trust than you grant`)];
    const values = one.refused ? ["", "", "", ""] : [written(one.upper), one.lower ? written(one.lower) : "", written(one.error), counted(one.bytes)];
    const words = [mechanism.trusted, mechanism.title, ...values, why.filter(Boolean).join("; ")];
    const cells = words.map((word, column) => {
      const cell = make(column === 1 ? "th" : "td", [word], column === 1 ? { scope: "row", title: mechanism.document } : {});
      if (word !== "") cell.dataset.label = column === 1 ? "" : table.tHead.rows[0].cells[column].textContent;
      return cell;
    });
    if (!one.refused) ["upper", "lower", "error", "bytes"].forEach((name, index) => (cells[index + 2].dataset[name] = one[name] ?? ""));
    const aside = one.refused || mechanism.warning || !granted(one, asked);
    const made = make("tr", cells, { className: one === recommended ? "fl-recommended" : aside ? "fl-aside" : "" });
    made.dataset.mechanism = mechanism.name;
    made.dataset.budget = one.budget ?? "";
    return made;
  }

  /* Chart */

  function put(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  function marker(parent, { hue, marker: kind }, [x, y], size) {
    const open = kind === "x" ? " fl-open" : "";
    return put(parent, "path", { class: `fl-hue-${hue}${open}`, d: MARKERS[kind], transform: `translate(${x} ${y}) scale(${size})` });
  }

  const drawn = (one) => !one.refused && one.error > 0 && one.upper <= grid.farthest;
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
    const x = axis(points.map((one) => one.upper), left, right);
    const y = axis(points.map((one) => one.error), bottom, top);
    for (const tick of x.ticks) {
      const at = x.place(10 ** tick);
      put(chart, "line", { class: "fl-defend-grid", x1: at, x2: at, y1: top, y2: bottom });
      put(chart, "text", { x: at, y: bottom + 18, "text-anchor": "middle" }, power(tick));
    }
    for (const tick of y.ticks) {
      const at = y.place(10 ** tick);
      put(chart, "line", { class: "fl-defend-grid", x1: left, x2: right, y1: at, y2: at });
      put(chart, "text", { x: left - 6, y: at + 4, "text-anchor": "end" }, power(tick));
    }
    put(chart, "text", { x: (left + right) / 2, y: 394, "text-anchor": "middle" }, "certified ε");
    put(chart, "text", { transform: `translate(14 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "error");
    return (epsilon, error) => [x.place(epsilon), y.place(error)];
  }

  function draw(rows, asked) {
    const chart = $("chart");
    chart.replaceChildren();
    const series = grid.mechanisms.map((one) => grid.budgets[one.asked].map((_, budget) => answer(one, asked, budget)).filter(drawn));
    const all = series.flat();
    if (!all.length) return;
    const at = frame(chart, all);
    const place = (one) => at(one.upper, one.error);
    for (const line of series.filter((one) => one.length)) {
      const { mechanism } = line[0];
      const dashes = mechanism.warning ? { "stroke-dasharray": "2 4" } : {};
      put(chart, "path", { class: `fl-hue-${mechanism.hue} fl-open`, d: `M${line.map(place).join("L")}`, ...dashes });
      for (const one of line) marker(chart, mechanism, place(one), 0.7);
    }
    for (const one of rows.filter(drawn)) {
      const shape = marker(chart, one.mechanism, place(one), 1.5);
      shape.dataset.name = one.mechanism.name;
      put(shape, "title", {}, `${one.mechanism.title}: ε at most ${written(one.upper)}, error at most ${written(one.error)}`);
    }
    chart.setAttribute("aria-label", `Error against certified epsilon, both logarithmic, ${rows.filter(drawn).length} mechanisms; the values are in the table above.`);
  }

  /** The trade-off curve of one pair, two units for a percent and rounded down: below it no test gets. */
  function curve(chart, epsilon, delta) {
    const equal = corner(epsilon, delta);
    const points = [[0, 1 - delta], [equal, equal], [1 - delta, 0]].map(([alarms, misses]) => `${200 - 2 * percent(1 - alarms, 4)} ${2 * percent(1 - misses, 4)}`);
    chart.firstElementChild.setAttribute("d", `M0 200L${points.join("L")}Z`);
    chart.setAttribute("aria-label", `Trade-off curve of ε = ${written(epsilon)} and δ = ${written(delta)}: ${attack(epsilon, delta)}`);
    chart.parentElement.hidden = false;
  }

  function legend() {
    const items = grid.mechanisms.map((one) => {
      const item = make("li");
      marker(put(item, "svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }), one, [0, 0], 1.2);
      item.append(one.title);
      return item;
    });
    $("legend").replaceChildren(...items);
  }

  /* Training */

  // Whole orders: the floor of ε is about log(1/δ) over the largest, and beyond 128 a tenth more changes little.
  const ORDERS = Array.from({ length: 127 }, (_, index) => index + 2);
  while (ORDERS.at(-1) < 4096) ORDERS.push(Math.ceil(1.1 * ORDERS.at(-1)));
  const ROUNDED = 1e-7; // relative error of a divergence in doubles, generously: its sums have some thousand terms

  /** Rényi divergence of one step, times order - 1: a record drawn by a coin, Gaussian noise on the sum (upper). */
  function diverged(order, rate, noise) {
    const logs = [];
    let binomial = Math.log(order);
    for (let drawn = 2; drawn <= order; drawn += 1) {
      binomial += Math.log((order - drawn + 1) / drawn);
      const gain = (drawn * (drawn - 1)) / (2 * noise ** 2);
      const others = drawn < order ? (order - drawn) * Math.log1p(-rate) : 0;
      logs.push(binomial + drawn * Math.log(rate) + others + gain + Math.log(-Math.expm1(-gain)));
    }
    const top = Math.max(...logs);
    const log = top + Math.log(logs.reduce((sum, one) => sum + Math.exp(one - top), 0));
    return (Math.max(log, 0) + Math.log1p(Math.exp(-Math.abs(log)))) * (1 + ROUNDED);
  }

  /** ε of Poisson-sampled Gaussian noise after all steps, one record added or removed (upper). */
  function sampled({ rate, noise, steps, delta }) {
    const found = ORDERS.map((order) => (steps * diverged(order, rate, noise) - Math.log(delta * order)) / (order - 1) + Math.log1p(-1 / order));
    return upwards(Math.max(0, Math.min(...found)));
  }

  const METHODS = {
    opacus: {
      fields: () => ({ joining: 1, records: 1 }),
      words: ({ rate }) => `We train a model by DP-SGD with Opacus: every record is drawn for a step by a coin of its own (Poisson sampling), with probability ${rate}; gradients are clipped, and normal noise is added to their sum`,
    },
    participation: {
      fields: () => ({ joining: within("joining", 1e-9, 1), records: whole("records", 1) }),
      words: ({ rate, joining, records }) => `We train a model with random participation: in every round a client takes part with probability ${joining}, by a coin of its own, and draws each of its records, ${counted(records)} at most, with probability ${rate}; gradients are clipped, and the server, which is trusted, adds normal noise to their sum`,
    },
    checkin: {
      fields: () => ({ crowd: whole("crowd", 2) }),
      words: ({ rate, crowd }) => `We train a model with self check-in: in every round each of ${counted(crowd)} people checks in with probability ${rate}, by a coin of its own, clips an update and adds normal noise to it, and only the sum over those who check in is seen`,
    },
  };

  /** The account, sharper than the formula, and of self check-in the only one. */
  function trained({ rate, noise, steps, delta, joining, records, crowd }) {
    const protocol = crowd
      ? `checkin protocol=summed n_users=${crowd} noise_std=${noise} rate=${rate}`
      : `participation participation_rate=${joining} record_rate=${rate} n_records=${records} clip_norm=1 noise_std=${noise}`;
    return `flamelib account ${protocol} delta=${delta} rounds=${steps}`;
  }

  function trainingReview(method, asked, upper) {
    const { noise, steps, delta, joining } = asked;
    const whose = upper === null
      ? ["as this command prints it, rounded up", "all updates of one person, which may be replaced by any others (replace-one)"]
      : [`at most ${written(upper)} (rounded up)`, "one record, which is there or not (add-remove)"];
    const proof = upper === null
      ? `Command, for ${edition()}: ${trained(asked)}. Its answer rests on the book's proposition “The pair of distributed check-in”, over rounds (statement checkin:distributed of the theorem index of flamelib); this bound and its numerical error are proven in the book that comes with the library.`
      : `This was computed by ${edition()} and rests on the book's proposition “Poisson sampling in Rényi orders”, over steps (statements checkin:rem-4, checkin:lem-1 and checkin:lem-2 of the theorem index of flamelib), proven in the book that comes with the library; for rounding of doubles a relative margin of ${ROUNDED} is added to every divergence.`;
    return [
      `${METHODS[method].words(asked)}. The noise has ${noise} times the clipping norm as its standard deviation, and the number of steps or rounds is ${counted(steps)}.`,
      `All of it together is (ε, δ)-differentially private with ε ${whose[0]}, and δ = ${written(delta)}; neighbouring data sets differ in ${whose[1]}.`,
      proof,
      ...(joining < 1 ? ["What is gained because nobody knows who takes part is not counted."] : []),
      "Not stated here: that programs and people follow the protocol, that random numbers are good, that settings were chosen without the data, and what other releases about the same people add.",
    ].join(" ");
  }

  function train() {
    const method = field("method").value;
    for (const label of training.querySelectorAll("[data-of]")) label.hidden = label.dataset.of !== method;
    const tell = (...words) => ["trained", "trained-review", "trained-command"].forEach((name, index) => ($(name).textContent = words[index] ?? ""));
    const ask = () => ({ rate: within("rate", 1e-9, 1), noise: within("noise", 0.01, 1e6), steps: whole("steps", 1), delta: within("failure", 1e-100, 0.5), ...METHODS[method].fields() });
    $("trained-curve").parentElement.hidden = true;
    const asked = read(training, ask, tell);
    if (!asked) return;
    keep(training);
    const upper = asked.crowd ? null : sampled(asked);
    const told = upper === null
      ? "No formula is known for this ε that would run here; the command computes it in seconds."
      : `ε at most ${written(upper)}, with δ = ${written(asked.delta)}, for one record that is there or not: ${attack(upper, asked.delta)}.${upper > grid.farthest ? " So large an ε promises next to nothing." : ""}`;
    tell(told, trainingReview(method, asked, upper), trained(asked));
    if (upper !== null) curve($("trained-curve"), upper, asked.delta);
  }

  /* Page */

  function refuse(sentence, asked) {
    $("told").textContent = sentence;
    $("sheet").hidden = true;
    $("all").textContent = asked ? command(asked) : "";
    table.tBodies[0].replaceChildren();
    $("chart").replaceChildren();
  }

  function update() {
    $("dimension").textContent = form.elements.task.value === "mean" ? "Numbers of each person" : "Answers or items to choose from";
    const asked = read(form, request, refuse);
    if (!asked) return;
    keep(form);
    const far = beyond(asked);
    if (far) return refuse(`${far} The command answers, in seconds to a minute: ${command(asked)}`, asked);
    const rows = ranked(asked);
    const recommended = rank(rows[0], asked) === 0 ? rows[0] : null;
    const serving = rows.filter((one) => rank(one, asked) === 0).length;
    const risky = asked.delta * asked.people >= 1 ? ` A guarantee with δ = ${asked.delta} allows everything about some person to be published: take a δ well below 1 over the number of people.` : "";
    $("told").textContent = `${serving} of ${rows.length} mechanisms serve this request with the trust that you grant.${recommended ? "" : " Grant more trust, a larger budget, or fewer rounds."}${risky}`;
    tell(recommended, asked);
    table.tBodies[0].replaceChildren(...rows.map((one) => line(one, asked, recommended)));
    $("all").textContent = command(asked);
    draw(rows, asked);
  }

  function keep(from) {
    for (const { name } of from.elements) if (name) kept.set(name, name === "trust" ? relied().join("+") : typed(name));
    if (location.hash !== `#${kept}`) history.replaceState(null, "", `#${kept}`);
  }

  function readAddress() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const one of [...form.elements, ...training.elements]) {
      if (!given.has(one.name)) continue;
      const before = one.value;
      if (one.type === "checkbox") one.checked = given.get("trust").split("+").includes(before);
      else one.value = given.get(one.name);
      one.value ||= before; // of a list, what it does not hold leaves it empty
    }
    update();
    train();
  }

  function fill() {
    const groups = Object.entries(BUDGETS).map(([asked, [label, symbol]]) =>
      make("optgroup", grid.budgets[asked].map((size) => new Option(`${symbol} = ${size}`, `${asked}=${size}`)), { label }),
    );
    form.elements.budget.replaceChildren(...groups);
    form.elements.budget.value = "epsilon=1";
    $("trained-curve").append(...$("curve").cloneNode(true).children);
  }

  async function copied(button, text) {
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = label), 1500);
    } catch {
      getSelection().selectAllChildren(text);
    }
  }

  function printed() {
    document.body.classList.add("fl-sheet-only");
    print();
    document.body.classList.remove("fl-sheet-only");
  }

  function receive(recorded) {
    grid = recorded;
    fill();
    legend();
    for (const [from, answered] of [[form, update], [training, train]]) {
      from.addEventListener("input", answered);
      from.addEventListener("submit", (event) => event.preventDefault());
    }
    for (const button of document.querySelectorAll("[data-copies]")) button.addEventListener("click", () => copied(button, $(button.dataset.copies)));
    $("print").addEventListener("click", printed);
    addEventListener("resize", update);
    addEventListener("hashchange", readAddress);
    readAddress();
  }

  return { receive };
})();
