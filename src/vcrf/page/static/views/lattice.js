// Lattice: posteriors of labels and of arcs between them, over a sentence.
import { VIEWS, add, h, note, number, probable, svg, tableHead } from "../dom.js";
import { hues } from "../colours.js";
import { allowedOf, asEntries, indexOf, writeAllowed } from "../address.js";
import { expected, sentencesOf, textOf } from "./sentence.js";

const ROW = 34, LEFT = 70, TOP = 18;

// Pixels of a text in the font of the picture's words.
const pen = document.createElement("canvas").getContext("2d");
function widthOf(text) {
  pen.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// Whole characters: half of one is shown as a question mark.
function shortened(token, most) {
  if (widthOf(token) <= most) return token;
  const signs = [...token.slice(0, 80)].slice(0, 40);
  while (signs.length > 1 && widthOf(`${signs.join("")}…`) > most) signs.pop();
  return `${signs.join("")}…`;
}

// As wide as the words want to be; narrower where the whole sentence is then seen at once.
function stepOf(tokens, room) {
  const wanted = Math.max(74, Math.min(130, Math.max(...tokens.map((token) => widthOf(token.slice(0, 30)))) + 18));
  const all = (room - LEFT - 10) / tokens.length;
  return all < 60 ? wanted : Math.min(wanted, all);
}

function drawLattice(found, room) {
  const { names, tokens, posterior } = found;
  const kept = names.map((_, b) => b).filter((b) => posterior.some((row) => row[b] >= 0.005));
  const place = new Map(kept.map((b, i) => [b, i]));
  const colours = hues(names);
  const step = stepOf(tokens, room), fits = step - 4;
  const x = (t) => LEFT + step * (t + 0.5), y = (b) => TOP + ROW * (place.get(b) + 0.5);
  const width = LEFT + step * tokens.length + 10, height = TOP + ROW * kept.length + 40;
  const best = found.labels.map((label) => names.indexOf(label));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: "lattice",
    "aria-label": `Lattice of ${tokens.length} tokens and ${kept.length} labels. Best: ${tokens.map((token, t) => `${token} ${found.labels[t]} ${probable(posterior[t][best[t]])}`).join(", ")}.` });
  kept.forEach((b) => picture.append(svg("line", { x1: LEFT, x2: width, y1: y(b), y2: y(b), class: "grid" }), svg("text", { x: LEFT - 10, y: y(b) + 4, "text-anchor": "end", class: "label" }, names[b])));
  for (let t = 1; t < tokens.length; t += 1) {
    for (const [a, b, p] of found.arcs[t]) {
      if (!place.has(a) || !place.has(b) || p < 0.01) continue;
      const isBest = best[t - 1] === a && best[t] === b;
      picture.append(svg("line", { x1: x(t - 1), y1: y(a), x2: x(t), y2: y(b), class: isBest ? "arc best" : "arc", style: { "stroke-width": `${(1 + 6 * p).toFixed(2)}px`, "stroke-opacity": (0.15 + 0.85 * p).toFixed(3) } },
        svg("title", {}, `${names[a]} → ${names[b]}: ${probable(p)}`)));
    }
  }
  tokens.forEach((token, t) => {
    for (const b of kept) {
      const p = posterior[t][b];
      if (p < 0.005) continue;
      picture.append(svg("circle", { cx: x(t), cy: y(b), r: (3 + 11 * Math.sqrt(p)).toFixed(1), class: best[t] === b ? "node best" : "node", style: { "--hue": colours.get(names[b]), "fill-opacity": (0.25 + 0.75 * p).toFixed(3) } },
        svg("title", {}, `${token}: ${names[b]} ${probable(p)}`)));
    }
    picture.append(svg("text", { x: x(t), y: height - 14, "text-anchor": "middle", class: "word" }, shortened(token, fits), svg("title", {}, token)));
  });
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lattice" }, picture);
}

function asTable(found) {
  const rows = found.tokens.map((token, t) => {
    const order = found.names.map((name, b) => [name, found.posterior[t][b]]).sort((a, b) => b[1] - a[1]).slice(0, 4);
    return h("tr", {}, h("th", { scope: "row", dir: "auto" }, token), order.map(([name, p]) => h("td", {}, `${name} ${probable(p)}`)));
  });
  return h("details", {}, h("summary", {}, "As a table"), h("div", { class: "scroll" }, h("table", {}, tableHead("token", "likeliest", "second", "third", "fourth"), h("tbody", {}, rows))));
}

async function showLattice(root, params, app) {
  const tokens = sentencesOf(params.text ?? app.example, app)[0] ?? [];
  add(root, h("h1", {}, "Lattice"));
  if (!tokens.length && !app.api.isStatic) {
    add(root, note("Choose a sentence in ", h("a", { href: app.link("tag", {}) }, "Tag"), " first."));
    return;
  }
  if (expected([tokens], app)) {
    add(root, note(expected([tokens], app)));
    return;
  }
  const t = indexOf(app, params, "t", "", tokens); // the token at hand in other views
  const bound = allowedOf(app, params, [tokens].filter((x) => x.length)), allowed = asEntries(bound, tokens), n = allowed?.filter(Boolean).length ?? 0, a = writeAllowed(bound);
  const found = await app.api.post("/lattice", { model: app.model, tokens, allowed });
  const text = textOf(tokens, app);
  app.remember({ text, t, a });
  add(root, h("p", { class: "hint" }, `Circles: how probable a label is at a token. Lines: how probable two labels are together. The best sequence is outlined. Over all label sequences the entropy is ${number(found.entropy, 3)} nats.`,
    n > 0 && ` Labels are forced or forbidden at ${n} ${n === 1 ? "token" : "tokens"}.`),
    h("section", { class: "card" }, drawLattice(found, root.clientWidth - 40)), asTable(found),
    app.has("tag") && h("p", { class: "links" }, h("a", { href: app.link("tag", { text, t, a }) }, "Back to the labels"), h("a", { href: app.link("why", { text, t, a }) }, "Why these labels?")));
}

VIEWS.lattice = { title: "Lattice", show: showLattice };
