/* Formulas are set in pieces, so that a long page is there at once: those in sight and near it first, and the others,
   nearest first, while nobody waits; for paper, all at once. */
(() => {
  const PIECE = 60; // formulas: about a tenth of a second, as long as a reader may be kept waiting
  const NEAR = 0.5; // windows above and below what is in sight
  const BAR = 60; // pixels of the bar over the page
  /* Its settings, whose place it takes when it comes; the page of an own run brings it along and sets all at once. */
  const { MathJax } = window;
  if (!MathJax || MathJax.startup) return;
  const top = (element) => element.getBoundingClientRect().top;
  const announce = (formulas) => dispatchEvent(new CustomEvent("formulas", { detail: formulas }));
  const set = async (formulas) => {
    /* What is read stays where it is, also in a browser that does not see to it. */
    const kept = !CSS.supports("overflow-anchor", "auto")
      && [...document.querySelectorAll("article :is(p, li, h2, h3)")].find((element) => top(element) >= BAR);
    const before = kept && top(kept);
    await window.MathJax.typesetPromise(formulas);
    announce(formulas);
    if (kept) scrollBy(0, top(kept) - before);
  };
  /* Whether nobody waits: a reader who scrolls comes first. */
  const free = () => new Promise((done) => {
    addEventListener("scroll", () => done(false), { once: true });
    (window.requestIdleCallback ?? setTimeout)(() => done(true));
  });
  const away = (formula) => {
    const { top, bottom } = formula.getBoundingClientRect();
    return Math.max(0, -bottom, top - innerHeight) / innerHeight;
  };
  const pageReady = async () => {
    const left = [...document.querySelectorAll(".math")];
    addEventListener("beforeprint", () => {
      window.MathJax.typeset(left);
      announce(left.splice(0));
    });
    for (let idle = false; left.length; ) {
      const distances = new Map(left.map((formula) => [formula, away(formula)]));
      left.sort((one, other) => distances.get(one) - distances.get(other));
      const near = left.filter((formula) => distances.get(formula) < NEAR).length;
      const formulas = left.splice(0, near || (idle ? PIECE : 0));
      if (formulas.length) await set(formulas);
      idle = !formulas.length && (await free());
    }
  };
  MathJax.startup = { pageReady };
})();
