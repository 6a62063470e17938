/* Formulas are set in pieces, so that a long page is there at once: before all others those in sight, or down to the
   place that the address names. */
(() => {
  const PIECE = 60; // formulas: about a tenth of a second, as long as a reader may be kept waiting
  const { MathJax } = window;
  if (!MathJax || MathJax.startup) return;
  const set = async (formulas) => {
    await window.MathJax.typesetPromise(formulas);
    dispatchEvent(new CustomEvent("formulas", { detail: formulas }));
  };
  const loaded = new Promise((done) => addEventListener("load", done, { once: true }));
  const pageReady = async () => {
    const formulas = [...document.querySelectorAll(".math")];
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const sight = innerHeight + Math.max(0, place ? place.getBoundingClientRect().top : 0);
    const near = formulas.filter((formula) => formula.getBoundingClientRect().top < sight);
    await set(near);
    await loaded;
    const others = formulas.filter((formula) => !near.includes(formula));
    while (others.length) {
      await new Promise((next) => setTimeout(next));
      await set(others.splice(0, PIECE));
    }
  };
  MathJax.startup = { pageReady };
})();
