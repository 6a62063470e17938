/* Chance, for the pages on which something is drawn: a generator from a seed, normal numbers, intervals of shares. */
"use strict";

const flamelibChance = (() => {
  /** Mulberry32, 32 bits of state: numbers in [0, 1). */
  function seeded(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), 1 | state);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  /** A standard normal number, by Box and Muller. */
  const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

  /** How many of so many fair bits are 1. */
  function ones(bits, random) {
    let found = 0;
    for (let left = bits; left > 0; left -= 32) {
      let word = (random() * 4294967296) >>> 0;
      if (left < 32) word >>>= 32 - left;
      word -= (word >>> 1) & 0x55555555;
      word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
      found += Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
    }
    return found;
  }

  /** Chernoff's interval of a chance that was met so often: each of its ends is missed with chance `miss` at most. */
  function share(count, trials, miss) {
    const seen = count / trials;
    const room = Math.log(1 / miss) / trials;
    const part = (a, b) => (a > 0 ? a * Math.log(a / b) : 0);
    const far = (p) => part(seen, p) + part(1 - seen, 1 - p) > room;
    const end = (outer) => {
      let [near, away] = [seen, outer];
      for (let i = 0; i < 60; i++) {
        const middle = (near + away) / 2;
        if (far(middle)) away = middle;
        else near = middle;
      }
      return away;
    };
    return { low: count ? end(0) : 0, high: count < trials ? end(1) : 1 };
  }

  return { seeded, normal, ones, share };
})();
