// What an address asks for. What cannot be is left out, and said in plain words: people mend addresses by hand.

function odd(app, name, value, expected) {
  app.odd.push(`The address says ${name}=${value.slice(0, 40)}; expected is ${expected}. That part was left out.`);
}

// A whole number from 0, or otherwise.
export function wholeOf(app, params, name, otherwise, most = 999_999_999) {
  const value = params[name] ?? "";
  if (value === "") return otherwise;
  if (/^\d{1,9}$/.test(value) && Number(value) <= most) return Number(value);
  odd(app, name, value, most < 999_999_999 ? `a whole number up to ${most}` : "a whole number");
  return otherwise;
}

// The number of one of some things, or otherwise; without any, every number will do.
export function indexOf(app, params, name, otherwise, things = []) {
  return wholeOf(app, params, name, otherwise, things.length ? things.length - 1 : undefined);
}

// One of some words, or otherwise.
export function choiceOf(app, params, name, known, otherwise) {
  const value = params[name] ?? "";
  if (value === "" || known.includes(value)) return value || otherwise;
  odd(app, name, value, `one of ${known.join(", ")}`);
  return otherwise;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an address that was mangled on its way
  }
}

// What is allowed: "0.2:NOUN,VERB;1.0:ADJ" is sentence 0, token 2, and so on. Only labels that the model has, at tokens
// that the sentences have; without sentences, at any.
export function allowedOf(app, params, sentences = [], name = "a") {
  const found = new Map();
  for (const part of (params[name] ?? "").split(";").filter(Boolean)) {
    const [place, listed] = part.split(":");
    const labels = (listed ?? "").split(",").filter(Boolean).map(decoded).filter((label) => !app.labels || app.labels.includes(label));
    const [s, t] = /^\d+\.\d+$/.test(place) ? place.split(".").map(Number) : [];
    if (s !== undefined && (!sentences.length || t < sentences[s]?.length) && labels.length) found.set(`${s}.${t}`, labels);
    else odd(app, name, decoded(part), "a place and labels of this model, as 0.2:" + (app.labels?.[0] ?? "NOUN"));
  }
  return found;
}

export function writeAllowed(allowed) {
  return [...allowed].map(([place, labels]) => `${place}:${labels.map(encodeURIComponent).join(",")}`).join(";");
}

// What is allowed in one sentence, as if it were the only one.
export function allowedIn(allowed, s) {
  return new Map([...allowed].filter(([place]) => place.startsWith(`${s}.`)).map(([place, labels]) => [`0.${place.split(".")[1]}`, labels]));
}

// The same as the service takes it: an entry a token, or null if everything is allowed.
export function asEntries(allowed, tokens, s = 0) {
  const entries = tokens.map((_, t) => allowed.get(`${s}.${t}`) ?? null);
  return entries.some(Boolean) ? entries : null;
}
