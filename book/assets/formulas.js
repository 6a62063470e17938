/* Formulas are set in pieces, so that a long page is there at once: those in sight and near it first, about the place
   that the address names if it names one, and the others, nearest first, while nobody waits; for paper, all at once. */
(() => {
  const PIECE = 60; // formulas: about a tenth of a second, as long as a reader may be kept waiting
  const NEAR = 0.5; // windows above and below what is in sight
  /* Its settings, whose place it takes when it comes; the page of an own run brings it along and sets all at once. */
  const { MathJax } = window;
  if (!MathJax || MathJax.startup) return;
  const told = (formulas) => dispatchEvent(new CustomEvent("formulas", { detail: formulas }));
  const named = () => document.getElementById(location.hash.slice(1));
  /* Whether it is idle: a reader who scrolls comes first. */
  const free = () => new Promise((done) => {
    addEventListener("scroll", () => done(false), { once: true });
    (window.requestIdleCallback ?? setTimeout)(() => done(true));
  });
  const away = (formula) => {
    const { top, bottom } = formula.getBoundingClientRect();
    return Math.max(0, -bottom, top - innerHeight) / innerHeight;
  };
  const pageReady = async () => {
    let left = [...document.querySelectorAll(".math")];
    /* A page that is loaded anew, or gone back to, stays where its reader was. */
    let place = performance.getEntriesByType("navigation")[0]?.type === "navigate" && named();
    addEventListener("hashchange", () => (place = named()));
    addEventListener("beforeprint", () => {
      window.MathJax.typeset(left);
      told(left.splice(0));
    });
    for (let idle = false; left.length; ) {
      if (place) place.scrollIntoView({ behavior: "instant" });
      const distances = new Map(left.map((formula) => [formula, away(formula)]));
      left.sort((one, other) => distances.get(one) - distances.get(other));
      const near = left.findLastIndex((formula) => distances.get(formula) < NEAR) + 1;
      const formulas = left.splice(0, near || (idle ? PIECE : 0));
      if (formulas.length) {
        await window.MathJax.typesetPromise(formulas);
        told(formulas);
      } else place = null;
      idle = !formulas.length && (await free());
    }
  };
  MathJax.startup = { pageReady };
})();
