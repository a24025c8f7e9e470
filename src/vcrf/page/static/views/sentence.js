// A sentence as a row of tokens: colour by label, strength by probability.
import { h, probable } from "../dom.js";

// Characters of a text in an address.
const MOST = 20_000;

// Words with blanks between them, a sentence a line; for a model that reads attributes, CRFsuite's format: a token a line,
// an empty line between sentences.
export function sentencesOf(text, app) {
  if (app.readsAttributes) return (text ?? "").split(/\n[ \t\r]*\n/).map((block) => block.split("\n").filter((line) => line.trim())).filter((tokens) => tokens.length);
  return (text ?? "").split("\n").map((line) => line.split(/[ \t\r]+/).filter(Boolean)).filter((tokens) => tokens.length);
}

export function textOf(tokens, app) {
  return tokens.join(app.readsAttributes ? "\n" : " ");
}

// As many whole sentences of a text as an address can have.
export function shareable(text, app) {
  if (text.length <= MOST) return text;
  const between = app.readsAttributes ? "\n\n" : "\n";
  let kept = "";
  for (const tokens of sentencesOf(text, app)) {
    const next = (kept && kept + between) + textOf(tokens, app);
    if (next.length > MOST) break;
    kept = next;
  }
  return kept;
}

// What is expected in place of a text that the model cannot read, or nothing.
export function expected(sentences, app) {
  if (!app.readsAttributes || sentences.flat().some((line) => /\t[^\t\r]/.test(line))) return "";
  return "This model reads attributes, not words: a token a line, its label (any) and its attributes between tabs, an empty line between sentences.";
}

// data: tokens, labels, probabilities, unknown; options: hues, chosen, onchoose(t), marks(t) -> extra classes, under(t)
export function sentenceRow(data, { hues, chosen = -1, onchoose = null, classes = () => "", under = null, label = "Sentence" }) {
  const row = h("div", { class: "sentence", role: "group", "aria-label": label, dir: "auto" });
  data.tokens.forEach((token, t) => {
    const p = data.probabilities[t], isNew = data.unknown?.[t];
    const told = `${token}: ${data.labels[t]}, ${probable(p)}${isNew ? ", not in the training data" : ""}`;
    const parts = [h("span", { class: `word${isNew ? " new" : ""}`, dir: "auto" }, token), " ", under ? under(t) : h("span", { class: "tag" }, data.labels[t]),
      h("span", { class: "unseen" }, ` ${probable(p)}${isNew ? ", not in the training data" : ""}`)];
    const attributes = {
      class: `token ${classes(t)}`, title: told, "data-t": t,
      style: { "--hue": hues.get(data.labels[t]) ?? 0, "--p": p.toFixed(3) },
    };
    row.append(onchoose
      ? h("button", { ...attributes, type: "button", "aria-pressed": String(t === chosen), tabindex: t === Math.max(chosen, 0) ? 0 : -1, onclick: () => onchoose(t) }, parts)
      : h("span", attributes, parts));
  });
  if (onchoose) row.addEventListener("keydown", (event) => moveWithArrows(event, row, onchoose));
  return row;
}

function moveWithArrows(event, row, onchoose) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const now = event.target.closest("[data-t]");
  if (!step || !now) return;
  event.preventDefault();
  const forward = getComputedStyle(row).direction === "rtl" ? -step : step;
  const next = row.querySelector(`[data-t="${Number(now.dataset.t) + forward}"]`);
  if (next) {
    next.focus();
    onchoose(Number(next.dataset.t));
  }
}
