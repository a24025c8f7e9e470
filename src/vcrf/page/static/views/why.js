// Why: the features for the label against those for the runner-up, as a waterfall.
import { VIEWS, add, h, note, number, probable, put, signed, tableHead } from "../dom.js";
import { allowedOf, asEntries, indexOf, writeAllowed } from "../address.js";
import { hues } from "../colours.js";
import { bar } from "../charts.js";
import { expected, sentenceRow, sentencesOf, textOf } from "./sentence.js";

const SHOWN = 14;

function waterfall(found, tokens) {
  const top = found.contributions.slice(0, SHOWN), rest = found.contributions.slice(SHOWN);
  const rows = top.map((c) => ({ ...c, name: c.attribute, at: tokens[c.position] }));
  if (rest.length) rows.push({ family: "", name: `${rest.length} more features`, at: "", labels: [], value: rest.reduce((sum, c) => sum + c.value, 0) });
  let sum = 0;
  const steps = rows.map((row) => ({ ...row, from: sum, to: (sum += row.value) }));
  const ends = steps.flatMap((step) => [step.from, step.to]).concat(0, found.difference);
  const low = Math.min(...ends), span = Math.max(...ends) - low || 1;
  const place = (a, b) => ({ "--from": ((Math.min(a, b) - low) / span).toFixed(4), "--size": (Math.abs(b - a) / span).toFixed(4) });
  const zero = { "--zero": (-low / span).toFixed(4) };
  const line = (step) => h("tr", {},
    h("th", { scope: "row" }, h("span", { class: "attribute", dir: "auto" }, step.words ?? step.name), h("span", { class: "family" }, step.words && step.words !== step.name && step.name !== step.family && h("span", { dir: "auto" }, `${step.name} · `), step.family, step.labels.length > 0 && h("span", { class: "phone" }, ` · ${step.labels.join(" → ")}`))),
    h("td", { class: "at", dir: "auto" }, step.at),
    h("td", { class: "pattern" }, step.labels.join(" → ")),
    h("td", { class: "wide", style: zero }, h("span", { class: `step ${step.value < 0 ? "against" : "for"}`, "aria-hidden": "true", style: place(step.from, step.to) })),
    h("td", { class: "num" }, signed(step.value)));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Contributions" }, h("table", { class: "waterfall" },
    tableHead("feature", "at token", "tag pattern", "sum so far", "#adds"),
    h("tbody", {}, steps.map(line)),
    h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "together"), h("td", {}), h("td", {}), h("td", { class: "wide", style: zero }, h("span", { class: "step all", "aria-hidden": "true", style: place(0, found.difference) })), h("td", { class: "num" }, signed(found.difference))))));
}

function byFamily(found) {
  const sums = Object.entries(found.families), most = Math.max(...sums.map(([, v]) => Math.abs(v)), 1e-9);
  return h("section", { class: "card" }, h("h2", {}, "By family"), h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, sums.slice(0, 12).map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "wide" }, bar(Math.abs(value) / most, value < 0 ? "against" : "for")), h("td", { class: "num" }, signed(value))))))));
}

async function showWhy(root, params, app) {
  const tokens = sentencesOf(params.text ?? app.example, app)[0] ?? [];
  add(root, h("h1", {}, "Why"));
  if (!tokens.length && !app.api.isStatic) {
    add(root, note("Choose a token in ", h("a", { href: app.link("tag", {}) }, "Tag"), " first."));
    return;
  }
  if (expected([tokens], app)) {
    add(root, note(expected([tokens], app)));
    return;
  }
  const body = h("div", {});
  add(root, body);
  let chosen = indexOf(app, params, "t", 0, tokens);
  const bound = allowedOf(app, params, [tokens].filter((x) => x.length)), allowed = asEntries(bound, tokens), n = allowed?.filter(Boolean).length ?? 0;
  const tagged = await app.api.post("/tag", { model: app.model, sentences: [tokens], k: 0, allowed: allowed && [allowed] });
  const sentence = tagged.sentences[0];
  const every = app.api.isStatic ? (await app.api.post("/explain")).explanations : null;

  async function draw(t, isMoved) {
    chosen = Math.max(0, Math.min(t, sentence.tokens.length - 1));
    app.remember({ text: textOf(tokens, app), t: chosen, a: writeAllowed(bound) });
    const found = every ? every[chosen] : (await app.api.post("/explain", { model: app.model, tokens, position: chosen, allowed })).explanations[0];
    const row = sentenceRow(sentence, { hues: hues(tagged.names), chosen, onchoose: (next) => draw(next, true), classes: (t) => (allowed?.[t] ? "bound" : "") });
    put(body, row, n > 0 && forced(), headline(found), ...(found.runner_up === null ? [] : [
      h("section", { class: "card" }, h("h2", {}, "What decided"), waterfall(found, sentence.tokens)), runnerUp(found, sentence), byFamily(found)]));
    if (isMoved) row.querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
  }

  function forced() {
    return h("p", { class: "hint" }, `Labels are forced or forbidden at ${n} ${n === 1 ? "token" : "tokens"}: these are the reasons given that. `,
      h("a", { href: app.link("tag", { text: textOf(tokens, app), t: chosen, a: writeAllowed(bound) }) }, "Back to the labels"));
  }

  function headline(found) {
    const word = h("strong", { dir: "auto" }, found.token);
    if (found.runner_up === null) return h("p", { class: "headline" }, word, " is ", h("strong", {}, found.label), ": no other label is possible there.");
    return h("p", { class: "headline" }, word, " is ", h("strong", {}, found.label), ` (${probable(found.probability)}) rather than `, h("strong", {}, found.runner_up),
      ` (${probable(found.runner_up_probability)}): the best sequence scores ${number(found.difference)} more than the best one without ${found.label} here.`);
  }

  function runnerUp(found, data) {
    const differ = found.runner_up_sequence.map((label, t) => [t, label]).filter(([t, label]) => label !== data.labels[t]);
    return h("p", { class: "hint" }, "The runner-up labels ", differ.map(([t, label], i) => [i ? ", " : "", h("span", { dir: "auto" }, data.tokens[t]), ` as ${label}`]), "; elsewhere the two agree.");
  }

  await draw(chosen, false);
}

VIEWS.why = { title: "Why", show: showWhy };
