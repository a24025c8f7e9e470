// Label: the next sentences worth labelling, corrected with keys. An answer is in the file before the next one comes,
// and what is not sent yet is kept by the browser.
import { VIEWS, add, chooser, h, note, number, probable, redraw, say } from "../dom.js";
import { choiceOf } from "../address.js";
import { hues } from "../colours.js";
import { bar } from "../charts.js";
import { sentenceRow } from "./sentence.js";

const KEYS = "123456789abcdefghijkmnopqtuvwxyz";
const WAYS = [["least-confidence", "least sure"], ["margin", "two close readings"], ["entropy", "most entropy"]];

function draftKey(task) {
  return `vcrf-draft:${task.tokens.join(" ")}`;
}

function readDraft(task) {
  try {
    const kept = JSON.parse(localStorage.getItem(draftKey(task)));
    return Array.isArray(kept) && kept.length === task.tokens.length ? kept : null;
  } catch {
    return null;
  }
}

// A name of this tab's own: other tabs and other people are given other sentences.
function who() {
  const key = "vcrf-who";
  if (!sessionStorage.getItem(key)) sessionStorage.setItem(key, [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
  return sessionStorage.getItem(key);
}

async function showLabel(root, params, app) {
  add(root, h("h1", {}, "Label"));
  const body = h("div", { class: "labelling" });
  add(root, body);
  const asked = { by: choiceOf(app, params, "by", WAYS.map(([name]) => name), WAYS[0][0]), per: choiceOf(app, params, "per", ["sentence", "token"], "sentence") };
  const postponed = new Set(); // sentences that are left for later
  let found = null, labels = [], t = 0, skipped = 0, isSaving = false, isStale = false, isWaiting = false;

  async function load(isFocused = true) {
    const next = await app.api.get("/label", { ...asked, n: Math.min(50, 5 + postponed.size), who: who() });
    const fresh = next.tasks.filter((each) => !postponed.has(draftKey(each)));
    if (fresh.length) next.tasks = fresh.slice(0, 5);
    else postponed.clear(); // all of them are for later: begin again
    found = next;
    skipped = 0;
    isStale = false;
    begin(isFocused);
    if (found.retraining.is_running) tell(follow);
  }

  function task() {
    return found.tasks[skipped];
  }

  // What fails is said where people look, and nothing that is on the page goes away.
  async function tell(act) {
    try {
      await act();
    } catch (error) {
      const place = body.querySelector(".state");
      if (place) place.textContent = error.message;
      else throw error;
    }
  }

  function begin(isFocused) {
    if (task()) {
      labels = readDraft(task()) ?? [...task().labels];
      t = 0;
      let least = 2;
      task().probabilities.forEach((p, i) => { if (p < least) [least, t] = [p, i]; });
    }
    draw();
    if (isFocused) body.querySelector(".workbench")?.focus({ preventScroll: true });
  }

  function choose(label) {
    labels[t] = label;
    localStorage.setItem(draftKey(task()), JSON.stringify(labels));
    say(`${task().tokens[t]}: ${label}`);
    t = Math.min(t + 1, labels.length - 1);
    draw();
  }

  async function accept() {
    if (isSaving) return; // a key pressed twice saves once
    isSaving = true;
    const done = task();
    try {
      const kept = await app.api.post("/label/answers", { tokens: done.tokens, labels });
      localStorage.removeItem(draftKey(done));
      found.n_answers = kept.n_answers;
      say("Saved.");
    } catch (error) {
      body.querySelector(".state").textContent = `Not saved: ${error.message} Your labels are kept in this browser.`;
      return;
    } finally {
      isSaving = false;
    }
    await next();
  }

  async function postpone() {
    if (isWaiting) return;
    postponed.add(draftKey(task()));
    await next();
  }

  // Where the service does not answer the sentence stays, and another try goes on from it.
  async function next() {
    if (skipped + 1 < found.tasks.length && !isStale) {
      skipped += 1;
      begin(true);
      return;
    }
    isWaiting = true;
    await tell(load);
    isWaiting = false;
  }

  function press(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, a, .acts")) return;
    if (["Enter", " "].includes(event.key) && event.target.closest("button")) return; // a button is pressed by these
    const place = KEYS.indexOf(event.key);
    const acts = { ArrowRight: () => move(1), ArrowLeft: () => move(-1), Enter: accept, s: postpone, Backspace: () => { labels[t] = task().labels[t]; draw(); } };
    if (!(event.key in acts) && !(place >= 0 && place < found.labels.length)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key in acts) acts[event.key]();
    else choose(order()[place][0]);
  }

  function move(step) {
    t = Math.max(0, Math.min(labels.length - 1, t + step));
    draw();
  }

  function order() {
    return Object.entries(task().posterior[t]).sort((a, b) => b[1] - a[1]);
  }

  async function retrain() {
    try {
      await app.api.post("/label/retrain", {});
      found.retraining = { is_running: true };
      draw();
      tell(follow);
    } catch (error) {
      body.querySelector(".state").textContent = error.message;
    }
  }

  async function follow() {
    let now = { retraining: { is_running: true } };
    while (now.retraining.is_running && body.isConnected) {
      await new Promise((done) => { setTimeout(done, 700); });
      now = await app.api.get("/label", { ...asked, n: 0 });
    }
    await app.renew();
    if (body.isConnected) {
      say(now.retraining.message);
      // The sentence at hand stays; the next one is chosen by the new model.
      isStale = true;
      found.retraining = now.retraining;
      if (task()) draw();
      else await load();
    }
  }

  async function save() {
    let content;
    try {
      content = await (await app.api.call("/label/export")).blob();
    } catch (error) {
      body.querySelector(".state").textContent = `Not exported: ${error.message} The answers are safe in ${found.answers_file}.`;
      return;
    }
    const address = URL.createObjectURL(content);
    h("a", { href: address, download: "answers.conllu" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  function bench() {
    const now = task();
    if (!now) return note(found.n_left ? "Loading …" : "Everything in the pool is labelled.");
    const changed = labels.map((label, i) => label !== now.labels[i]);
    const row = sentenceRow({ ...now, labels, unknown: [] }, { hues: hues(found.labels), chosen: t, onchoose: (next) => { t = next; draw(); body.querySelector(".workbench").focus({ preventScroll: true }); }, label: "Sentence to label", classes: (i) => (changed[i] ? "bound" : "") });
    return h("div", { class: "workbench", tabindex: "0", role: "group", "aria-label": "Sentence to label: arrows move, keys choose a label, Enter saves", onkeydown: press }, row,
      h("div", { class: "keys", role: "group", "aria-label": `Labels of ${now.tokens[t]}` }, order().map(([label, p], i) => h("button", { type: "button", class: "key", "aria-pressed": String(labels[t] === label), onclick: () => choose(label) },
        h("kbd", {}, KEYS[i] ?? ""), h("span", { class: "dot", style: { "--hue": hues(found.labels).get(label) } }), h("span", {}, label), bar(p), h("span", { class: "num" }, probable(p))))),
      h("p", { class: "links acts" }, h("button", { type: "button", class: "main", onclick: accept }, "Save, next ", h("kbd", {}, "Enter")), h("button", { type: "button", onclick: postpone }, "Later ", h("kbd", {}, "s")), h("span", { class: "hint" }, now.source, now.is_shared && " · also open in another tab, or with another person")));
  }

  function draw() {
    const active = Boolean(document.activeElement?.closest?.(".workbench"));
    redraw(body,
      h("div", { class: "tiles" }, ["labelled", "left"].map((name, i) => h("div", { class: "tile" }, h("span", { class: "name" }, name), h("span", { class: "big" }, number(i ? found.n_left - skipped : found.n_answers))))),
      h("p", { class: "hint state", role: "status" }, found.retraining.is_running ? "Training on the answers …" : found.retraining.message || `Suggested by ${found.model}. Answers are written to ${found.answers_file} one by one.`),
      h("section", { class: "card" }, bench()),
      h("div", { class: "filters" }, chooser("Next", WAYS, asked.by, (by) => { asked.by = by; app.remember({ by: asked.by, per: asked.per }); tell(() => load(false)); }), chooser("By", [["sentence", "sentence"], ["token", "token"]], asked.per, (per) => { asked.per = per; app.remember({ by: asked.by, per: asked.per }); tell(() => load(false)); }),
        h("button", { type: "button", onclick: retrain, disabled: !found.can_retrain || found.retraining.is_running || !found.n_answers }, "Retrain"), h("button", { type: "button", onclick: save, disabled: !found.n_answers }, "Export CoNLL-U")));
    if (active) body.querySelector(".workbench")?.focus({ preventScroll: true });
  }

  await load();
}

VIEWS.label = { title: "Label", show: showLabel };
