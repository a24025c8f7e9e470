// Questions to the service. A page without one has its answers with it.

const KEY = "vcrf-token";

export class Refusal extends Error {}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand, with a percent sign of its own
  }
}

function token() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(KEY, decoded(given[1]));
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY);
}

export class Service {
  constructor() {
    this.isStatic = false;
    this.token = token();
  }

  async call(path, options = {}) {
    const headers = { ...options.headers };
    if (this.token) headers.Authorization = `Bearer ${this.token.replace(/[^!-~]/g, "")}`;
    let reply;
    try {
      reply = await fetch(`api/v1${path}`, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal("The service does not answer. Is it still running?");
    }
    if (reply.status === 401) throw new Refusal("This service asks for its token: open the address that `vcrf serve` printed.");
    if (!reply.ok) {
      const told = await reply.json().catch(() => ({}));
      throw new Refusal(told.error ?? `The service answered ${reply.status}.`);
    }
    return reply;
  }

  async get(path, query = {}, options = {}) {
    const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined));
    const reply = await this.call(`${path}${asked.size ? `?${asked}` : ""}`, options);
    return reply.json();
  }

  async post(path, body, options = {}) {
    const reply = await this.call(path, { ...options, method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
    return reply.json();
  }
}

// Answers that are part of the page: by path, and for a sentence by its number.
export class Embedded {
  constructor(answers) {
    this.isStatic = true;
    this.answers = answers;
  }

  async get(path) {
    if (!(path in this.answers)) throw new Refusal("This page holds only what it was made with.");
    return this.answers[path];
  }

  async post(path) {
    return this.get(path);
  }
}
