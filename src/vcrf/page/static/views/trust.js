// Trust: whether probabilities mean what they say, and what may be accepted unseen.
import { VIEWS, add, chooser, h, note, number, percent, put, redraw, say, svg } from "../dom.js";
import { choiceOf } from "../address.js";
import { lineChart } from "../charts.js";

async function showTrust(root, params, app) {
  add(root, h("h1", {}, "Trust"));
  if (app.chosen() && !app.chosen().is_calibrated) {
    const others = app.models.filter((model) => model.is_calibrated).map(({ name }) => name);
    add(root, note(`${app.model} is not calibrated: run \`vcrf calibrate MODEL DATA\` with held-out sentences.`, others.length > 0 && ` Here ${others.join(", ")} can be chosen.`));
    return;
  }
  const asked = { model: app.model, unit: choiceOf(app, params, "unit", ["token", "sentence", "span"], "token"), confidence: choiceOf(app, params, "confidence", ["0.9", "0.95", "0.99"], "0.95") };
  let found = await app.api.get("/trust", asked);
  let place = found.promises.findIndex((promise) => promise.max_error >= Number(params.error ?? 0.05) - 1e-9);
  if (place < 0) place = found.promises.length - 1;
  const body = h("div", {}), told = h("div", {});
  add(root, body);

  function keep() {
    app.remember({ unit: asked.unit === "token" ? "" : asked.unit, confidence: asked.confidence === "0.95" ? "" : asked.confidence, error: found.promises[place].max_error });
  }

  async function change(changes) {
    Object.assign(asked, changes);
    found = await app.api.get("/trust", asked);
    keep();
    draw();
  }

  function reliability() {
    const side = (name, key, tone) => ({ name: `${name}: calibration error ${percent(found.reliability[key].error)}`, tone, points: found.reliability[key].bins.map((bin) => [bin.sureness, bin.accuracy]) });
    return lineChart({
      title: "Reliability: share of right labels by claimed probability", x: { name: "probability of the label", kind: "percent", min: 0, max: 1 }, y: { kind: "percent", min: 0, max: 1 }, height: 320,
      series: [{ name: "what a perfect tagger would show", kind: "dashed", tone: 3, points: [[0, 0], [1, 1]] }, side("as trained", "before", 1), side("calibrated, on held-out folds", "after", 0)],
    });
  }

  function risk() {
    const promise = found.promises[place];
    const top = Math.max(promise.max_error * 1.15, ...found.curve.map((point) => point.error)) * 1.05;
    return lineChart({
      title: `Errors among accepted ${asked.unit}s, by how many are accepted`, x: { name: `share of ${asked.unit}s accepted`, kind: "percent", min: 0, max: 1 }, y: { kind: "percent", min: 0, max: top }, height: 320,
      series: [{ name: "on the calibration sentences", tone: 0, points: found.curve.map((point) => [point.share, point.error]) }, { name: `what you can live with: ${percent(promise.max_error)}`, kind: "dashed", tone: 2, points: [[0, promise.max_error], [1, promise.max_error]] }],
      marks: promise.is_any ? [{ x: promise.share, y: promise.error }] : [],
      extra: promise.is_any ? [({ atX, atY, ys }) => svg("rect", { x: atX(0), y: atY(ys[1]), width: atX(promise.share) - atX(0), height: atY(0) - atY(ys[1]), class: "accepted" })] : [],
    });
  }

  function promised() {
    const promise = found.promises[place];
    put(told,
      h("div", { class: "tiles" },
        h("div", { class: "tile" }, h("span", { class: "name" }, "accepted unseen"), h("span", { class: "big" }, percent(promise.share))),
        h("div", { class: "tile" }, h("span", { class: "name" }, "certified threshold"), h("span", { class: "big" }, promise.is_any ? (promise.threshold > 0 ? `≥ ${number(promise.threshold, 4)}` : "any") : "none")),
        h("div", { class: "tile" }, h("span", { class: "name" }, "left for a person"), h("span", { class: "big" }, percent(1 - promise.share)))),
      h("p", { class: `headline${promise.is_any ? "" : " warn"}` }, promise.message), h("div", { class: "pair" }, h("div", { class: "card" }, risk()), h("div", { class: "card" }, reliability())));
  }

  function move(event) {
    place = Number(event.target.value);
    event.target.setAttribute("aria-valuetext", percent(found.promises[place].max_error));
    event.target.closest(".slider").querySelector("output").textContent = percent(found.promises[place].max_error);
    keep();
    promised();
    say(found.promises[place].message);
  }

  function draw() {
    redraw(body,
      h("p", { class: "hint" }, `${found.model} looked at ${number(found.n_sentences)} held-out sentences. What is promised holds for sentences that are like them.`),
      h("div", { class: "filters" },
        h("label", { class: "field slider" }, h("span", {}, "Errors you can live with"),
          h("input", { type: "range", min: 0, max: found.promises.length - 1, step: 1, value: String(place), "aria-valuetext": percent(found.promises[place].max_error), oninput: move }), h("output", {}, percent(found.promises[place].max_error))),
        ...(app.api.isStatic ? [] : [chooser("Of", found.units.map((unit) => [unit, `${unit}s`]), asked.unit, (unit) => change({ unit })),
        chooser("Confidence", [["0.9", "90 %"], ["0.95", "95 %"], ["0.99", "99 %"]], asked.confidence, (confidence) => change({ confidence }))])),
      told);
    const range = body.querySelector("input[type=range]");
    range.value = String(place);
    promised();
  }

  draw();
}

VIEWS.trust = { title: "Trust", show: showTrust };
