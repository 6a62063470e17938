/* The chart of a figure that moves: a few curves over one axis, each as the page was told; both axes may be logarithmic. */
"use strict";

const flamelibChart = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const MARGIN = { left: 62, right: 14, top: 14, bottom: 46 };

  function put(parent, tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  const look = ({ hue, dash }) => ({ class: `fl-curve fl-hue-${hue}`, "stroke-dasharray": dash });

  const raised = (exponent) => [...String(exponent)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign])).join("");
  const power = (exponent) => (exponent === 0 ? "1" : exponent === 1 ? "10" : `10${raised(exponent)}`);
  const plain = (value) => (value !== 0 && (value < 1e-3 || value >= 1e6) ? value.toExponential(0).replace("e+", "e") : String(Number(value.toPrecision(3))));

  /** A scale between two values: where a value lies from 0 to 1, and its marks with their words. */
  function scale(log, low, high) {
    if (!log) {
      const step = [1, 2, 5, 10].map((one) => one * 10 ** Math.floor(Math.log10((high - low) / 8))).find((one) => (high - low) / one <= 8);
      const marks = Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, at) => (Math.ceil(low / step) + at) * step);
      return { at: (value) => (value - low) / (high - low), marks: marks.map((value) => [value, plain(value)]), low, high };
    }
    const [first, last] = [Math.log10(low), Math.log10(high)];
    const every = Math.max(1, Math.ceil((last - first) / 9));
    let marks = [];
    for (let at = Math.ceil(first - 1e-9); at <= last + 1e-9; at += every) marks.push([10 ** at, power(at)]);
    if (last - first < 1.9) {
      const few = (decade) => [1, 2, 5].map((one) => one * 10 ** decade);
      const near = Array.from({ length: 5 }, (_, at) => few(Math.floor(first) + at)).flat();
      marks = near.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)).map((value) => [value, plain(value)]);
    }
    return { at: (value) => (Math.log10(value) - first) / (last - first), marks, low, high };
  }

  /** The scale of what the curves show, in whole decades where it is logarithmic. */
  function upwards({ log, least, most }, found) {
    let shown = Object.values(found).flatMap(({ y }) => y).filter((value) => typeof value === "number" && (value > 0 || !log));
    if (log) shown = shown.filter((value) => value >= least && value <= most);
    if (!shown.length) return null;
    const [low, high] = [Math.min(...shown), Math.max(...shown)];
    if (!log) return scale(false, Math.min(0, low), high > 0 ? 1.05 * high : 1);
    const floor = Math.floor(Math.log10(low) + 1e-9);
    return scale(true, 10 ** floor, 10 ** Math.max(floor + 1, Math.ceil(Math.log10(high) - 1e-9)));
  }

  /** Draw a figure: `found` has for each curve its points (numbers, "inf" or null); one place on the axis is marked. */
  function draw(chart, figure, found, marked) {
    chart.replaceChildren();
    const up = upwards(figure.y, found);
    if (!up) return;
    const width = Math.max(320, Math.min(760, chart.parentElement.clientWidth));
    const height = width < 480 ? 270 : 360;
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const frame = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: height - MARGIN.bottom, up };
    const along = scale(figure.x.log, figure.x.low, figure.x.high);
    frame.x = (value) => frame.left + along.at(value) * (frame.right - frame.left);
    frame.y = (value) => frame.bottom - up.at(value) * (frame.bottom - frame.top);
    axes(chart, frame, along, figure);
    for (const one of figure.curves) curve(chart, frame, one, found[one.key] ?? { x: [], y: [] });
    if (marked >= figure.x.low && marked <= figure.x.high) upright(chart, frame, marked, "fl-mark");
  }

  const upright = (chart, frame, at, name) => put(chart, "line", { class: name, x1: frame.x(at), x2: frame.x(at), y1: frame.top, y2: frame.bottom });

  function axes(chart, frame, along, figure) {
    for (const [value, text] of along.marks) {
      upright(chart, frame, value, "fl-grid");
      put(chart, "text", { x: frame.x(value), y: frame.bottom + 18, "text-anchor": "middle" }, text);
    }
    for (const [value, text] of frame.up.marks) {
      const y = frame.y(value);
      put(chart, "line", { class: "fl-grid", x1: frame.left, x2: frame.right, y1: y, y2: y });
      put(chart, "text", { x: frame.left - 6, y: y + 4, "text-anchor": "end" }, text);
    }
    put(chart, "text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 38, "text-anchor": "middle" }, figure.x.label);
    const turned = `translate(16 ${(frame.top + frame.bottom) / 2}) rotate(-90)`;
    put(chart, "text", { transform: turned, "text-anchor": "middle" }, figure.y.label);
  }

  const circle = (x, y) => `M${(x - 3).toFixed(1)} ${y.toFixed(1)}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;

  /** A curve breaks where its bound says nothing; what was recorded is points, and in steps between them what they imply. */
  function curve(chart, frame, one, { x, y }) {
    const lines = [];
    let points = "";
    let last = null;
    y.forEach((value, index) => {
      const drawn = typeof value === "number" && value >= frame.up.low * (1 - 1e-9) && value <= frame.up.high * (1 + 1e-9);
      const at = drawn ? [frame.x(x[index]), frame.y(value)].map((one) => one.toFixed(1)) : null;
      if (drawn && one.recorded) points += circle(Number(at[0]), Number(at[1]));
      if (drawn && last && (one.steps || !one.recorded)) lines.push(one.steps < 0 ? `H${at[0]}V${at[1]}` : one.steps > 0 ? `V${at[1]}H${at[0]}` : `L${at.join(" ")}`);
      else if (drawn) lines.push(`M${at.join(" ")}`);
      last = at;
    });
    const group = put(chart, "g", {});
    put(group, "title", {}, one.words);
    put(group, "path", { ...look(one), d: lines.join("") });
    if (points) put(group, "path", { class: `fl-point-of fl-hue-${one.hue}`, d: points });
  }

  /** A sample of a curve, for a legend. */
  function sample(parent, one) {
    const svg = put(parent, "svg", { class: "fl-sample", viewBox: "0 0 28 8", "aria-hidden": "true" });
    if (one.steps || !one.recorded) put(svg, "path", { ...look(one), d: "M1 4H27" });
    if (one.recorded) put(svg, "path", { class: `fl-point-of fl-hue-${one.hue}`, d: circle(14, 4) });
  }

  function legend(list, curves) {
    for (const one of curves) {
      const item = document.createElement("li");
      sample(item, one);
      item.append(one.words, Object.assign(document.createElement("b"), { textContent: one.value ?? "" }));
      list.append(item);
    }
  }

  return { draw, legend, sample };
})();
