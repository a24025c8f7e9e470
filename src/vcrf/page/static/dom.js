// Elements, numbers and words. Text is always set as text: nothing that a model or a person wrote becomes markup.

const SVG = "http://www.w3.org/2000/svg";

// The views by name: each file of views/ adds its own.
export const VIEWS = {};

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, item] of Object.entries(value)) element.style.setProperty(key, item);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  return add(element, ...children);
}

// Children may be lists, and nothing: null, undefined or false.
function present(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

export function add(element, ...children) {
  element.append(...present(children));
  return element;
}

// The same in place of what is there.
export function put(element, ...children) {
  element.replaceChildren(...present(children));
  return element;
}

// What a person would call a control: it is the same control after a redraw if it has the same name.
function called(element) {
  return `${element.tagName} ${element.getAttribute("aria-label") ?? element.closest("label")?.querySelector("span")?.textContent ?? element.textContent}`;
}

// The same, but the keyboard and tables that were moved sideways stay where they are.
export function redraw(element, ...children) {
  const active = element.contains(document.activeElement) ? document.activeElement : null;
  const name = active && called(active), moved = [...element.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  put(element, ...children);
  element.querySelectorAll(".scroll").forEach((each, i) => { each.scrollLeft = moved[i] ?? 0; });
  if (!active) return element;
  const same = [...element.querySelectorAll(active.tagName)].find((each) => called(each) === name && !each.disabled);
  // What had the focus is gone: go on from where it was.
  if (!same) element.tabIndex = -1;
  (same ?? element).focus({ preventScroll: true });
  return element;
}

export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function percent(share, digits = 1) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)} %`;
}

// A probability for people: it is never shown as 0 or 1 unless it is.
export function probable(p) {
  if (p > 0 && p < 0.0005) return "< 0.1 %";
  if (p < 1 && p > 0.9995) return "> 99.9 %";
  return percent(p, p > 0.1 ? 0 : 1);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential(1) : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
}

export function signed(value, digits = 2) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}

export function say(message) {
  const place = document.getElementById("said");
  if (place) place.textContent = message;
}

export function chooser(label, options, value, onchange) {
  return h("label", { class: "field" }, h("span", {}, label),
    h("select", { onchange: (event) => onchange(event.target.value) },
      options.map(([key, text]) => h("option", { value: key, selected: key === value }, text))));
}

export function note(...children) {
  return h("p", { class: "note" }, ...children);
}

// The head of a table: names, those of columns with numbers after a "#".
export function tableHead(...names) {
  return h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col", class: name.startsWith("#") ? "num" : null }, name.replace(/^#/, "")))));
}

export function later(wait, call) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...args), wait);
  };
}
