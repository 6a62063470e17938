/* The form of a notebook's page: checks for comfort, the state in the address, the command, the file of parameters; and,
 * where the page comes from `make live`, the run itself.  Whatever is run is checked again by the server. */
"use strict";

(() => {
  const $ = (name) => document.getElementById(`own-${name}`);
  const box = document.getElementById("own");
  const form = box.querySelector("form");
  const { notebook } = box.dataset; // not the form's: to a form its fields are properties, "dataset" too
  const fields = [...form.querySelectorAll("input[data-known]")];
  const vary = form.querySelector("[name=own-vary]");
  const top = new URL(document.documentElement.dataset.content_root ?? "../", location.href);
  const known = new Map(fields.map((field) => [field, JSON.parse(field.dataset.known)]));
  const make = (kind, content = [], told = {}) => {
    const element = Object.assign(document.createElement(kind), told);
    element.append(...content);
    return element;
  };

  /* Values: what the library's domains say, in its words */

  const EXACT = 2 ** 53;
  const NUMBER = /^[-+]?(\d[\d_]*\.?\d*|\.\d+)(e[-+]?\d+)?$/i;

  const inside = (domain, text) => {
    const number = NUMBER.test(text) ? Number(text.replaceAll("_", "")) : NaN;
    return (
      Number.isFinite(number) &&
      (!domain.whole || Number.isInteger(number)) &&
      (domain.whole && domain.low === undefined ? Math.abs(number) <= EXACT : true) &&
      (domain.low === undefined || number > domain.low || (!domain.open_low && number === domain.low)) &&
      (domain.high === undefined || number < domain.high || (!domain.open_high && number === domain.high)) &&
      (!domain.least || number <= 0 || number >= domain.least)
    );
  };

  const fits = (domain, text) => {
    if (domain.choices) return domain.choices.includes(text);
    return domain.kind === "str" || inside(domain, text);
  };

  /** The texts of one field: one, or several where the reader varies. */
  function values(field) {
    const { list } = known.get(field);
    return vary.checked ? field.value.split(list ? ";" : ",").map((one) => one.trim()) : [field.value.trim()];
  }

  function refusal(field) {
    const domain = known.get(field);
    for (const value of values(field)) {
      for (const one of domain.list ? value.split(",").map((part) => part.trim()) : [value]) {
        if (fits(domain, one)) continue;
        return `${field.name} must be ${domain.domain}, got ${one.includes("'") ? `"${one}"` : `'${one}'`}`;
      }
    }
    return "";
  }

  /* Conditions that join several values, as `flamebook.runs.domain` reads them: nested lists, whole or real numbers */

  const jointly = JSON.parse(box.dataset.jointly || "[]");
  const fail = (why) => {
    throw new RangeError(why);
  };
  const finite = (number) => (Number.isFinite(number) ? number : fail("no number"));
  const divided = (a, b) => (b === 0 ? fail("division by zero") : a / b);
  const even = (x) => (Math.abs(x % 1) === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));
  const most = (which) => (...parts) => which(...(parts.length === 1 ? parts[0] : parts));
  const DOES = {
    list: (...parts) => parts,
    at: (values, place) => values.at(place) ?? fail("no such entry"),
    neg: (a) => -a,
    not: (a) => !a,
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": divided,
    "//": (a, b) => Math.floor(divided(a, b)),
    "%": (a, b) => a - b * Math.floor(divided(a, b)),
    "**": (a, b) => finite(a ** b),
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "==": (a, b) => a === b,
    "!=": (a, b) => a !== b,
    in: (a, others) => others.includes(a),
    "not in": (a, others) => !others.includes(a),
    abs: Math.abs,
    ceil: (x) => Math.ceil(finite(x)),
    exp: (x) => finite(Math.exp(x)),
    expm1: (x) => finite(Math.expm1(x)),
    floor: (x) => Math.floor(finite(x)),
    len: (values) => values.length,
    log: (x) => finite(Math.log(x)),
    log1p: (x) => finite(Math.log1p(x)),
    log2: (x) => finite(Math.log2(x)),
    max: most(Math.max),
    min: most(Math.min),
    round: even,
    sqrt: (x) => finite(Math.sqrt(x)),
    sum: (values) => values.reduce((a, b) => a + b, 0),
  };

  function worth(tree, taken) {
    if (tree === null || typeof tree !== "object") return tree;
    if (!Array.isArray(tree)) return taken[tree.of];
    const [sign, ...parts] = tree;
    if (sign === "and") return parts.every((part) => worth(part, taken));
    if (sign === "or") return parts.some((part) => worth(part, taken));
    return DOES[sign](...parts.map((part) => worth(part, taken)));
  }

  const tried = (tree, taken, otherwise) => {
    try {
      return worth(tree, taken);
    } catch {
      return otherwise;
    }
  };

  /** A number in the form that Python gives it: six digits, or all of them. */
  function python(number, digits) {
    if (Array.isArray(number)) return number.map((one) => python(one, digits)).join(",");
    if (typeof number !== "number") return String(number);
    const [mantissa, power] = (digits ? number.toExponential(digits - 1) : number.toExponential()).split("e");
    const exponent = Number(power);
    if (exponent < -4 || exponent >= (digits || 16)) {
      const short = mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa;
      return `${short}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    }
    if (digits) return String(Number(number.toPrecision(digits)));
    return Number.isInteger(number) ? `${number}.0` : String(number);
  }

  const told = (number, whole) => (whole ? [number].flat().join(",") : python(number, 6));

  /** What the fields hold, as numbers, lists and words; nothing where a whole number is too large for a browser. */
  function held() {
    const read = (domain, text) => (domain.kind === "str" ? text : domain.kind === "bool" ? text === "true" : Number(text.replaceAll("_", "")));
    const taken = {};
    for (const field of fields) {
      const domain = known.get(field);
      taken[field.name] = domain.list ? field.value.split(",").map((one) => read(domain, one.trim())) : read(domain, field.value.trim());
      if (domain.whole && [taken[field.name]].flat().some((one) => Math.abs(one) > EXACT)) return null;
    }
    return taken;
  }

  /** The first condition that does not hold, in the library's words, with the nearest value that mends it. */
  function together() {
    const taken = swept() ? null : held();
    const broken = taken && jointly.find((one) => !tried(one.holds, taken, false));
    if (!broken) return "";
    const sentence = broken.told.map((part) => {
      if (typeof part === "string") return part;
      const value = tried(part[1], taken, null); // A limit may have none here.
      return value === null ? "" : part[0] + told(value, part[2]);
    }).join("");
    if (!broken.mend) return sentence;
    const [name, remedy] = broken.mend;
    const domain = known.get(fields.find((field) => field.name === name));
    const value = tried(remedy, taken, null);
    if (value === null || [value].flat().some((one) => !inside(domain, String(one)))) return sentence;
    if (!jointly.every((one) => tried(one.holds, { ...taken, [name]: value }, false))) return sentence;
    const text = domain.whole ? [value].flat().join(",") : [value].flat().map((one) => python(one)).join(",");
    return `${sentence}; the nearest admissible value is ${name}=${text}`;
  }

  /** What differs from the page: name to text. */
  const changed = () => Object.fromEntries(
    fields.filter((field) => field.value.trim() !== field.defaultValue).map((field) => [field.name, values(field).join(known.get(field).list ? ";" : ",")]),
  );
  const swept = () => vary.checked && fields.some((field) => values(field).length > 1);
  /** Every value that a run must be told: it takes the notebook's defaults, and the page may have others. */
  const given = () => Object.fromEntries(
    fields.filter((field) => field.value.trim() !== field.defaultValue || field.defaultValue !== field.dataset.default)
      .map((field) => [field.name, values(field).join(known.get(field).list ? ";" : ",")]),
  );

  /* The command and the file */

  const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`);
  const command = () => ["flamelib", swept() ? "sweep" : "run", notebook, ...Object.entries(given()).map(([name, text]) => `-p ${quoted(`${name}=${text}`)}`)].join(" ");

  function yaml(domain, text) {
    if (domain.list) return `[${text.split(",").map((one) => yaml({ ...domain, list: false }, one.trim())).join(", ")}]`;
    if (domain.kind === "str") return JSON.stringify(text);
    if (domain.kind === "bool") return text;
    if (domain.whole) return /^\d+$/.test(text) ? text : String(BigInt(Number(text.replaceAll("_", ""))));
    const number = String(Number(text.replaceAll("_", "")));
    if (number.includes("e")) return number.includes(".") ? number : number.replace("e", ".0e"); // a number to YAML 1.1
    return number.includes(".") ? number : `${number}.0`;
  }

  function file() {
    const lines = fields.map((field) => `${field.name}: ${yaml(known.get(field), field.value.trim())}\n`);
    const link = make("a", [], { href: URL.createObjectURL(new Blob(lines, { type: "application/yaml" })), download: `${notebook}.yml` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /* The address */

  function keep() {
    const address = new URL(location.href);
    fields.forEach((field) => address.searchParams.delete(field.name));
    address.searchParams.delete("vary");
    Object.entries(changed()).forEach(([name, text]) => address.searchParams.set(name, text));
    if (vary.checked) address.searchParams.set("vary", "1");
    try {
      history.replaceState(null, "", address);
    } catch {
      /* A browser may refuse this to a page from disk. */
    }
  }

  function open() {
    const asked = new URLSearchParams(location.search);
    const named = fields.filter((field) => asked.has(field.name));
    vary.checked = asked.has("vary");
    named.forEach((field) => {
      field.value = asked.get(field.name);
    });
    if (named.length || location.hash === "#own") box.open = true;
  }

  /* What is shown */

  const lasting = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} minutes`);

  function refuse(sentence) {
    $("refusal").textContent = sentence;
  }

  function update() {
    let first = "";
    for (const field of fields) {
      const sentence = refusal(field);
      first ||= sentence;
      field.setAttribute("aria-invalid", String(Boolean(sentence)));
      field.classList.toggle("fl-changed", field.value.trim() !== field.defaultValue);
    }
    first ||= together();
    refuse(first);
    $("command").textContent = command();
    $("file").hidden = $("papermill").hidden = swept();
    for (const name of ["file", "copy"]) $(name).disabled = Boolean(first);
    keep();
    return first;
  }

  /* The server */

  let watching = null;

  const ask = async (path, options = {}) => {
    const answer = await fetch(new URL(`api/live${path}`, top), options);
    const told = await answer.json();
    if (!answer.ok) throw new Error(told.refused ?? answer.statusText);
    return told;
  };

  const state = {
    queued: (job) => `waits, place ${job.place} in the queue`,
    running: (job) => {
      const far = job.total ? `, ${job.points ? "point" : "cell"} ${job.done} of ${job.total}` : "";
      return `runs for ${lasting(job.seconds)}${far}${job.expected ? `; the page's own took ${lasting(job.expected)}` : ""}`;
    },
    done: () => "",
    partly: () => "not all could be made",
    failed: () => "failed",
    cancelled: () => "cancelled",
  };

  function line(job) {
    const words = Object.entries(job.changed).map(([name, value]) => `${name}=${value}`).join(" ") || "the page's values";
    const active = job.state === "queued" || job.state === "running";
    const parts = [make("code", [words]), " "];
    if (job.address) parts.push(make("a", [job.points ? "open the table and the picture" : "open the page"], { href: new URL(job.address, top).href }));
    parts.push([state[job.state](job), job.told].filter(Boolean).join(": "));
    if (job.state === "running") parts.push(" ", make("progress", [], job.total ? { max: job.total, value: job.done, ariaLabel: "progress" } : { ariaLabel: "progress" }));
    if (active) {
      const cancel = make("button", ["Cancel"], { type: "button", ariaLabel: `Cancel ${words}` });
      cancel.addEventListener("click", () => ask(`/jobs/${job.id}`, { method: "DELETE" }).then(watch, (fault) => refuse(fault.message)));
      parts.push(" ", cancel);
    }
    const item = make("li", parts, { className: `fl-own-${job.state}` });
    item.dataset.id = job.id;
    return item;
  }

  async function watch() {
    clearTimeout(watching);
    let jobs = [];
    try {
      jobs = await ask(`/jobs?notebook=${notebook}`);
    } catch {
      return refuse("the server does not answer any more");
    }
    // A button that has the keyboard keeps it.
    const held = document.activeElement?.closest("#own-jobs li")?.dataset.id;
    $("jobs").replaceChildren(...jobs.slice(0, 8).map(line));
    if (held) $("jobs").querySelector(`li[data-id="${held}"] :is(button, a)`)?.focus();
    if (jobs.some((job) => job.state === "queued" || job.state === "running")) watching = setTimeout(watch, 1000);
  }

  async function submit(event) {
    event.preventDefault();
    if (update() || $("here").hidden) return;
    const parameters = Object.fromEntries(fields.map((field) => [field.name, values(field).join(known.get(field).list ? ";" : ",")]));
    const body = JSON.stringify({ notebook, parameters, sweep: swept() });
    try {
      await ask("/jobs", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      await watch();
    } catch (fault) {
      refuse(fault.message);
    }
  }

  /** Whether the page comes from `make live`; asked once, when a reader opens the form, and never of a disk. */
  let asked = false;
  async function look() {
    if (asked || !box.open || !location.protocol.startsWith("http")) return;
    asked = true;
    try {
      await ask("");
      $("here").hidden = false;
      $("all").href = "../own/"; // an address that only this server has
      await watch();
    } catch {
      /* A site of files alone. */
    }
  }

  const seconds = typeof flamebookTimes === "undefined" ? 0 : flamebookTimes[notebook];
  if (seconds) $("time").textContent = `The page's own run took ${lasting(seconds)}; other values may take longer. Every value is checked before anything starts.`;
  open();
  update();
  look();
  box.addEventListener("toggle", look);
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", submit);
  $("file").addEventListener("click", file);
  $("copy").addEventListener("click", () => navigator.clipboard?.writeText($("command").textContent));
})();
