// Small charts as SVG: lines on linear or logarithmic axes. Each has a title for those who do not see it.
import { h, svg, number, percent } from "./dom.js";

// On a phone a chart is drawn smaller, not shrunk: its letters stay as large as the others.
function chartWidth() {
  return Math.max(300, Math.min(560, innerWidth - 64));
}

const LEFT = 58, RIGHT = 26, TOP = 12, BOTTOM = 40;

function niceStep(span, count) {
  const rough = span / count, base = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * base).find((step) => step >= rough);
}

function linearTicks(low, high, count = 5) {
  const step = niceStep(high - low || 1, count), found = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) found.push(Math.abs(tick) < step * 1e-6 ? 0 : tick);
  return found;
}

function logTicks(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / 6)), found = [];
  for (let k = first; k <= last; k += every) found.push(10 ** k);
  return found.length > 1 ? found : [low, high];
}

function scale(domain, range, isLog) {
  const at = isLog ? Math.log10 : (x) => x;
  const [a, b] = domain.map(at);
  return (value) => range[0] + ((at(value) - a) / (b - a || 1)) * (range[1] - range[0]);
}

function tickText(value, kind) {
  if (kind === "percent") return percent(value, value !== 0 && Math.abs(value) < 0.1 && (value * 100) % 1 > 1e-9 ? 1 : 0);
  if (kind === "log") {
    const k = Math.log10(value);
    return Math.abs(k - Math.round(k)) < 1e-9 && Math.abs(k) > 2 ? `10${superscript(Math.round(k))}` : number(value, 2);
  }
  return number(value, 3);
}

function superscript(k) {
  return String(k).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
}

// series: {name, points: [[x, y]], kind: "line" | "dots" | "dashed", tone: 0..3}; marks: {x, y, name}
export function lineChart({ title, series, x, y, marks = [], height = 260, extra = [] }) {
  const width = chartWidth();
  const shown = series.map((one) => ({ ...one, points: one.points.filter(([a, b]) => isUsable(a, x) && isUsable(b, y)) })).filter((one) => one.points.length);
  const xs = domain(shown.flatMap((one) => one.points.map((p) => p[0])), x);
  const ys = domain(shown.flatMap((one) => one.points.map((p) => p[1])), y);
  const atX = scale(xs, [LEFT, width - RIGHT], x.log), atY = scale(ys, [height - BOTTOM, TOP], y.log);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": described(title, shown, x, y), class: "chart" });
  for (const tick of y.log ? logTicks(...ys) : linearTicks(...ys)) {
    picture.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: atY(tick), y2: atY(tick), class: "grid" }),
      svg("text", { x: LEFT - 8, y: atY(tick) + 4, "text-anchor": "end" }, tickText(tick, y.log ? "log" : y.kind)));
  }
  for (const tick of x.log ? logTicks(...xs) : linearTicks(...xs, width < 450 ? 4 : 6)) {
    picture.append(svg("line", { x1: atX(tick), x2: atX(tick), y1: height - BOTTOM, y2: height - BOTTOM + 4, class: "axis" }),
      svg("text", { x: atX(tick), y: height - BOTTOM + 18, "text-anchor": "middle" }, tickText(tick, x.log ? "log" : x.kind)));
  }
  picture.append(svg("line", { x1: LEFT, x2: width - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM, class: "axis" }),
    svg("text", { x: (LEFT + width - RIGHT) / 2, y: height - 6, "text-anchor": "middle", class: "name" }, x.name));
  for (const one of extra) picture.append(one({ atX, atY, xs, ys }));
  shown.forEach((one, i) => picture.append(drawn(one, one.tone ?? i, atX, atY)));
  for (const mark of marks) {
    picture.append(svg("g", { class: "mark" },
      svg("line", { x1: atX(mark.x), x2: atX(mark.x), y1: TOP, y2: height - BOTTOM }),
      svg("circle", { cx: atX(mark.x), cy: atY(mark.y), r: 5 })));
  }
  return h("figure", { class: "figure" }, h("figcaption", {}, title), picture,
    shown.length > 1 && h("ul", { class: "legend", "aria-hidden": "true" }, shown.map((one, i) => h("li", { class: `tone${one.tone ?? i} ${one.kind ?? "line"}` }, one.name))));
}

function isUsable(value, axis) {
  return value !== null && Number.isFinite(value) && (!axis.log || value > 0);
}

function domain(values, axis) {
  if (!values.length) return axis.log ? [0.1, 1] : [0, 1];
  let low = axis.min ?? Math.min(...values), high = axis.max ?? Math.max(...values);
  if (axis.log) return low === high ? [low / 2, high * 2] : [low, high];
  if (axis.min === undefined && axis.fit !== true) low = Math.min(low, 0);
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

function drawn(one, tone, atX, atY) {
  const group = svg("g", { class: `series tone${tone} ${one.kind ?? "line"}` });
  const path = one.points.map(([a, b], i) => `${i ? "L" : "M"}${atX(a).toFixed(1)} ${atY(b).toFixed(1)}`).join("");
  if (one.kind !== "dots") group.append(svg("path", { d: path }));
  if (one.points.length < 60 && one.kind !== "dashed") for (const [a, b] of one.points) group.append(svg("circle", { cx: atX(a), cy: atY(b), r: one.kind === "dots" ? 4 : 2.5 }));
  return group;
}

function described(title, series, x, y) {
  const ends = series.map((one) => {
    const [a, b] = [one.points[0], one.points.at(-1)];
    return `${one.name}: from ${tickText(a[1], y.kind)} at ${x.name} ${tickText(a[0], x.kind)} to ${tickText(b[1], y.kind)} at ${tickText(b[0], x.kind)}`;
  });
  return `${title}. ${ends.join("; ")}.`;
}

// A bar with a text beside it; share is from 0 to 1.
export function bar(share, tone = "") {
  return h("span", { class: `bar ${tone}`, "aria-hidden": "true", style: { "--share": Math.max(0, Math.min(1, share)).toFixed(4) } });
}
