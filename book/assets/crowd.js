/* Why does a crowd protect you: bags of messages, of which one is Ana's; all others would truthfully say no.
 *
 * A message is true with chance 3/4.  The number of orange messages is all that a bag tells: with N others and X
 * their orange ones, a yes of Ana's adds one with chance 3/4, a no with chance 1/4.  The best player guesses the
 * answer under which the count is likelier; where both are equally likely, yes.
 */
"use strict";

const flamelibCrowd = (() => {
  const TRUE = 3 / 4;
  const SIZES = [1, 10, 100, 10000];
  const $ = (id) => document.getElementById(`crowd-${id}`);
  const score = Object.fromEntries(SIZES.map((n) => [n, { you: [0, 0], best: [0, 0] }]));
  let size = 10;
  let bag = null;

  /* Laws: the counts from `first` on, with their chances if Ana says yes and if she says no. */

  const laws = Object.fromEntries(SIZES.map((n) => [n, lawsOf(n)]));

  /** The orange messages of the others: their chances, and the chances added up. */
  function othersOf(n) {
    const others = n - 1;
    const chance = 1 - TRUE;
    const mode = Math.min(Math.floor((others + 1) * chance), others);
    const pmf = new Float64Array(others + 1);
    // From the mode outwards by ratios, then to one in all: no factorial, and what is lost lies below 1e-300.
    pmf[mode] = 1;
    for (let k = mode; k < others; k++) pmf[k + 1] = (pmf[k] * (others - k) * chance) / ((k + 1) * TRUE);
    for (let k = mode; k > 0; k--) pmf[k - 1] = (pmf[k] * k * TRUE) / ((others - k + 1) * chance);
    const total = pmf.reduce((sum, one) => sum + one, 0);
    let below = 0;
    return { pmf: pmf.map((one) => one / total), upTo: pmf.map((one) => (below += one / total)), largest: 1 / total };
  }

  function lawsOf(n) {
    const { pmf, upTo } = othersOf(n);
    const at = (k) => pmf[k] ?? 0;
    const counts = Array.from({ length: n + 1 }, (_, k) => k);
    return {
      upTo,
      yes: counts.map((k) => TRUE * at(k - 1) + (1 - TRUE) * at(k)),
      no: counts.map((k) => (1 - TRUE) * at(k - 1) + TRUE * at(k)),
    };
  }

  const delta = (n, epsilon) => {
    const { yes, no } = laws[n];
    const excess = (p, q) => p.reduce((sum, one, k) => sum + Math.max(0, one - Math.exp(epsilon) * q[k]), 0);
    return Math.max(excess(yes, no), excess(no, yes));
  };
  const best = (n) => (1 + delta(n, 0)) / 2;
  const guess = (n, count) => laws[n].yes[count] >= laws[n].no[count];

  /* Chance: the page's own, or one from a seed. */

  let random = Math.random;

  function draw(n) {
    const answer = random() < 0.5;
    const messages = Array.from({ length: n }, (_, i) => {
      const truth = i === 0 && answer;
      const blind = random() < 2 * (1 - TRUE);
      return { blind, yes: blind ? random() < 0.5 : truth };
    });
    for (let i = n - 1; i > 0; i--) {
      const j = Math.floor(random() * (i + 1));
      [messages[i], messages[j]] = [messages[j], messages[i]];
    }
    return { answer, messages, count: messages.filter((one) => one.yes).length };
  }

  /** The orange messages of the others, from their law. */
  function others(n) {
    const { upTo } = laws[n];
    const u = random();
    let [low, high] = [0, n - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (upTo[middle] > u) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Right guesses of the best player in so many bags; of a bag only the count is drawn. */
  function play(n, bags) {
    let right = 0;
    for (let i = 0; i < bags; i++) {
      const answer = random() < 0.5;
      const own = random() < (answer ? TRUE : 1 - TRUE);
      right += guess(n, others(n) + own) === answer;
    }
    return right;
  }

  /* What is seen */

  const hue = (name, canvas) => getComputedStyle(canvas).getPropertyValue(`--crowd-${name}`).trim();

  function paint(canvas, messages, lifted) {
    const context = canvas.getContext("2d");
    const { width, height } = canvas;
    const columns = Math.ceil(Math.sqrt((messages.length * width) / height));
    const step = Math.min(width / columns, height / Math.ceil(messages.length / columns));
    const radius = Math.min(step * 0.42, 30);
    const hues = { yes: hue("yes", canvas), no: hue("no", canvas), blind: hue("blind", canvas) };
    context.clearRect(0, 0, width, height);
    messages.forEach((one, i) => {
      const x = ((i % columns) + 0.5) * step;
      const y = (Math.floor(i / columns) + 0.5) * step;
      context.fillStyle = lifted && one.blind ? hues.blind : one.yes ? hues.yes : hues.no;
      context.beginPath();
      // Not by colour alone: yes is round, no is square.
      if (one.yes) context.arc(x, y, radius, 0, 2 * Math.PI);
      else context.rect(x - radius * 0.86, y - radius * 0.86, radius * 1.72, radius * 1.72);
      context.fill();
    });
  }

  const grouped = (number) => number.toLocaleString("en-US");
  const percent = (share) => `${(100 * share).toFixed(share < 0.51 && share > 0.5 ? 2 : 1)} %`;
  /** Three digits, rounded up. */
  const upwards = (number) => {
    const unit = 10 ** (Math.floor(Math.log10(number)) - 2);
    const up = Math.ceil(number / unit - 1e-9) * unit;
    return up >= 1e-4 ? String(Number(up.toPrecision(3))) : up.toExponential(2);
  };
  const tally = ([right, played]) => (played ? `${grouped(right)} of ${grouped(played)}, ${percent(right / played)}` : "–");

  function tell() {
    const many = size > 100 ? " Nobody could count them by eye, so the page counts them for you." : "";
    $("count").textContent = `${grouped(bag.count)} of ${grouped(size)} messages are orange (round).${many}`;
    $("bag").setAttribute("aria-label", `A bag of ${size} messages: ${bag.count} orange, ${size - bag.count} blue`);
    paint($("bag"), bag.messages, false);
    $("score").tBodies[0].replaceChildren(
      ...SIZES.map((n) => {
        const row = document.createElement("tr");
        const cells = [grouped(n), tally(score[n].you), tally(score[n].best), `${Math.ceil(1e4 * best(n) - 1e-9) / 100} %`];
        cells.forEach((text, i) => {
          const cell = document.createElement(i ? "td" : "th");
          if (!i) cell.scope = "row";
          cell.textContent = text;
          row.append(cell);
        });
        return row;
      }),
    );
  }

  function guessed(yes) {
    const right = yes === bag.answer;
    score[size].you[0] += right;
    score[size].you[1] += 1;
    $("told").textContent = `${right ? "Right" : "Wrong"}: Ana's true answer was ${bag.answer ? "yes" : "no"}. Here is the next bag.`;
    bag = draw(size);
    tell();
  }

  function epsilonMoved() {
    const epsilon = Number($("epsilon").value);
    $("epsilon").setAttribute("aria-valuetext", `epsilon ${epsilon.toFixed(2)}`);
    $("epsilon-told").textContent = `ε = ${epsilon.toFixed(2)}: leaving delta aside, the odds of yes rise at most ${(Math.ceil(100 * Math.exp(epsilon) - 1e-9) / 100).toFixed(2)}-fold`;
    $("deltas").tBodies[0].replaceChildren(
      ...SIZES.map((n) => {
        const row = document.createElement("tr");
        const left = delta(n, epsilon);
        const sure = Math.exp(epsilon) / (1 + Math.exp(epsilon));
        const cells = [grouped(n), left < 1e-12 ? "below 1e-12" : upwards(left), `${Math.ceil(1000 * sure) / 10} % sure`];
        cells.forEach((text, i) => {
          const cell = document.createElement(i ? "td" : "th");
          if (!i) cell.scope = "row";
          cell.textContent = text;
          row.append(cell);
        });
        return row;
      }),
    );
  }

  /* Start */

  /** The picture on the front page: a crowd that grows, and what one person's answer is worth in it. */
  function front() {
    const field = $("people");
    const show = () => {
      const n = Math.round(10 ** (Number(field.value) / 4));
      const shown = Math.min(n, 2500);
      const { largest } = othersOf(n);
      const share = (1 + (2 * TRUE - 1) * largest) / 2;
      const crowd = n === 1 ? "1 person: the best guess" : `${grouped(n)} people: the best guess about one of them, if all others are known to say no,`;
      const words = `${crowd} is right in ${Math.ceil(1e4 * share - 1e-9) / 100} % of all cases`;
      field.setAttribute("aria-valuetext", words);
      $("people-told").textContent = `${words}.${n > shown ? ` (${grouped(shown)} of the messages are drawn.)` : ""}`;
      const messages = Array.from({ length: shown }, (_, i) => ({ yes: Math.imul(i + 1, 0x9e3779b1) >>> 30 === 0 }));
      paint($("front"), messages, false);
    };
    field.addEventListener("input", show);
    new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    show();
  }

  document.addEventListener("DOMContentLoaded", () => {
    if ($("people")) front();
    if ($("bag")) game();
  });

  function game() {
    let sample = draw(100);
    const repaint = () => {
      const lifted = $("lift").getAttribute("aria-pressed") === "true";
      paint($("bag"), bag.messages, false);
      paint($("blanket"), sample.messages, lifted);
      const blind = sample.messages.filter((one) => one.blind).length;
      $("blanket-told").textContent = lifted
        ? `${blind} of 100 messages are blind (grey): whatever their senders think, they would be the same.`
        : `${sample.count} of 100 messages are orange.`;
    };
    bag = draw(size);
    tell();
    repaint();
    epsilonMoved();
    $("yes").addEventListener("click", () => guessed(true));
    $("no").addEventListener("click", () => guessed(false));
    $("best").addEventListener("click", () => {
      score[size].best[0] += play(size, 1000);
      score[size].best[1] += 1000;
      tell();
    });
    $("reset").addEventListener("click", () => {
      for (const n of SIZES) Object.assign(score[n], { you: [0, 0], best: [0, 0] });
      $("told").textContent = "";
      tell();
    });
    $("lift").addEventListener("click", () => {
      const lifted = $("lift").getAttribute("aria-pressed") !== "true";
      $("lift").setAttribute("aria-pressed", String(lifted));
      $("lift").textContent = lifted ? "hide them again" : "show which messages are blind";
      if (!lifted) sample = draw(100);
      repaint();
    });
    $("epsilon").addEventListener("input", epsilonMoved);
    for (const one of document.querySelectorAll("input[name=crowd-size]"))
      one.addEventListener("change", () => {
        size = Number(one.value);
        bag = draw(size);
        $("told").textContent = "";
        tell();
      });
    $("print").addEventListener("click", () => {
      document.body.classList.add("fl-sheet-only");
      window.addEventListener("afterprint", () => document.body.classList.remove("fl-sheet-only"), { once: true });
      window.print();
    });
    new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  return { delta, best, play, draw, guess, seed: (seed) => (random = flamelibChance.seeded(seed)) };
})();
