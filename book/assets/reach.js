/* What is wider than its place scrolls sideways in a frame: while there is more on a side, that edge fades behind an
   arrow; and as long as it scrolls it can be reached by keyboard, under a name. */
(() => {
  const WIDE = "mjx-container, .pst-scrollable-table-container, .fl-table, .fl-pan, .fl-fig :is(.only-light, .only-dark), div.highlight pre, div.cell_output";
  const ours = { role: "region", tabindex: "0" };
  const words = (element) => element?.textContent.replace(/[#\s]+$/, "").trim();
  const named = (element) => {
    if (element.matches("mjx-container")) return ["Formula", words(element.parentElement.closest("div.math")?.querySelector(".eqno"))];
    if (element.matches("pre")) return ["Code"];
    if (element.querySelector("table")) return ["Table", words(element.querySelector("caption")) || words(element.closest("section")?.querySelector("h1, h2, h3"))];
    return [element.querySelector("svg, img") ? "Figure" : "Output", words(element.closest("figure")?.querySelector(".caption-number"))];
  };
  const edge = (side, arrow) => {
    const made = document.createElement("div");
    made.className = `fl-edge fl-edge-${side}`;
    made.setAttribute("aria-hidden", "true");
    made.append(document.createElement("span"));
    made.firstChild.textContent = arrow;
    return made;
  };
  const frame = (element) => {
    const made = document.createElement("div");
    made.className = "fl-frame";
    element.replaceWith(made);
    made.append(element, edge("before", "\u2190"), edge("more", "\u2192"));
    element.addEventListener("scroll", () => fade(element), { passive: true });
    return made;
  };
  const fade = (element) => {
    const { scrollLeft, clientWidth, parentElement: around } = element;
    around.classList.toggle("fl-before", scrollLeft > 1);
    around.classList.toggle("fl-more", scrollLeft + clientWidth < width(element) - 1);
  };
  /* On a phone a table that is too wide becomes cards, a row each, whose lines begin with the heading of their column. */
  const phone = matchMedia("(max-width: 720px)");
  const label = (table) => {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows])) {
      if (row.cells.length !== heads.length) continue;
      heads.forEach((head, at) => {
        const cell = row.cells[at];
        if ("label" in cell.dataset) return;
        const formula = head.querySelector("mjx-container");
        cell.dataset.label = formula || !words(head) ? "" : `${words(head)}: `;
        if (!formula) return;
        const spoken = document.createElement("span");
        spoken.className = "fl-label";
        spoken.append(...head.cloneNode(true).childNodes, ": ");
        cell.prepend(spoken);
      });
    }
  };
  const card = (element) => {
    const table = element.querySelector("table");
    if (!phone.matches || !table?.tHead?.rows.length) return;
    if (element.scrollWidth > element.clientWidth + 1) table.classList.add("fl-cards");
    if (table.classList.contains("fl-cards")) label(table);
  };
  /* What is spoken of a formula is wider than what is seen, which counts in a line. */
  const inline = (element) => element.matches("mjx-container:not([display])");
  const width = (element) => (inline(element) ? (element.firstElementChild?.getBoundingClientRect().width ?? 0) : element.scrollWidth);
  /* A formula within a line is set a little smaller if it fits then; else it scrolls on a line of its own. */
  const LEAST = 0.75;
  const shrink = (elements) => {
    elements.filter((element) => element.dataset.size).forEach((element) => (element.style.fontSize = element.dataset.size));
    const wide = elements.map((element) => [element, element.clientWidth, width(element)]).filter(([, place, own]) => place && own > place + 1);
    for (const [element, place, own] of wide) {
      const share = place / own;
      element.dataset.size ??= element.style.fontSize;
      if (share > LEAST) element.style.fontSize = `${Math.floor(0.99 * share * parseFloat(element.dataset.size))}%`;
    }
  };
  const mark = (element, scrolls) => {
    const framed = element.parentElement.classList.contains("fl-frame");
    if (!scrolls && !framed) return;
    if (!framed) frame(element);
    fade(element);
    if (scrolls && !("reach" in element.dataset)) {
      /* What has a role, as a picture, has a name of its own. */
      const wanted = element.hasAttribute("role") ? { tabindex: "0" } : { ...ours, "aria-label": `${named(element).filter(Boolean).join(" ")}, scrolls sideways` };
      const given = Object.entries(wanted).filter(([attribute]) => !element.hasAttribute(attribute));
      for (const [attribute, value] of given) element.setAttribute(attribute, value);
      element.dataset.reach = given.map(([attribute]) => attribute).join(" ");
    } else if (!scrolls && "reach" in element.dataset) {
      for (const attribute of element.dataset.reach.split(" ").filter(Boolean)) element.removeAttribute(attribute);
      delete element.dataset.reach;
    }
  };
  /* All widths are read before anything is written: the page is laid out anew after each change that is read. */
  const fit = (elements) => {
    elements.forEach(card);
    shrink(elements.filter(inline));
    const scrolling = elements.map((element) => width(element) > element.clientWidth + 1 && (inline(element) || getComputedStyle(element).overflowX !== "visible"));
    elements.forEach((element, at) => mark(element, scrolling[at]));
  };
  const watch = new ResizeObserver((all) => fit(all.map(({ target }) => target)));
  const look = (within) => {
    const elements = within.flatMap((part) => [...part.querySelectorAll(WIDE)]);
    elements.forEach((element) => watch.observe(element));
    fit(elements);
  };
  /* No line begins with the point, comma or bracket that follows a formula. */
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".bd-article span.math").forEach((formula) => {
    const after = formula.nextSibling;
    const marks = after?.nodeType === Node.TEXT_NODE ? /^[.,;:!?)\]\u2019]+/.exec(after.data)?.[0] : "";
    if (!marks) return;
    const together = document.createElement("span");
    together.className = "fl-together";
    formula.replaceWith(together);
    together.append(formula, marks);
    after.data = after.data.slice(marks.length);
  }));
  /* A number with an exponent stays on one line. */
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".bd-article td").forEach((cell) => {
    if (/^[-\d.]+e-\d+$/.test(cell.textContent.trim())) cell.style.whiteSpace = "nowrap";
  }));
  addEventListener("DOMContentLoaded", () => look([document]));
  addEventListener("load", () => Promise.resolve(window.MathJax?.startup?.promise).then(() => look([document])));
  addEventListener("formulas", ({ detail }) => look(detail));

  addEventListener("DOMContentLoaded", () => {
    /* Entries of a bibliography have a role of their own, which a list may not have as its children. */
    document.querySelectorAll(".citation-list[role=list]").forEach((e) => e.removeAttribute("role"));
    /* The arrow that unfolds pages in the list of contents bears the name of the page that they stand under. */
    document.querySelectorAll("details > summary").forEach((arrow) => {
      const page = arrow.parentElement.parentElement.querySelector(":scope > a");
      if (page && !arrow.textContent.trim()) arrow.setAttribute("aria-label", `Pages under ${page.textContent.trim()}`);
    });
    /* What unfolds code says which. */
    document.querySelectorAll("details.hide > summary").forEach((toggle) => {
      const code = toggle.parentElement.querySelector("pre")?.textContent ?? "";
      const told = /\bname="([^"]+)"/.exec(code)?.[1] ?? code.trim().split("\n")[0];
      const more = document.createElement("code");
      more.className = "visually-hidden";
      more.textContent = ` of ${told}`;
      toggle.removeAttribute("aria-label");
      toggle.append(more);
    });
  });
})();
