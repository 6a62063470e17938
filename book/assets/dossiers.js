/* Refutations to take apart: switches choose a combination, and rounds of the protocol are drawn and counted.
 *
 * What is claimed, the exact delta, and the outcomes that the attack watches for come with the page; here the messages
 * are drawn, as the parties would send them, and rounds are counted whose outcome is watched for.  With the shares p of
 * the first data set and q of the second, delta is at least p - e^epsilon q.
 */
"use strict";

const flamelibDossiers = (() => {
  const MISS = 0.05 / 4; // two shares, two ends each: together 95 %
  const AT_ONCE = 10000; // rounds between two looks at the page
  const { normal, ones, share } = flamelibChance;
  const known = {};
  let random = Math.random;

  const tossed = (chance) => random() < chance;
  const among = (n, chance) => {
    let found = 0;
    for (let i = 0; i < n; i++) found += tossed(chance);
    return found;
  };

  /* One round each: what is seen openly, and the number.  `first` says in which data set. */

  const rounds = {
    /** One coordinate: a report of +C in the first data set, of -C or nothing in the second, among dummies. */
    flame(given, at, first) {
      const reported = at.choice === "largest" || tossed(given.sampling_rate);
      const value = first ? 1 : at.other === "opposite" ? -1 : 0;
      const own = tossed(!reported || value === 0 ? 0.5 : value > 0 ? given.true : 1 - given.true);
      return [0, own + (at.order === "mixed" ? ones(given.padded - 1, random) : 0)];
    },

    /** One round of check-in: the first client holds +1 or -1, all others -1, sums are counted from all -1 on. */
    checkin(given, at, first) {
      let [count, number] = [0, 0];
      for (let client = 0; client < given.n_users; client++) {
        if (!tossed(given.checkin_rate) || (at.dropouts === "some" && tossed(given.lost))) continue;
        count += 1;
        const high = client === 0 && first;
        if (at.noise === "shuffled") number += tossed(high ? given.true : 1 - given.true);
        else number += (high ? 2 : 0) + (at.noise === "clients" ? given.noise_std * normal(random) : 0);
      }
      if (at.noise === "server") number += given.noise_std * Math.sqrt(given.n_users * given.checkin_rate) * normal(random);
      return [count, number];
    },

    /** One client's part of a noisy sum, in units of the noise and of the clip, which are equal. */
    participation(given, at, first) {
      const drawn = among(given.others, given.record_rate);
      const own = first === (at.change === "removed") && tossed(given.record_rate);
      const sum = tossed(given.participation_rate) ? own + (at.others === "equal" ? drawn : 0) : 0;
      return [at.count === "told" ? drawn : 0, sum + normal(random)];
    },
  };

  /** How many of so many rounds end in an outcome that is watched for. */
  function play(record, key, first, times) {
    const at = Object.fromEntries(key.split(" ").map((one, i) => [record.switches[i], one]));
    const { watched } = record.cases[key];
    let found = 0;
    for (let i = 0; i < times; i++) {
      const [seen, number] = rounds[record.name](record.given, at, first);
      found += watched[seen]?.some(([low, high]) => low < number && number < high) ?? false;
    }
    return found;
  }

  /** The interval of delta, at least 95 %. */
  function counted({ epsilon }, [one, other, times]) {
    const [p, q] = [share(one, times, MISS), share(other, times, MISS)];
    const factor = Math.exp(epsilon);
    return { low: p.low - factor * q.high, high: p.high - factor * q.low };
  }

  /* What is seen */

  /** Three digits, away from the middle of the interval. */
  function written(number, up) {
    if (number === 0) return "0";
    const unit = 10 ** (Math.floor(Math.log10(Math.abs(number))) - 2);
    const told = (up ? Math.ceil : Math.floor)(number / unit) * unit;
    return Math.abs(told) >= 1e-4 ? String(Number(told.toPrecision(3))) : told.toExponential(2);
  }

  const drawn = (name, attributes, words = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = words;
    return made;
  };

  /** Claim, truth and interval on one axis of powers of ten, from 1e-10 to 1; smaller ones stand at its left end. */
  function scale(svg, one, interval) {
    const x = (delta) => 110 + 480 * (1 + Math.log10(Math.min(1, Math.max(delta, 1e-10))) / 10);
    const parts = [];
    for (let power = -10; power <= 0; power += 2) {
      parts.push(drawn("line", { x1: x(10 ** power), x2: x(10 ** power), y1: 4, y2: 80, class: "fl-dossier-grid" }));
      parts.push(drawn("text", { x: x(10 ** power), y: 99, "text-anchor": "middle" }, power === -10 ? "≤1e-10" : power ? `1e${power}` : "1"));
    }
    ["claimed", "exact", "counted"].forEach((word, i) => parts.push(drawn("text", { x: 0, y: 19 + 26 * i }, word)));
    parts.push(drawn("rect", { x: 110, y: 10, width: x(one.claimed) - 110, height: 8, class: "fl-dossier-claimed" }));
    parts.push(drawn("circle", { cx: x(one.exact), cy: 40, r: 6, class: "fl-dossier-exact" }));
    if (interval) {
      const [low, high] = [x(interval.low), x(interval.high)];
      parts.push(drawn("rect", { x: low, y: 62, width: Math.max(high - low, 2), height: 8, class: "fl-dossier-counted-bar" }));
    }
    svg.replaceChildren(...parts);
    const beside = interval ? `, counted from ${written(interval.low, false)} to ${written(interval.high, true)}` : "";
    svg.setAttribute("aria-label", `Delta on a scale of powers of ten: claimed ${one.told[1]}, exact ${one.told[2]}${beside}`);
  }

  function start(section) {
    const record = JSON.parse(section.querySelector("script[type='application/json']").textContent);
    const fields = [...section.querySelectorAll("fieldset")];
    const [go, forget] = section.querySelectorAll("button");
    const tallies = {};
    known[record.name] = record;
    const chosen = () => fields.map((field) => field.querySelector("input:checked").value);

    /** The positions that alone, from here, change the verdict: their words. */
    function decisive(at) {
      const turned = (i, value) => record.cases[at.map((one, k) => (k === i ? value : one)).join(" ")].contradicted;
      const here = record.cases[at.join(" ")].contradicted;
      return fields.flatMap((field, i) => [...field.querySelectorAll("input")].filter((one) => turned(i, one.value) !== here))
        .map((one) => `“${one.parentElement.textContent.trim()}”`);
    }

    function tell() {
      const at = chosen();
      const one = record.cases[at.join(" ")];
      const [epsilon, claimed, exact] = one.told;
      const verdict = section.querySelector(".fl-dossier-verdict");
      const word = document.createElement("strong");
      word.textContent = one.contradicted ? "Contradicted" : "Not contradicted";
      word.className = one.contradicted ? "verdict verdict-refuted" : "verdict verdict-reproduced";
      const turns = decisive(at);
      const alone = turns.length
        ? `${one.contradicted ? "The contradiction vanishes with" : "A contradiction appears with"} ${turns.join("; or with ")}.`
        : "No single switch changes this.";
      const bound = one.contradicted ? "at least" : "at most";
      verdict.replaceChildren(word, ` at ε = ${epsilon}: the claimed δ is ${claimed}, and that of these data sets is ${bound} ${exact}. ${alone}`);
      const tally = tallies[at.join(" ")];
      const interval = tally && counted(one, tally);
      scale(section.querySelector("svg"), one, interval);
      section.querySelector(".fl-dossier-counted").textContent = tally
        ? `Outcomes in S, in ${tally[2].toLocaleString("en-US")} rounds each: ${tally[0].toLocaleString("en-US")} with the first data set, ` +
          `${tally[1].toLocaleString("en-US")} with the second. So δ lies between ${written(Math.max(0, interval.low), false)} and ` +
          `${written(interval.high, true)}, with a confidence of 95 % or more` +
          (interval.low > one.claimed ? ": counting alone contradicts the claim." : ".")
        : "Nothing has been played with these switches yet.";
    }

    async function playOn() {
      const key = chosen().join(" ");
      go.disabled = true;
      for (let done = 0; done < record.rounds; done += AT_ONCE) {
        const tally = (tallies[key] ??= [0, 0, 0]);
        const times = Math.min(AT_ONCE, record.rounds - done);
        tally[0] += play(record, key, true, times);
        tally[1] += play(record, key, false, times);
        tally[2] += times;
        await new Promise((next) => setTimeout(next));
      }
      go.disabled = false;
      tell();
    }

    for (const field of fields) field.addEventListener("change", tell);
    go.addEventListener("click", playOn);
    forget.addEventListener("click", () => {
      for (const key of Object.keys(tallies)) delete tallies[key];
      tell();
    });
    tell();
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".fl-dossier").forEach(start));

  /** For tests: the interval of a combination after so many rounds from a seed. */
  function trial(name, key, times, seed) {
    random = flamelibChance.seeded(seed);
    const record = known[name];
    return counted(record.cases[key], [play(record, key, true, times), play(record, key, false, times), times]);
  }

  return { trial, share };
})();
