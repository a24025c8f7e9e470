// Compare: two models on the same sentences, a paired test, and where they differ.
import { VIEWS, add, chooser, h, number, percent, redraw } from "../dom.js";
import { choiceOf } from "../address.js";
import { hues } from "../colours.js";
import { rateTile, triedSentence } from "./errors.js";

function verdict(found) {
  const c = found.comparison, better = c.difference > 0 ? found.b : found.a;
  if (c.p_value < 0.05) return `${better} is better: by luck alone a difference like this would come up with probability ${number(c.p_value, 2)}.`;
  return `No difference that luck could not explain: p = ${number(c.p_value, 2)}.`;
}

async function showCompare(root, params, app) {
  add(root, h("h1", {}, "Compare"));
  const body = h("div", {});
  add(root, body);
  const names = app.models.map((model) => model.name);
  const a = choiceOf(app, params, "a", names, names[0]);
  const asked = { a, b: choiceOf(app, params, "b", names, names.find((name) => name !== a)) };
  let found = await app.api.get("/compare", asked);

  async function change(changes) {
    Object.assign(asked, changes);
    app.remember(asked);
    found = await app.api.get("/compare", asked);
    draw();
  }

  async function more() {
    const next = await app.api.get("/compare", { ...asked, offset: found.sentences.length });
    found.sentences.push(...next.sentences);
    draw();
  }

  function interval(c) {
    const most = Math.max(Math.abs(c.low), Math.abs(c.high), 1e-6) * 1.15, at = (value) => ((value + most) / (2 * most)).toFixed(4);
    return h("div", { class: "tile wide" }, h("span", { class: "name" }, "difference, first less second"), h("span", { class: "big" }, `${c.difference < 0 ? "−" : "+"}${percent(Math.abs(c.difference), 2)}`),
      h("span", { class: "interval zero", "aria-hidden": "true", style: { "--low": at(c.low), "--high": at(c.high), "--at": at(c.difference) } }),
      h("span", { class: "hint" }, `${percent(c.low, 2)} to ${percent(c.high, 2)}, for 95 %`.replaceAll("-", "−")));
  }

  function draw() {
    const c = found.comparison, most = Math.max(...found.rates.map((rate) => rate.high)) * 1.1, options = names.map((name) => [name, name]);
    const colours = hues(app.labels);
    redraw(body,
      h("div", { class: "filters" }, chooser("First", options, asked.a, (a) => change({ a })), chooser("Second", options, asked.b, (b) => change({ b }))),
      h("p", { class: "headline" }, verdict(found)),
      found.seen.map((told, i) => told && h("p", { class: "headline warn" }, `${[found.a, found.b][i]}: ${told}`)),
      h("div", { class: "tiles" }, rateTile(found.a, found.rates[0], most), rateTile(found.b, found.rates[1], most), interval(c)),
      h("p", { class: "hint" }, `${number(c.n_only_a_wrong)} tokens are wrong in ${found.a} only, ${number(c.n_only_b_wrong)} in ${found.b} only. The test permutes sentences. Below, what the two label differently is outlined twice.`),
      h("section", { class: "card" }, h("h2", {}, "Sentences that differ ", h("span", { class: "count" }, `${number(found.n_sentences)} of ${number(found.n_all)}`)),
        found.sentences.map((pair) => h("div", { class: "twins" }, triedSentence(pair.a, colours, app, found.a, pair.b.predicted, found.a), triedSentence(pair.b, colours, app, found.b, pair.a.predicted, found.b))),
        found.sentences.length < found.n_sentences && h("button", { type: "button", onclick: more }, "More")));
  }

  draw();
}

VIEWS.compare = { title: "Compare", show: showCompare };
