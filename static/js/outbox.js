/* The outbox of answers: what a person has answered is kept in this browser until the server has confirmed it,
   and leaves in order. Used by judge.js; knows no page. */
(function () {
  "use strict";

  const FIRST_RETRY = 1000;
  const LAST_RETRY = 30000;

  /** Entries: {id, url, body} and what the page adds. `id` is the submission's UUID, so sending one twice does no harm. */
  class Outbox {
    constructor(name, token, listener) {
      this.key = "evalapp.outbox." + name;
      this.token = token;
      this.listener = listener;
      this.sending = false;
      this.retry = FIRST_RETRY;
      this.timer = null;
      window.addEventListener("online", () => this.flush());
      window.addEventListener("storage", (event) => {
        if (event.key === this.key) this.listener.changed(this.entries());
      });
    }

    entries() {
      try {
        return JSON.parse(localStorage.getItem(this.key)) || [];
      } catch (error) {
        return [];
      }
    }

    save(entries) {
      localStorage.setItem(this.key, JSON.stringify(entries));
      this.listener.changed(entries);
    }

    add(entry) {
      this.save([...this.entries().filter((other) => other.id !== entry.id), entry]);
      this.flush();
    }

    remove(id) {
      this.save(this.entries().filter((entry) => entry.id !== id));
    }

    /** Send what waits, oldest first; stops at the first that does not get through. */
    async flush() {
      if (this.sending) return;
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
      let response;
      try {
        response = await fetch(entry.url, {
          method: "POST",
          credentials: "same-origin",
          headers: { "Content-Type": "application/json", "X-CSRFToken": this.token() },
          body: JSON.stringify(entry.body),
        });
      } catch (error) {
        return this.later(entry);
      }
      if (response.ok) {
        const answer = await response.json().catch(() => ({}));
        this.retry = FIRST_RETRY;
        this.remove(entry.id);
        this.listener.sent(entry, answer);
        return true;
      }
      if (response.status >= 500 || response.status === 429) return this.later(entry);
      const problem = await response.json().catch(() => ({ detail: "The server refused the answer." }));
      // Signed out: the answers stay here and leave after signing in again.
      if (response.status === 401 || (response.status === 403 && !problem.errors)) {
        this.listener.refused(entry, problem, response.status);
        return false;
      }
      this.remove(entry.id);
      this.listener.refused(entry, problem, response.status);
      return true;
    }

    later(entry) {
      this.listener.waiting(this.entries(), entry);
      this.timer = setTimeout(() => this.flush(), this.retry);
      this.retry = Math.min(LAST_RETRY, this.retry * 2);
      return false;
    }
  }

  window.evalapp = Object.assign(window.evalapp || {}, { Outbox });
})();
