/* The outbox stores answers in this browser until the server confirms them, and sends them in order. Used by judge.js,
   write.js and unsent.js; independent of pages. */
(function () {
  "use strict";

  const FIRST_RETRY = 1000;
  const LAST_RETRY = 30000;

  /** Whether the server holds a different answer, so that the annotator has to choose one. */
  const isDoubt = (problem) => Boolean(problem && problem.stored && problem.stored.answer);

  /** Returns the JSON of a response, or null for an error without readable JSON. A success that is truncated or that
      comes from a proxy, such as the sign-in page of a wireless network, throws like a lost connection, so that the
      request is repeated. */
  async function answerOf(response) {
    try {
      return response.status === 204 ? {} : await response.json();
    } catch (error) {
      if (response.ok) throw error;
      return null;
    }
  }

  /** Entries are {id, url, body} and fields of the page. `id` is the submission's UUID, so sending an entry twice is
      harmless. `listener.asks(entry)` returns extra fields of the request, evaluated when it is sent. Each entry has its
      own key in the browser's storage, so that two tabs cannot overwrite each other. */
  class Outbox {
    constructor(name, token, listener) {
      this.prefix = "evalapp.outbox." + name + ".";
      this.unkept = new Map(); // entries that the browser's storage (full or disabled) did not accept
      this.aside = new Map(); // id -> why sending is not permitted now; the next page tries again
      this.token = token;
      this.listener = listener;
      this.sending = false;
      this.retry = FIRST_RETRY;
      this.timer = null;
      this.takeOver("evalapp.outbox." + name);
      window.addEventListener("online", () => this.flush());
      window.addEventListener("storage", (event) => {
        if (event.key && event.key.startsWith(this.prefix)) this.listener.changed(this.entries());
      });
    }

    /** Imports entries that an earlier version stored under a single key. */
    takeOver(key) {
      try {
        for (const entry of JSON.parse(localStorage.getItem(key)) || []) this.put(entry);
        localStorage.removeItem(key);
      } catch (error) {
        // No storage, or unreadable content.
      }
    }

    all() {
      const found = new Map(this.unkept);
      try {
        for (const key of Object.keys(localStorage)) {
          if (!key.startsWith(this.prefix)) continue;
          const entry = JSON.parse(localStorage.getItem(key));
          // An entry that could not be stored is newer.
          if (entry && !found.has(entry.id)) found.set(entry.id, entry);
        }
      } catch (error) {
        // No storage.
      }
      return [...found.values()].sort((one, other) => (one.at || 0) - (other.at || 0));
    }

    /** Entries to be sent, oldest first. */
    entries() {
      return this.all().filter((entry) => !entry.problem && !this.aside.has(entry.id));
    }

    /** Entries that conflict with a stored answer and wait for a decision. */
    undecided() {
      return this.all().filter((entry) => isDoubt(entry.problem));
    }

    /** Entries that the server rejected, each with `problem`; they stay until the annotator decides. */
    refusals() {
      const all = this.all().map((entry) => ({ ...entry, problem: entry.problem || this.aside.get(entry.id) }));
      return all.filter((entry) => entry.problem && !isDoubt(entry.problem));
    }

    put(entry) {
      const last = Math.max(0, ...this.all().map((other) => other.at || 0));
      const kept = { ...entry, at: entry.at || Math.max(Date.now(), last + 1) };
      try {
        localStorage.setItem(this.prefix + entry.id, JSON.stringify(kept));
        this.unkept.delete(entry.id);
      } catch (error) {
        this.unkept.set(entry.id, kept);
      }
    }

    add(entry) {
      this.put(entry);
      this.listener.changed(this.entries());
      this.flush();
    }

    /** Stores an entry that the server rejected with `problem`; `remove` it after the decision. */
    hold(entry, problem) {
      this.put({ ...entry, problem });
    }

    /** Sends rejected entries again. */
    again() {
      for (const entry of this.refusals()) this.put({ ...entry, problem: undefined });
      this.aside.clear();
      this.listener.changed(this.entries());
      this.flush();
    }

    remove(id) {
      this.unkept.delete(id);
      this.aside.delete(id);
      try {
        localStorage.removeItem(this.prefix + id);
      } catch (error) {
        // No storage.
      }
      this.listener.changed(this.entries());
    }

    /** Sends entries, oldest first, until the server is unreachable or requires signing in. */
    async flush() {
      if (this.sending || !this.listener.sent) return; // this page only lists waiting entries
      this.sending = true;
      clearTimeout(this.timer);
      try {
        let entry;
        while ((entry = this.entries()[0])) {
          if (!(await this.send(entry))) break;
        }
      } finally {
        this.sending = false;
      }
    }

    async send(entry) {
      let response, answer;
      try {
        response = await fetch(entry.url, {
          method: "POST",
          credentials: "same-origin",
          headers: { "Content-Type": "application/json", "Accept-Language": document.documentElement.lang, "X-CSRFToken": this.token() },
          body: JSON.stringify({ ...entry.body, ...(this.listener.asks ? this.listener.asks(entry) : {}) }),
        });
        answer = await answerOf(response);
      } catch (error) {
        return this.later(entry);
      }
      if (response.ok) {
        this.retry = FIRST_RETRY;
        this.remove(entry.id);
        this.listener.sent(entry, answer);
        return true;
      }
      if (response.status >= 500 || response.status === 429) return this.later(entry);
      const problem = answer || { detail: window.evalapp.gettext("The server rejected the answer.") };
      // 401 stops the outbox until the annotator signs in again. Other errors concern only this entry: it stays and the
      // next one is sent. A permission that is missing (403) may be granted later, so the next page tries again.
      if (response.status === 403) this.aside.set(entry.id, problem);
      else if (response.status !== 401) this.hold(entry, { ...problem, html: undefined });
      this.listener.refused(entry, problem, response.status);
      return response.status !== 401;
    }

    later(entry) {
      this.listener.waiting(this.entries(), entry);
      this.timer = setTimeout(() => this.flush(), this.retry);
      this.retry = Math.min(LAST_RETRY, this.retry * 2);
      return false;
    }
  }

  window.evalapp = Object.assign(window.evalapp || {}, { Outbox, isDoubt, answerOf });
})();
