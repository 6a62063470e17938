// Filters for the ledger's table: document, kind, verdict, words.  Without this script the whole table shows.
"use strict";
(() => {
  const table = document.querySelector("table.ledger");
  const place = document.getElementById("ledger-controls");
  if (!table || !place) return;

  const text = (cell) => cell.textContent.trim();
  const heads = [...table.tHead.rows[0].cells].map(text);
  const rows = [...table.tBodies[0].rows].map((row) => {
    const found = { row, words: text(row).toLowerCase() };
    heads.forEach((head, i) => { found[head] = text(row.cells[i]); });
    found.document = ([...row.cells[0].querySelectorAll("code")].map(text).pop() || "").split(":")[0];
    return found;
  });

  const labelled = (name, control) => {
    const label = document.createElement("label");
    label.append(name, control);
    place.append(label);
    return control;
  };
  const chooser = (name) => {
    const select = document.createElement("select");
    select.name = name;
    for (const value of ["", ...new Set(rows.map((r) => r[name]))]) select.add(new Option(value || "all", value));
    return labelled(name, select);
  };
  const choosers = ["document", "kind", "said by", "verdict"].map(chooser);
  const words = document.createElement("input");
  words.type = "search";
  words.name = "words";
  labelled("words", words);
  const count = document.createElement("output");
  place.append(count);

  const filter = () => {
    const sought = words.value.toLowerCase().split(/\s+/);
    let seen = 0;
    for (const r of rows) {
      const show = choosers.every((c) => !c.value || r[c.name] === c.value) && sought.every((w) => r.words.includes(w));
      r.row.hidden = !show;
      seen += show;
    }
    count.textContent = `${seen} of ${rows.length} rows`;
  };
  // The address keeps the choice, so that it can be passed on.
  const change = () => {
    filter();
    const chosen = [...choosers, words].filter((c) => c.value).map((c) => [c.name, c.value]);
    history.replaceState(null, "", location.pathname + (chosen.length ? `?${new URLSearchParams(chosen)}` : "") + location.hash);
  };
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const row = target && target.closest("table.ledger tr");
    if (row && row.hidden) {
      choosers.forEach((c) => { c.value = ""; });
      words.value = "";
      filter();
      row.scrollIntoView();
    }
  };

  const asked = new URLSearchParams(location.search);
  for (const control of [...choosers, words]) {
    control.value = asked.get(control.name) || "";
    control.addEventListener("input", change);
  }
  addEventListener("hashchange", reveal);
  filter();
  reveal();
})();
