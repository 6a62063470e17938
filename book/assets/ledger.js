// Filters for the ledger's tables: document, kind, verdict, words.  Without this script all rows show.
"use strict";
(() => {
  const tables = [...document.querySelectorAll("table.ledger")];
  const place = document.getElementById("ledger-controls");
  if (!tables.length || !place) return;

  const text = (cell) => cell.textContent.trim();
  const heads = [...tables[0].tHead.rows[0].cells].map(text);
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]).map((row) => {
    const found = { row, words: text(row).toLowerCase(), group: row.closest("details") };
    heads.forEach((head, i) => { found[head] = text(row.cells[i]); });
    found.document = ([...row.cells[0].querySelectorAll("code")].map(text).pop() || "").split(":")[0];
    return found;
  });
  const groups = new Map(tables.map((table) => [table.closest("details"), []]));
  rows.forEach((r) => groups.get(r.group).push(r));

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
  count.setAttribute("aria-live", "polite");
  place.append(count);

  // A table is one stop of the tabulator: its rows and their links are reached by the arrow keys.
  const links = (row) => [...row.querySelectorAll("a")];
  const visible = (table) => [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const stop = (table, chosen) => {
    if (!chosen) return;
    table.querySelectorAll("tbody a[tabindex='0']").forEach((link) => { link.tabIndex = -1; });
    chosen.tabIndex = 0;
  };
  const restop = (table) => {
    const now = table.querySelector("tbody a[tabindex='0']");
    if (!now || now.closest("tr").hidden) stop(table, visible(table).flatMap(links)[0]);
  };
  for (const table of tables) {
    table.querySelectorAll("tbody a").forEach((link) => { link.tabIndex = -1; });
    table.addEventListener("focusin", (event) => { if (event.target.matches("tbody a")) stop(table, event.target); });
    table.addEventListener("keydown", (event) => {
      const row = event.target.matches("tbody a") && event.target.closest("tr");
      if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
      const all = visible(table);
      const at = all.indexOf(row);
      const along = links(row).indexOf(event.target);
      const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
      const beside = { ArrowRight: along + 1, ArrowLeft: along - 1 }[event.key];
      if (to === undefined && beside === undefined) return;
      event.preventDefault();
      const found = to === undefined ? links(row)[beside] : all[to] && (links(all[to])[along] || links(all[to])[0]);
      if (found) found.focus();
    });
  }

  const filter = () => {
    const sought = words.value.toLowerCase().split(/\s+/);
    const chosen = words.value || choosers.some((c) => c.value);
    let seen = 0;
    for (const [group, members] of groups) {
      let here = 0;
      for (const r of members) {
        const show = choosers.every((c) => !c.value || r[c.name] === c.value) && sought.every((w) => r.words.includes(w));
        r.row.hidden = !show;
        here += show;
      }
      seen += here;
      group.hidden = !here;
      group.open = Boolean(chosen && here);
      group.querySelector("summary span").textContent = chosen ? `${here} of ${members.length} rows` : `${members.length} rows`;
    }
    tables.forEach(restop);
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
    if (!row) return;
    if (row.hidden) {
      choosers.forEach((c) => { c.value = ""; });
      words.value = "";
      filter();
    }
    row.closest("details").open = true;
    row.scrollIntoView({ block: "center" });
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
