// The page: which view is shown follows from the address, #/tag?model=…&text=…, so that it can be shared.
import { VIEWS, add, chooser, h, note, put } from "./dom.js";
import { Embedded, Refusal, Service } from "./api.js";
import { allowedIn, allowedOf, writeAllowed } from "./address.js";
import { sentencesOf, shareable, textOf } from "./views/sentence.js";
import "./views/tag.js";
import "./views/why.js";
import "./views/lattice.js";
import "./views/errors.js";
import "./views/trust.js";
import "./views/training.js";
import "./views/compare.js";
import "./views/families.js";
import "./views/label.js";

const main = document.getElementById("main"), nav = document.getElementById("views"), controls = document.getElementById("controls");
const held = document.getElementById("data");
const embedded = held ? JSON.parse(held.textContent) : null;
let shown = 0;

const app = {
  api: embedded ? new Embedded(embedded.answers) : new Service(),
  models: [], model: "", labels: null, data: null, example: "", views: [],
  place: { view: "", params: {} }, odd: [], readsAttributes: false,
  chosen: () => app.models.find((model) => model.name === app.model),
  has: (view) => app.views.includes(view),
  link: (view, params) => `#/${view}?${query({ model: app.models.length > 1 ? app.model : "", ...params })}`,
  // Keep the address in step with what is shown, without a new page in the history.
  remember: (params) => {
    app.place.params = { model: app.place.params.model, ...params };
    if (!app.api.isStatic) history.replaceState(null, "", app.link(app.place.view, sharing(params)));
    links();
  },
};

function query(params) {
  return new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "" && value !== null && value !== undefined));
}

function sharing(params) {
  return params.text && app.place.view === "tag" ? { ...params, text: shareable(params.text, app) } : params;
}

function read(address) {
  const [, view, rest] = /^#\/(\w+)\??(.*)$/.exec(address) ?? [];
  return { asked: view, view: app.has(view) ? view : app.views[0], params: Object.fromEntries(new URLSearchParams(rest ?? "")) };
}

const NEEDS = {
  errors: "labelled sentences (--data FILE)", trust: "a calibrated model (vcrf calibrate)", compare: "two models and labelled sentences (--data FILE)",
  label: "sentences to label (--pool FILE --answers FILE)",
};

// What the address asks for and is not here.
function missing({ asked, view, params }, model) {
  const said = [];
  if (asked && asked !== view) said.push(Object.hasOwn(VIEWS, asked) ? `${VIEWS[asked].title} is not shown here: it needs ${NEEDS[asked] ?? "a model"}. This is ${VIEWS[view].title}.` : `There is no view ${asked.slice(0, 40)}: this is ${VIEWS[view].title}.`);
  if (params.model && model && params.model !== model.name) said.push(`There is no model ${params.model.slice(0, 80)} here: this is ${model.name}.`);
  return said;
}

// The sentence and the token at hand go along from view to view, with what is forced or forbidden there.
function carried(view) {
  const { text, s, t, a } = app.place.params;
  if (!text || !["tag", "why", "lattice"].includes(view)) return {};
  if (view === "tag") return { text: shareable(text, app), s, t, a };
  const sentences = sentencesOf(text, app), i = Math.min(Number(s) || 0, Math.max(0, sentences.length - 1));
  return { text: textOf(sentences[i] ?? [], app), t, a: writeAllowed(allowedIn(allowedOf({ ...app, odd: [] }, { a }), i)) };
}

// Another model takes over what is at hand, unless it reads something else.
function handedTo(name) {
  const reads = app.models.find((model) => model.name === name)?.reads;
  const { text, s, t, a, ...others } = app.place.params;
  const own = reads === app.chosen().reads ? sharing({ ...others, text, s, t, a }) : others;
  return { ...own, model: name };
}

function links() {
  put(nav, app.views.map((view) => h("a", {
    href: app.link(view, carried(view)),
    "aria-current": view === app.place.view ? "page" : null,
  }, VIEWS[view].title)));
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

async function go(address, isFirst) {
  app.place = read(address);
  const { view, params } = app.place;
  const model = app.models.find(({ name }) => name === params.model) ?? app.models[0];
  if (model) [app.model, app.labels, app.readsAttributes, app.example] = [model.name, model.labels, model.reads === "attributes", model.example];
  app.odd = missing(app.place, model);
  document.title = `${VIEWS[view].title} · vcrf`;
  links();
  drawControls();
  const turn = (shown += 1), root = h("div", { class: `view ${view}` });
  main.setAttribute("aria-busy", "true");
  put(main, root);
  try {
    await VIEWS[view].show(root, params, app);
  } catch (error) {
    const isRefusal = error instanceof Refusal;
    if (turn === shown) add(root, note(isRefusal ? error.message : "The page cannot show this. Choose a view above to go on."));
    if (!isRefusal) throw error;
  } finally {
    if (turn === shown && app.odd.length) root.querySelector("h1")?.after(h("div", { class: "odd", role: "status" }, app.odd.map((said) => note(said))));
    if (turn === shown) main.removeAttribute("aria-busy");
  }
  if (!isFirst && turn === shown && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

function drawControls() {
  const theme = h("button", { type: "button", class: "small theme", "aria-label": "Light or dark", title: "Light or dark", onclick: () => {
    const isDark = getComputedStyle(document.documentElement).getPropertyValue("--is-dark").trim() === "1";
    paint(isDark ? "light" : "dark", true);
  } }, "◐");
  put(controls, [app.models.length > 1 && !["compare"].includes(app.place.view) && chooser("Model", app.models.map(({ name }) => [name, name]), app.model, (name) => {
    location.hash = `#/${app.place.view}?${query(handedTo(name))}`;
  }), theme]);
}

function paint(theme, isKept) {
  document.documentElement.dataset.theme = theme;
  try {
    if (isKept) localStorage.setItem("vcrf-theme", theme);
  } catch {
    // A page in a sandbox has no storage: the choice lasts as long as the page.
  }
}

function storedTheme() {
  try {
    return localStorage.getItem("vcrf-theme");
  } catch {
    return null;
  }
}

// What there is to look at.
async function ask() {
  const found = await app.api.get("/models");
  Object.assign(app, { models: found.models, data: found.data, live: found.live });
  const can = { errors: Boolean(found.data), trust: found.models.some((model) => model.is_calibrated), compare: Boolean(found.data) && found.models.length > 1, label: found.can_label };
  app.views = found.live && !found.models.length ? ["training"] : Object.keys(VIEWS).filter((view) => can[view] ?? true);
}

// The same after a model has come.
app.renew = async () => {
  await ask();
  links();
  drawControls();
};

async function start() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  const theme = storedTheme();
  if (theme) paint(theme, false);
  if (embedded) {
    Object.assign(app, embedded.app);
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.('a[href^="#/"]');
      if (!link) return;
      event.preventDefault();
      go(link.getAttribute("href"), false);
    });
    await go(`#/${app.views[0]}`, true);
    return;
  }
  try {
    await ask();
  } catch (error) {
    put(main, note(error.message));
    return;
  }
  window.addEventListener("hashchange", () => go(location.hash, false));
  await go(location.hash, true);
}

start();
