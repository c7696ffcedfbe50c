/* Shared by the judging page and the writing page: status messages, the time spent, and drafts, which are saved in this
   browser at once and on the server after a moment. Independent of both forms. */
(function () {
  "use strict";

  const DRAFT_DELAY = 600;
  const DRAFT_RETRY = 5000;
  const IDLE = 60000;
  const { gettext, ngettext, interpolate } = window.evalapp;
  /** Messages of the two pages. */
  const MESSAGES = {
    answer: {
      offline: () => gettext("Offline. Your answer is saved in this browser."),
      waiting: (count) => ngettext(
        "Offline. %(count)s answer is saved in this browser.",
        "Offline. %(count)s answers are saved in this browser.", count),
      sending: (count) => ngettext("Sending %(count)s answer", "Sending %(count)s answers", count),
      forbidden: () => gettext("You may not judge here."),
      saved: () => gettext("Your answers are saved in this browser."),
      signedOut: () => gettext(
        "You are signed out. Your answers are saved in this browser and will be sent when you sign in again."),
    },
    text: {
      offline: () => gettext("Offline. Your text is saved in this browser."),
      waiting: (count) => ngettext(
        "Offline. %(count)s text is saved in this browser.", "Offline. %(count)s texts are saved in this browser.", count),
      sending: (count) => ngettext("Sending %(count)s text", "Sending %(count)s texts", count),
      forbidden: () => gettext("You may not write here."),
      saved: () => gettext("Your texts are saved in this browser."),
      signedOut: () => gettext(
        "You are signed out. Your texts are saved in this browser and will be sent when you sign in again."),
    },
  };

  const clock = () => new Date().toLocaleTimeString([], { hour12: false });
  /** Returns the key of an event, ignoring Caps Lock. */
  const keyOf = (event) =>
    event.getModifierState("CapsLock") && event.key.length === 1 ? event.key.toLowerCase() : event.key;

  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  /** `page` has data-user, data-csrf and data-login; `noun` is "answer" or "text". */
  function desk(page, noun) {
    const messages = MESSAGES[noun];
    const status = document.getElementById("saved");
    const trouble = document.getElementById("trouble");
    const token = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || [])[1] || page.dataset.csrf;

    function say(text) {
      if (status.textContent !== text) status.textContent = text;
    }

    function warn(text) {
      trouble.textContent = text || "";
      trouble.hidden = !text;
    }

    /** Removes the messages that the page was opened with. */
    function clearMessages() {
      document.getElementById("messages").replaceChildren();
    }

    const send = (method, url, body, more) =>
      fetch(url, {
        method,
        credentials: "same-origin",
        headers: { "Content-Type": "application/json", Accept: "application/json", "Accept-Language": document.documentElement.lang, "X-CSRFToken": token() },
        body: JSON.stringify(body),
        ...more,
      });

    /** `count` is the number of entries in the outbox. */
    function offline(count) {
      say(count ? interpolate(messages.waiting(count), { count }) : messages.offline());
    }

    const saySending = (count) => say(interpolate(messages.sending(count), { count }));
    const saySaved = () => say(interpolate(gettext("Saved %(time)s"), { time: clock() }));

    /** The annotator is signed out or lacks a permission, so the work stays in this browser. */
    function kept(problem) {
      if ((problem.type || "").endsWith("#not-allowed")) {
        warn((problem.detail || messages.forbidden()) + " " + messages.saved());
        return;
      }
      warn(messages.signedOut() + " ");
      const link = document.createElement("a");
      link.href = page.dataset.login;
      link.textContent = gettext("Sign in");
      trouble.append(link);
    }

    /* ---- time spent: counted only while the page is visible and in use ---- */

    let watch = { seconds: 0, since: 0, last: 0 };

    /** Returns the seconds so far. */
    function spent() {
      const now = Date.now();
      // Called every second: a longer gap means that the computer slept or its clock was set.
      const gap = now - watch.since;
      if (!document.hidden && watch.since && now - watch.last < IDLE && gap > 0 && gap < IDLE) watch.seconds += gap / 1000;
      watch.since = document.hidden ? 0 : now;
      const shown = document.getElementById("elapsed");
      if (shown) {
        const total = Math.floor(watch.seconds);
        shown.textContent = String(Math.floor(total / 60)).padStart(2, "0") + ":" + String(total % 60).padStart(2, "0");
      }
      return Math.round(watch.seconds * 10) / 10;
    }

    /** Restarts the clock at `seconds`. */
    function restart(seconds = 0) {
      watch = { seconds, since: document.hidden ? 0 : Date.now(), last: Date.now() };
    }

    setInterval(spent, 1000);
    const isActive = () => { watch.last = Date.now(); };
    for (const name of ["input", "pointerdown", "pointermove", "scroll"]) {
      document.addEventListener(name, isActive, { passive: true });
    }
    window.evalapp.onKeydown(isActive);

    /* ---- drafts ---- */

    const draftKey = (id) => "evalapp.draft." + page.dataset.user + "." + id;
    let timer = null;
    let sending = false;
    let isDraftMessage = false; // whether the message below the header is about a draft

    const draft = {
      /** Returns the draft in this browser, or null. */
      local(id) {
        try {
          return JSON.parse(localStorage.getItem(draftKey(id)));
        } catch (error) {
          return null;
        }
      },
      forget(id) {
        try {
          localStorage.removeItem(draftKey(id));
        } catch (error) {
          // No storage, so there is nothing to remove.
        }
      },
      /** Saves `content` in this browser and calls `submit` after a moment. */
      keep(id, content, submit) {
        try {
          localStorage.setItem(draftKey(id), JSON.stringify(content));
        } catch (error) {
          // Full storage affects only the local copy; the server still gets the draft.
        }
        draft.later(submit);
      },
      later(submit, delay = DRAFT_DELAY) {
        clearTimeout(timer);
        timer = setTimeout(submit, delay);
      },
      stop() {
        clearTimeout(timer);
      },
      /** Sends the draft as the successor of the version of `card`; calls `again` if another tab saved in between. */
      async send(card, method, content, again, lost) {
        if (sending) {
          draft.later(again); // sends what was typed in the meantime
          return;
        }
        sending = true;
        try {
          const body = { version: Number(card.dataset.draftVersion), draft: content };
          const response = await send(method, card.dataset.draftUrl, body);
          const answer = (await window.evalapp.answerOf(response)) || {};
          if (response.ok) {
            card.dataset.draftVersion = answer.draft_version;
            // Remove the local copy, which would otherwise hide later drafts from other devices.
            if (JSON.stringify(draft.local(card.dataset.id)) === JSON.stringify(content)) draft.forget(card.dataset.id);
            saySaved();
            if (isDraftMessage) warn("");
            isDraftMessage = false;
          } else if (response.status === 409 && answer.stored) {
            // The annotator sees the local draft, so save it as the successor of the stored version.
            card.dataset.draftVersion = answer.stored.version;
            draft.later(again);
          } else if (response.status === 401 || response.status === 403) {
            say(gettext("Saved in this browser."));
            kept(answer);
            isDraftMessage = true;
          } else if (response.status >= 500 || response.status === 429) {
            say(gettext("Not on the server yet; saved in this browser."));
            draft.later(again, DRAFT_RETRY);
          } else {
            const detail = answer.detail || gettext("The server rejected the draft.");
            say(interpolate(gettext("Not on the server: %(detail)s Saved in this browser."), { detail }));
          }
        } catch (error) {
          lost();
          draft.later(again, DRAFT_RETRY); // the server may be unreachable although the browser is online
        } finally {
          sending = false;
        }
      },
    };

    /* ---- skip and flag in place ---- */

    /** Opens the dialogs `skip` and `flag` instead of following the links with data-opens. `done` maps their names to
        what follows after the server has accepted. */
    function openInPlace(stage, done) {
      stage.addEventListener("click", (event) => {
        const link = event.target.closest("a[data-opens]");
        const dialog = link && document.getElementById(link.dataset.opens);
        if (!dialog || event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        const form = dialog.querySelector("form");
        if (form.action !== link.href) clear(form); // what was typed about this text stays
        form.action = link.href;
        dialog.showModal();
      });
      for (const [name, next] of Object.entries(done)) {
        const dialog = document.getElementById(name);
        if (!dialog) continue;
        const form = dialog.querySelector("form");
        dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
        form.addEventListener("submit", async (event) => {
          event.preventDefault();
          if (form.dataset.sent) return;
          const problem = await post(form);
          delete form.dataset.sent;
          if (problem) {
            explain(form, problem);
            return;
          }
          clear(form);
          dialog.close();
          const link = [...stage.querySelectorAll("a[data-opens]")].find((each) => each.href === form.action);
          if (link) link.dataset.done = "";
          next();
        });
      }
    }

    function explain(form, text) {
      const place = form.querySelector("[data-error]");
      place.textContent = text;
      place.hidden = !text;
    }

    function clear(form) {
      form.reset();
      explain(form, "");
    }

    /** Sends a form as JSON and returns what is wrong; empty if it was accepted. */
    async function post(form) {
      try {
        const response = await send("POST", form.action, Object.fromEntries(new FormData(form)));
        const answer = (await window.evalapp.answerOf(response)) || {};
        if (response.ok) return "";
        const faults = (answer.errors || []).map((fault) => fault.message).join(" ");
        return faults || answer.detail || gettext("The server rejected the request.");
      } catch (error) {
        return gettext("No response from the server. Try again when you are online.");
      }
    }

    return { openInPlace, token, say, saySaved, saySending, warn, clearMessages, send, offline, kept, spent, restart, draft };
  }

  window.evalapp = Object.assign(window.evalapp || {}, { desk, keyOf, uuid });
})();
