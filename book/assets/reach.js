/* What is wider than its place scrolls sideways, and whatever scrolls can be reached by keyboard. */
(() => {
  const WIDE = "mjx-container[display=true], div.math, .pst-scrollable-table-container, .fl-table, div.highlight pre, div.cell_output";
  const mark = () => {
    for (const element of document.querySelectorAll(WIDE)) {
      const scrolls = element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible";
      if (scrolls) element.tabIndex = 0;
      else if (element.getAttribute("tabindex") === "0") element.removeAttribute("tabindex");
    }
  };
  /* Entries of a bibliography have a role of their own, which a list may not have as its children. */
  addEventListener("DOMContentLoaded", () => document.querySelectorAll(".citation-list[role=list]").forEach((e) => e.removeAttribute("role")));
  /* The arrow that unfolds pages in the list of contents bears the name of the page that they stand under. */
  addEventListener("DOMContentLoaded", () => document.querySelectorAll("details > summary").forEach((arrow) => {
    const page = arrow.parentElement.parentElement.querySelector(":scope > a");
    if (page && !arrow.textContent.trim()) arrow.setAttribute("aria-label", `Pages under ${page.textContent.trim()}`);
  }));
  addEventListener("load", () => Promise.resolve(window.MathJax?.startup?.promise).then(mark));
  addEventListener("resize", mark);
})();
