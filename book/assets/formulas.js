/* Formulas are set in pieces, so that a long page is there at once: before all others those in sight, or down to the
   place that the address names. */
(() => {
  const PIECE = 60; // formulas: about a tenth of a second, as long as a reader may be kept waiting
  const SIGHT = 1.5; // windows: what other scripts do to the page meanwhile moves what stands below by less than half of one
  /* Its settings, whose place it takes when it comes; the page of an own run brings it along and sets all at once. */
  const { MathJax } = window;
  if (!MathJax || MathJax.startup) return;
  const set = async (formulas) => {
    await window.MathJax.typesetPromise(formulas);
    dispatchEvent(new CustomEvent("formulas", { detail: formulas }));
  };
  const loaded = new Promise((done) => addEventListener("load", done, { once: true }));
  const pageReady = async () => {
    const left = new Set(document.querySelectorAll(".math"));
    const place = document.getElementById(location.hash.slice(1));
    const take = (formulas) => {
      formulas.forEach((formula) => left.delete(formula));
      return set(formulas);
    };
    const near = () => {
      const end = SIGHT * innerHeight + Math.max(0, place ? place.getBoundingClientRect().top : 0);
      return [...left].filter((formula) => formula.getBoundingClientRect().top < end);
    };
    /* What is set is shorter than what was typed, so that more comes into sight. */
    for (let formulas = near(); formulas.length; formulas = near()) await take(formulas);
    await loaded;
    while (left.size) {
      await new Promise((next) => setTimeout(next));
      await take([...left].slice(0, PIECE));
    }
  };
  MathJax.startup = { pageReady };
})();
