// Families: complexity, strength and weights of families of features; heaviest features; bounds.
import { VIEWS, add, chooser, h, note, number, percent, put, signed, tableHead } from "../dom.js";
import { bar } from "../charts.js";

function familyTable(found) {
  const rows = [...found.families].sort((a, b) => b.l1_mass - a.l1_mass), most = Math.max(...rows.map((row) => row.l1_mass), 1e-9);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Families" }, h("table", {},
    tableHead("family", "#tags", "#complexity", "#strength", "#candidates", "#with a weight", "#weight (L1)", ""),
    h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row" }, row.name), [row.tags, number(row.complexity), number(row.strength), number(row.n_candidates), number(row.n_active), number(row.l1_mass, 4)].map((value) => h("td", { class: "num" }, value)), h("td", { class: "wide" }, bar(row.l1_mass / most)))))));
}

function orderTable(found) {
  const most = Math.max(...found.orders.map((row) => row.l1_mass), 1e-9);
  return h("section", { class: "card" }, h("h2", {}, "By length of the tag pattern"), h("div", { class: "scroll" }, h("table", {}, tableHead("labels", "#weights", "#weight (L1)", ""), h("tbody", {}, found.orders.map((row) => h("tr", {}, h("th", { scope: "row" }, row.tags), h("td", { class: "num" }, number(row.n_weights)), h("td", { class: "num" }, number(row.l1_mass, 4)), h("td", { class: "wide" }, bar(row.l1_mass / most))))))));
}

function featureTable(found, label) {
  const rows = found.features[label] ?? [], most = Math.max(...rows.map((row) => Math.abs(row.weight)), 1e-9);
  return h("div", { class: "scroll" }, h("table", {}, tableHead("attribute", "family", "tag pattern", "#weight", ""), h("tbody", {}, rows.map((row) => h("tr", {}, h("th", { scope: "row", dir: "auto" }, row.attribute), h("td", {}, row.family), h("td", {}, row.labels.join(" → ")), h("td", { class: "num" }, signed(row.weight)), h("td", { class: "wide" }, bar(Math.abs(row.weight) / most, row.weight < 0 ? "against" : "for")))))));
}

function boundsTable(found) {
  return h("div", {}, h("p", { class: "headline" }, found.is_vacuous
    ? `All bounds are vacuous: the smallest, ${number(found.bounds[0].total)}, is not below the largest loss there is, ${number(found.loss_bound)}. That is usual on treebanks. Compare models by the complexity at margin 1.`
    : `With probability 95 % over the draw of the sample the mean loss on new sentences is at most ${number(found.bounds[0].total, 4)} (${found.bounds[0].name}).`),
  found.notes.map((text) => h("p", { class: "hint" }, text)),
  h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Bounds" }, h("table", {}, tableHead("bound", "margin loss", "#empirical", "#complexity", "#confidence", "#total", "#at margin 1"),
    h("tbody", {}, found.bounds.map((row) => h("tr", {}, h("th", { scope: "row" }, row.name), h("td", {}, row.margin), [row.empirical, row.complexity, row.confidence, row.total, row.complexity_at_margin_1].map((value) => h("td", { class: "num" }, number(value)))))))));
}

async function showFamilies(root, params, app) {
  add(root, h("h1", {}, "Families"));
  const found = await app.api.get("/families", { model: app.model, top: 12 });
  const labels = Object.keys(found.features);
  let label = labels.includes(params.label) ? params.label : labels[0];
  const features = h("div", {}, featureTable(found, label)), bounds = h("div", {});

  async function compute() {
    put(bounds, note("Computing: this can take a minute."));
    try {
      let told = await app.api.get("/bounds", { model: app.model });
      while (told.is_running && bounds.isConnected) {
        await new Promise((done) => { setTimeout(done, 1000); });
        told = await app.api.get("/bounds", { model: app.model });
      }
      put(bounds, boundsTable(told));
    } catch (error) {
      put(bounds, note(error.message));
    }
  }

  add(root,
    h("p", { class: "hint" }, `Norm ${found.norm}. A family's strength is the penalty on each unit of weight; its complexity is part of that where the model was trained with a complexity term. ${percent(found.families.reduce((sum, row) => sum + row.n_active, 0) / Math.max(1, found.families.reduce((sum, row) => sum + row.n_candidates, 0)), 2)} of the candidates have a weight.`),
    h("section", { class: "card" }, h("h2", {}, "Families of features"), familyTable(found)), orderTable(found),
    h("section", { class: "card" }, h("h2", {}, "Heaviest features"), h("div", { class: "filters" }, chooser("Label", labels.map((name) => [name, name]), label, (value) => { label = value; app.remember({ label }); put(features, featureTable(found, label)); })), features),
    !app.api.isStatic && h("section", { class: "card" }, h("h2", {}, "Bounds on the risk"), app.data ? [h("p", { class: "hint" }, `From the labelled sentences of ${app.data}.`), h("button", { type: "button", onclick: compute }, "Compute the bounds")] : note("Bounds need labelled sentences: start with --data FILE."), bounds));
}

VIEWS.families = { title: "Families", show: showFamilies };
