/* The outbox of answers: what a person has answered is kept in this browser until the server has confirmed it,
   and leaves in order. Used by judge.js and write.js; knows no page. */
(function () {
  "use strict";

  const FIRST_RETRY = 1000;
  const LAST_RETRY = 30000;

  /** Whether a refusal means that there is another answer, of which one has to be chosen. */
  const isDoubt = (problem) => Boolean(problem && problem.stored && problem.stored.answer);

  /** What the server said, as JSON; null where a refusal says nothing that can be read. What should be good news and was
      cut off on its way, or is a page of somebody between (the sign-in of a wireless network), is no answer: it rejects,
      as `fetch` does without a connection, and what was sent is sent again. */
  async function answerOf(response) {
    try {
      return response.status === 204 ? {} : await response.json();
    } catch (error) {
      if (response.ok) throw error;
      return null;
    }
  }

  /** `listener.asks(entry)`: what the page asks for beside the answer, when it is sent and not before.
      Entries: {id, url, body} and what the page adds. `id` is the submission's UUID, so sending one twice does no harm.
      Each has a place of its own in the browser's store: two tabs that write at once cannot overwrite each other. */
  class Outbox {
    constructor(name, token, listener) {
      this.prefix = "evalapp.outbox." + name + ".";
      this.unkept = new Map(); // what the browser would not keep: its store is full or switched off
      this.aside = new Map(); // id -> why it may not be sent now; the next page tries again
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

    /** What an earlier version of this page kept, all in one place. */
    takeOver(key) {
      try {
        for (const entry of JSON.parse(localStorage.getItem(key)) || []) this.put(entry);
        localStorage.removeItem(key);
      } catch (error) {
        // No store, or nothing that could be read.
      }
    }

    all() {
      const found = new Map(this.unkept);
      try {
        for (const key of Object.keys(localStorage)) {
          if (!key.startsWith(this.prefix)) continue;
          const entry = JSON.parse(localStorage.getItem(key));
          // What could not be written is the newer one.
          if (entry && !found.has(entry.id)) found.set(entry.id, entry);
        }
      } catch (error) {
        // No store.
      }
      return [...found.values()].sort((one, other) => (one.at || 0) - (other.at || 0));
    }

    /** What waits to be sent, oldest first. */
    entries() {
      return this.all().filter((entry) => !entry.problem && !this.aside.has(entry.id));
    }

    /** What the server holds another answer for, and nobody has said yet which one is meant. */
    undecided() {
      return this.all().filter((entry) => isDoubt(entry.problem));
    }

    /** What the server did not take, each with `problem`: it stays until somebody has said what becomes of it. */
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

    /** Keep an entry that the server refused with `problem` until somebody has decided; then `remove` it. */
    hold(entry, problem) {
      this.put({ ...entry, problem });
    }

    /** Send what was refused once more. */
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
        // No store.
      }
      this.listener.changed(this.entries());
    }

    /** Send what waits, oldest first; stops where the server cannot be reached or nobody is signed in. */
    async flush() {
      if (this.sending || !this.listener.sent) return; // a page that only tells of what waits sends nothing
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
          headers: { "Content-Type": "application/json", "X-CSRFToken": this.token() },
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
      const problem = answer || { detail: "The server refused the answer." };
      // Signed out: nothing gets through before somebody has signed in again. All else concerns this entry alone: it
      // stays, and the others go on. A right that is missing today may be there tomorrow.
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
