/* The chart of the page of sliders: epsilon against the number of users, one curve for each bound, both axes logarithmic. */
"use strict";

const flamelibChart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 360;
  const MARGIN = { left: 62, right: 14, top: 14, bottom: 46 };
  const DASHES = { kary: "", laplace: "6 3", any: "2 3", binary: "" };
  const LOWEST = -8; // a bound below 1e-8 is off the chart

  function put(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  const look = (row) => ({ class: `fl-curve fl-${row.key.split("-").slice(0, -2).join("-")}`, "stroke-dasharray": row.recorded ? "" : DASHES[row.about] });

  const raised = (exponent) => [...String(exponent)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign])).join("");
  const power = (exponent) => (exponent === 0 ? "1" : exponent === 1 ? "10" : `10${raised(exponent)}`);

  /** Draw the series (by key of row; numbers, "inf" or null) and mark one number of users. */
  function draw(chart, rows, users, series, marked) {
    chart.replaceChildren();
    const shown = Object.values(series).flat().filter((value) => typeof value === "number" && value > 0);
    if (!shown.length) return;
    const width = Math.max(320, Math.min(760, chart.parentElement.clientWidth));
    chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const low = Math.max(LOWEST, Math.floor(Math.log10(Math.min(...shown))));
    const frame = {
      left: MARGIN.left,
      right: width - MARGIN.right,
      top: MARGIN.top,
      bottom: HEIGHT - MARGIN.bottom,
      first: Math.log10(users[0]),
      last: Math.log10(users.at(-1)),
      low,
      high: Math.max(low + 1, Math.ceil(Math.log10(Math.max(...shown)))),
    };
    frame.x = (n) => frame.left + ((Math.log10(n) - frame.first) / (frame.last - frame.first)) * (frame.right - frame.left);
    frame.y = (e) => frame.top + ((frame.high - Math.log10(e)) / (frame.high - frame.low)) * (frame.bottom - frame.top);
    axes(chart, frame);
    for (const row of rows) curve(chart, frame, row, users, series[row.key] ?? []);
    if (marked >= users[0] && marked <= users.at(-1)) upright(chart, frame, marked, "fl-mark");
  }

  const upright = (chart, frame, n, name) => put(chart, "line", { class: name, x1: frame.x(n), x2: frame.x(n), y1: frame.top, y2: frame.bottom });

  function axes(chart, frame) {
    for (let at = Math.ceil(frame.first); at <= frame.last; at++) {
      upright(chart, frame, 10 ** at, "fl-grid");
      put(chart, "text", { x: frame.x(10 ** at), y: frame.bottom + 18, "text-anchor": "middle" }, power(at));
    }
    for (let at = frame.low; at <= frame.high; at++) {
      const y = frame.y(10 ** at);
      put(chart, "line", { class: "fl-grid", x1: frame.left, x2: frame.right, y1: y, y2: y });
      put(chart, "text", { x: frame.left - 6, y: y + 4, "text-anchor": "end" }, power(at));
    }
    put(chart, "text", { x: (frame.left + frame.right) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "users n");
    const turned = `translate(16 ${(frame.top + frame.bottom) / 2}) rotate(-90)`;
    put(chart, "text", { transform: turned, "text-anchor": "middle" }, "ε after shuffling");
  }

  const circle = (x, y) => `M${(x - 3).toFixed(1)} ${y.toFixed(1)}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;

  /** A curve breaks where its bound says nothing; what was recorded is points, between which nothing is drawn. */
  function curve(chart, frame, row, users, series) {
    let path = "";
    let pen = "M";
    series.forEach((value, index) => {
      const drawn = typeof value === "number" && value >= 10 ** frame.low;
      const [x, y] = drawn ? [frame.x(users[index]), frame.y(value)] : [];
      if (drawn) path += row.recorded ? circle(x, y) : `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = drawn ? "L" : "M";
    });
    put(put(chart, "path", { ...look(row), d: path }), "title", {}, row.words);
  }

  function legend(list, rows) {
    for (const row of rows) {
      const item = document.createElement("li");
      const sample = put(item, "svg", { viewBox: "0 0 28 8", "aria-hidden": "true" });
      put(sample, "path", { ...look(row), d: row.recorded ? circle(14, 4) : "M1 4H27" });
      item.append(row.words);
      list.append(item);
    }
  }

  return { draw, legend };
})();
