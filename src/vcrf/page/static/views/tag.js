// Tag: labels with their probabilities; force or forbid a label and watch the rest change.
import { VIEWS, add, h, later, note, probable, put, redraw, say } from "../dom.js";
import { allowedIn, allowedOf, asEntries, indexOf, wholeOf, writeAllowed } from "../address.js";
import { hues } from "../colours.js";
import { bar } from "../charts.js";
import { expected, sentenceRow, sentencesOf, shareable, textOf } from "./sentence.js";

async function showTag(root, params, app) {
  const text = params.text ?? app.example ?? "", first = sentencesOf(text, app), s = indexOf(app, params, "s", 0, first);
  const state = { text, s, t: indexOf(app, params, "t", -1, first[s]), k: wholeOf(app, params, "k", 5, 100), allowed: allowedOf(app, params, first) };
  const answer = h("div", { class: "answer" });
  const hint = app.readsAttributes ? "a token a line, its label (any) and its attributes between tabs, an empty line between sentences" : "tokens separated by blanks, a sentence a line";
  let asked = null;

  function keep() {
    app.remember({ text: state.text, s: state.s || "", t: state.t < 0 ? "" : state.t, k: state.k === 5 ? "" : state.k, a: writeAllowed(state.allowed) });
  }

  async function refresh() {
    keep();
    const sentences = sentencesOf(state.text, app);
    if (!sentences.length && !app.api.isStatic) {
      put(answer, note(`Type or paste a sentence: ${hint}.`));
      return;
    }
    asked?.abort();
    if (expected(sentences, app)) {
      put(answer, note(expected(sentences, app)));
      return;
    }
    asked = new AbortController();
    const allowed = sentences.map((tokens, s) => asEntries(state.allowed, tokens, s));
    try {
      const found = await app.api.post("/tag", { model: app.model, sentences, k: state.k, allowed: state.allowed.size ? allowed : null }, { signal: asked.signal });
      draw(found);
    } catch (error) {
      if (error.name !== "AbortError") redraw(answer, note(error.message), state.allowed.size > 0 && freeing());
    }
  }

  function freeing() {
    return h("button", { type: "button", class: "small", onclick: () => { state.allowed.clear(); refresh(); } }, "Allow everything again");
  }

  function choose(s, t, found) {
    [state.s, state.t] = [s, t];
    keep();
    draw(found);
    answer.querySelector(".token[aria-pressed=true]")?.focus({ preventScroll: true });
  }

  function draw(found) {
    const colours = hues(found.names);
    state.s = Math.min(state.s, found.sentences.length - 1);
    const current = found.sentences[state.s];
    if (state.t >= current.tokens.length) state.t = current.tokens.length - 1;
    const rows = found.sentences.map((sentence, s) => sentenceRow(sentence, {
      hues: colours, chosen: s === state.s ? state.t : -1, onchoose: (t) => choose(s, t, found), label: `Sentence ${s + 1}`,
      classes: (t) => (state.allowed.has(`${s}.${t}`) ? "bound" : ""),
    }));
    redraw(answer,
      shareable(state.text, app) !== state.text && h("p", { class: "hint" }, `The text is too long for an address: one that is shared has the first ${sentencesOf(shareable(state.text, app), app).length} sentences of it.`),
      h("section", { class: "sentences", "aria-label": "Labelled text" }, rows),
      h("div", { class: "beside" }, tokenPanel(found, current), sequencesPanel(current, colours)));
    say(`${found.sentences.length} sentences labelled.`);
  }

  function tokenPanel(found, sentence) {
    if (state.t < 0) return h("section", { class: "card" }, h("h2", {}, "A token"), note("Choose a token to see how probable each label is there."));
    const t = state.t, place = `${state.s}.${t}`, bound = state.allowed.get(place);
    const order = found.names.map((name, i) => [name, sentence.posterior[t][i]]).sort((a, b) => b[1] - a[1]);
    const change = (labels) => {
      if (labels === null || labels.length === found.names.length) state.allowed.delete(place);
      else state.allowed.set(place, labels);
      refresh();
    };
    const may = bound ?? found.names;
    const rows = order.map(([name, p]) => h("tr", { class: may.includes(name) ? "" : "out" },
      h("th", { scope: "row" }, h("span", { class: "dot", style: { "--hue": hues(found.names).get(name) } }), name),
      h("td", { class: "wide" }, bar(p)), h("td", { class: "num" }, probable(p)),
      !app.api.isStatic && h("td", { class: "acts" },
        h("button", { type: "button", class: "small", "aria-label": `Force ${name}`, "aria-pressed": String(may.length === 1 && may[0] === name), onclick: () => change(may.length === 1 && may[0] === name ? null : [name]) }, "force"),
        h("button", { type: "button", class: "small", "aria-label": `Forbid ${name}`, "aria-pressed": String(!may.includes(name)), disabled: may.includes(name) && may.length === 1, onclick: () => change(may.includes(name) ? may.filter((other) => other !== name) : found.names.filter((other) => may.includes(other) || other === name)) }, "forbid"))));
    const text = app.api.isStatic ? "" : textOf(sentencesOf(state.text, app)[state.s] ?? [], app);
    const a = writeAllowed(allowedIn(state.allowed, state.s));
    return h("section", { class: "card", "aria-label": `Posterior of ${sentence.tokens[t]}` },
      h("h2", {}, h("span", { dir: "auto" }, sentence.tokens[t])),
      sentence.unknown[t] && h("p", { class: "hint" }, "This word was not in the training data."),
      h("div", { class: "scroll" }, h("table", { class: "posterior" }, h("tbody", {}, rows))),
      h("p", { class: "links" }, app.has("why") && h("a", { href: app.link("why", { text, t, a }) }, "Why this label?"), app.has("lattice") && h("a", { href: app.link("lattice", { text, a }) }, "The lattice"),
        state.allowed.size > 0 && freeing()));
  }

  function sequencesPanel(sentence, colours) {
    const best = sentence.sequences[0]?.labels ?? [];
    return h("section", { class: "card" }, h("h2", {}, "The best label sequences"),
      h("ol", { class: "sequences" }, sentence.sequences.map((one) => h("li", {},
        h("span", { class: "num" }, probable(one.probability)),
        h("span", { class: "labels" }, one.labels.map((label, t) => h("span", { class: label === best[t] ? "same" : "other", title: sentence.tokens[t], style: { "--hue": colours.get(label) } }, label)))))),
      !app.api.isStatic && h("p", { class: "links" }, h("button", { type: "button", class: "small", onclick: () => { state.k = Math.min(100, state.k * 2); refresh(); } }, "More sequences")));
  }

  const again = later(200, refresh);
  const box = h("textarea", { id: "text", rows: 3, spellcheck: "false", dir: "auto", placeholder: `${hint[0].toUpperCase()}${hint.slice(1)}`, oninput: (event) => { state.text = event.target.value; state.allowed.clear(); state.t = -1; again(); } });
  box.value = state.text;
  add(root, h("h1", { class: app.api.isStatic ? "unseen" : "" }, "Tag"),
    !app.api.isStatic && h("div", { class: "box" }, h("label", { for: "text" }, "Text"), box), answer);
  await refresh();
}

VIEWS.tag = { title: "Tag", show: showTag };
