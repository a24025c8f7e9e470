// Errors: rates with intervals, the confusion matrix, and the sentences behind each cell.
import { VIEWS, add, chooser, h, note, number, percent, probable, redraw, say } from "../dom.js";
import { choiceOf } from "../address.js";
import { hues } from "../colours.js";
import { sentenceRow } from "./sentence.js";

export function rateTile(name, rate, most) {
  if (!rate) return h("div", { class: "tile" }, h("span", { class: "name" }, name), h("span", { class: "big" }, "–"));
  const top = Math.min(1, most);
  const at = (value) => Math.min(1, value / top).toFixed(4);
  return h("div", { class: "tile" }, h("span", { class: "name" }, name), h("span", { class: "big" }, percent(rate.rate, 2)),
    h("span", { class: "interval", "aria-hidden": "true", style: { "--low": at(rate.low), "--high": at(rate.high), "--at": at(rate.rate) } }),
    h("span", { class: "hint" }, `${percent(rate.low, 2)} to ${percent(rate.high, 2)} · ${number(rate.n_wrong)} of ${number(rate.n)}`));
}

function matrix(found, params, choose) {
  const { labels } = found;
  const most = Math.max(1, ...found.matrix.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const cell = (n, i, j) => {
    if (i === j) return h("td", { class: "diagonal" }, n ? number(n) : "");
    if (!n) return h("td", {}, "");
    const isChosen = params.true === labels[i] && params.predicted === labels[j];
    return h("td", {}, h("button", { type: "button", class: "cell", "aria-pressed": String(isChosen), "aria-label": `${n} times ${labels[i]} labelled ${labels[j]}`, style: { "--heat": (0.12 + 0.88 * Math.sqrt(n / most)).toFixed(3) }, onclick: () => choose(isChosen ? "" : labels[i], isChosen ? "" : labels[j]) }, number(n)));
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix" }, h("table", { class: "matrix" },
    h("caption", {}, "True labels by row, predicted ones by column"),
    h("thead", {}, h("tr", {}, h("td", {}), labels.map((label) => h("th", { scope: "col" }, h("span", {}, label))))),
    h("tbody", {}, found.matrix.map((row, i) => h("tr", {}, h("th", { scope: "row" }, labels[i]), row.map((n, j) => cell(n, i, j)))))));
}

// other: the labels of another model, to mark where the two differ; model: whose labels these are, if not of the page's.
export function triedSentence(sentence, colours, app, title, other = null, model = null) {
  const wrong = new Set(sentence.wrong);
  return h("article", { class: "tried" },
    h("header", {}, h("span", { class: "hint" }, title ?? sentence.source),
      app.has("why") && !app.api.isStatic && h("a", { href: app.link("why", { ...(model && { model }), text: sentence.tokens.join(" "), t: sentence.wrong[0] ?? 0 }) }, "Why?")),
    sentenceRow({ ...sentence, labels: sentence.predicted }, {
      hues: colours, label: "Predicted labels", classes: (t) => `${wrong.has(t) ? "wrong" : ""} ${other && other[t] !== sentence.predicted[t] ? "differs" : ""}`,
      under: (t) => (wrong.has(t)
        ? h("span", { class: "tag" }, h("s", { title: `predicted, ${probable(sentence.probabilities[t])}` }, sentence.predicted[t]), " ", h("b", { title: "true" }, sentence.true[t]))
        : h("span", { class: "tag" }, sentence.predicted[t])),
    }));
}

const ORDERS = [["surest", "surest mistakes first"], ["doubtful", "least sure first"], ["most", "most mistakes first"], ["file", "as in the file"]];

async function showErrors(root, params, app) {
  const asked = { model: app.model, true: params.true ?? "", predicted: params.predicted ?? "", unknown: params.unknown === "1" ? "1" : "", sort: choiceOf(app, params, "sort", ORDERS.map(([name]) => name), "surest") };
  add(root, h("h1", {}, "Errors"));
  const found = await app.api.get("/errors", asked);
  const all = app.api.isStatic ? found.sentences : null;
  const body = h("div", {});
  add(root, body);
  let rows = found.sentences, count = found.n_sentences;

  function matches(row) {
    return row.wrong.some((t) => (!asked.true || row.true[t] === asked.true) && (!asked.predicted || row.predicted[t] === asked.predicted) && (!asked.unknown || row.unknown[t]));
  }

  const sorters = { surest: (r) => -Math.max(...r.wrong.map((t) => r.probabilities[t])), doubtful: (r) => Math.min(...r.probabilities), most: (r) => -r.wrong.length, file: (r) => r.number };

  async function change(changes) {
    Object.assign(asked, changes);
    app.remember({ true: asked.true, predicted: asked.predicted, unknown: asked.unknown, sort: asked.sort === "surest" ? "" : asked.sort });
    if (all) {
      rows = all.filter(matches).sort((a, b) => sorters[asked.sort](a) - sorters[asked.sort](b));
      count = rows.length;
    } else {
      const next = await app.api.get("/errors", asked);
      [rows, count] = [next.sentences, next.n_sentences];
    }
    draw();
    say(`${count} sentences`);
  }

  async function more() {
    const next = await app.api.get("/errors", { ...asked, offset: rows.length });
    rows = rows.concat(next.sentences);
    draw();
  }

  function draw() {
    const most = Math.max(0.02, ...[found.token_error, found.unknown_word_error].filter(Boolean).map((rate) => rate.high)) * 1.1;
    const colours = hues(app.labels ?? found.labels);
    const what = asked.true || asked.predicted ? `${asked.true || "anything"} labelled ${asked.predicted || "otherwise"}` : asked.unknown ? "errors at unknown words" : "all errors";
    redraw(body,
      h("p", { class: "hint" }, `${found.model} on ${found.data}; intervals are for 95 % and take sentences for independent.`),
      found.seen && h("p", { class: "headline warn" }, found.seen),
      h("div", { class: "tiles" }, rateTile("tokens", found.token_error, most), rateTile("unknown words", found.unknown_word_error, most), rateTile("sentences with an error", found.sentence_error, 1)),
      h("section", { class: "card" }, h("h2", {}, "Confusions"), matrix(found, asked, (t, p) => change({ true: t, predicted: p }))),
      h("section", { class: "card" }, h("h2", {}, `Sentences: ${what} `, h("span", { class: "count" }, number(count))),
        h("div", { class: "filters" }, chooser("Order", ORDERS, asked.sort, (sort) => change({ sort })),
          h("label", { class: "field check" }, h("input", { type: "checkbox", checked: asked.unknown === "1", onchange: (event) => change({ unknown: event.target.checked ? "1" : "" }) }), h("span", {}, "only unknown words")),
          (asked.true || asked.predicted) && h("button", { type: "button", class: "small", onclick: () => change({ true: "", predicted: "" }) }, "All confusions")),
        rows.map((row) => triedSentence(row, colours, app)),
        !rows.length && note("No sentence has such an error."),
        !all && rows.length < count && h("button", { type: "button", onclick: more }, `More (${number(count - rows.length)} left)`)));
  }

  if (all && (asked.true || asked.unknown || asked.sort !== "surest")) await change({});
  else draw();
}

VIEWS.errors = { title: "Errors", show: showErrors };
