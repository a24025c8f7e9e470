// Training: objective, lower bound and gap, features, development error; live while training runs.
import { VIEWS, add, chooser, h, note, number, percent, redraw, say } from "../dom.js";
import { lineChart } from "../charts.js";

const AXES = { n_passes: "passes over the data", seconds: "seconds" };

function pictures(found, by) {
  const { records } = found, x = { name: AXES[by], fit: true };
  const points = (key) => records.map((record) => [record[by], record[key]]);
  const charts = [
    lineChart({ title: "Objective and its certified lower bound", x, y: { log: true }, series: [{ name: "objective", points: points("objective") }, { name: "lower bound", points: points("lower_bound") }] }),
    lineChart({ title: "Relative gap to the optimum", x, y: { log: true }, series: [{ name: "relative gap", points: points("relative_gap") },
      ...(found.tol ? [{ name: `tolerance ${number(found.tol)}`, kind: "dashed", tone: 2, points: [[records[0][by], found.tol], [records.at(-1)[by], found.tol]] }] : [])] }),
    lineChart({ title: "Features with a weight", x, y: {}, series: [{ name: "active features", points: points("n_active") }] }),
  ];
  if (records.some((record) => record.dev_error !== null)) charts.push(lineChart({ title: "Token error on the development sentences", x, y: { kind: "percent" }, series: [{ name: "development error", points: points("dev_error") }] }));
  return h("div", { class: "pair" }, charts.map((chart) => h("div", { class: "card" }, chart)));
}

async function showTraining(root, params, app) {
  add(root, h("h1", {}, "Training"));
  if (app.chosen()?.has_history === false && !app.live) {
    add(root, note(`${app.model} was not trained by a solver: it has no history.`));
    return;
  }
  const body = h("div", {});
  add(root, body);
  let by = params.by === "seconds" ? "seconds" : "n_passes";

  function draw(found) {
    const last = found.records.at(-1);
    const tile = (name, value) => h("div", { class: "tile" }, h("span", { class: "name" }, name), h("span", { class: "big" }, value));
    redraw(body,
      h("p", { class: `headline${found.is_running ? " live" : ""}` }, found.is_running ? `${found.model} is being trained.` : (found.status ?? "Training is over.")),
      h("div", { class: "tiles" }, tile("objective", number(found.objective, 4)), tile("relative gap", last?.relative_gap === null || !last ? "–" : number(found.gap / found.objective, 2)), tile("features", number(found.n_active)),
        last?.dev_error !== null && last && tile("development error", percent(last.dev_error, 2)), tile("seconds", number(found.seconds, 3))),
      found.n_candidates && h("p", { class: "hint" }, `${number(found.n_sentences)} sentences, ${number(found.n_tokens)} tokens; ${number(found.n_candidates)} candidate features in ${number(found.n_columns)} columns.`),
      h("div", { class: "filters" }, chooser("Over", Object.entries(AXES), by, (value) => { by = value; app.remember({ by: by === "n_passes" ? "" : by }); draw(found); })),
      found.records.length ? pictures(found, by) : note("The first round is not over yet."));
  }

  async function follow() {
    let found = await app.api.get("/history", { model: params.live ? "" : app.model });
    draw(found);
    while (found.is_running && body.isConnected) {
      await new Promise((done) => { setTimeout(done, 1000); });
      if (!body.isConnected) return;
      try {
        found = await app.api.get("/history", { model: params.live ? "" : app.model });
      } catch {
        body.querySelector(".headline").textContent = "The training does not answer any more: this is what it told last.";
        return;
      }
      draw(found);
      if (!found.is_running) say("Training is over.");
    }
  }

  await follow();
}

VIEWS.training = { title: "Training", show: showTraining };
