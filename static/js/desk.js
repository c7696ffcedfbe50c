/* What the page of judging and the page of reference writing share: words to the person, the time spent, and the draft,
   in this browser at once and on the server after a moment. Knows neither form. */
(function () {
  "use strict";

  const DRAFT_DELAY = 600;
  const DRAFT_RETRY = 5000;
  const IDLE = 60000;
  const HERE = "Kept in this browser.";

  const clock = () => new Date().toLocaleTimeString([], { hour12: false });
  /** What a key means: Caps Lock does not change it. */
  const keyOf = (event) =>
    event.getModifierState("CapsLock") && event.key.length === 1 ? event.key.toLowerCase() : event.key;

  const plural = (n, word) => n + " " + word + (n === 1 ? "" : "s");

  function uuid() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 15) | 64;
    bytes[8] = (bytes[8] & 63) | 128;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  /** `page` has data-user, data-csrf and data-login; `noun` is what is kept here ("answer"), `verb` what is done. */
  function desk(page, noun, verb) {
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

    /** Messages that the page was opened with: gone once the person goes on. */
    function clearMessages() {
      document.getElementById("messages").replaceChildren();
    }

    const send = (method, url, body, more) =>
      fetch(url, {
        method,
        credentials: "same-origin",
        headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRFToken": token() },
        body: JSON.stringify(body),
        ...more,
      });

    /** `waiting`: how many lie in the outbox. */
    function offline(waiting) {
      say(waiting ? "Offline, " + plural(waiting, noun) + " kept here" : "Offline, your " + noun + " is kept here");
    }

    /** Signed out, or no right any more: what was done stays here. */
    function kept(problem) {
      if ((problem.type || "").endsWith("#not-allowed")) {
        warn((problem.detail || "You may not " + verb + " here.") + " Your " + noun + "s are kept in this browser.");
        return;
      }
      warn("You are signed out. Your " + noun + "s are kept in this browser and leave when you are back. ");
      const link = document.createElement("a");
      link.href = page.dataset.login;
      link.textContent = "Sign in";
      trouble.append(link);
    }

    /* ---- time spent: only while the page is seen and somebody is there ---- */

    let watch = { seconds: 0, since: 0, last: 0 };

    /** The seconds so far. */
    function spent() {
      const now = Date.now();
      // Looked at every second: after a longer gap the machine has slept, or somebody has set its clock.
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

    /** Begin anew, with `seconds` that belong to what comes. */
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
    let told = false; // whether what stands under the header is about a draft

    const draft = {
      /** The draft of this browser; null when there is none. */
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
          // No store: nothing is in it.
        }
      },
      /** Keep `collect()` here, and send it in a moment by `submit`. */
      keep(id, content, submit) {
        try {
          localStorage.setItem(draftKey(id), JSON.stringify(content));
        } catch (error) {
          // A full store costs the local copy only; the server's draft remains.
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
      /** Send it on top of the version that `card` follows; `again` is called when another tab saved in between. */
      async send(card, method, content, again, lost) {
        if (sending) {
          draft.later(again); // what was typed meanwhile follows
          return;
        }
        sending = true;
        try {
          const body = { version: Number(card.dataset.draftVersion), draft: content };
          const response = await send(method, card.dataset.draftUrl, body);
          const answer = (await window.evalapp.answerOf(response)) || {};
          if (response.ok) {
            card.dataset.draftVersion = answer.draft_version;
            // What the server has needs no copy here, which would one day stand before what another device saved since.
            if (JSON.stringify(draft.local(card.dataset.id)) === JSON.stringify(content)) draft.forget(card.dataset.id);
            say("Saved " + clock());
            if (told) warn("");
            told = false;
          } else if (response.status === 409 && answer.stored) {
            // What the person sees now is this one, so it goes on top of that version.
            card.dataset.draftVersion = answer.stored.version;
            draft.later(again);
          } else if (response.status === 401 || response.status === 403) {
            say(HERE);
            kept(answer);
            told = true;
          } else if (response.status >= 500 || response.status === 429) {
            say("Not saved yet. " + HERE);
            draft.later(again, DRAFT_RETRY);
          } else say("Not saved: " + (answer.detail || "the server does not take this draft.") + " " + HERE);
        } catch (error) {
          lost();
          draft.later(again, DRAFT_RETRY); // the server may be away while the browser believes to be online
        } finally {
          sending = false;
        }
      },
    };

    return { token, say, warn, clearMessages, send, offline, kept, spent, restart, draft };
  }

  window.evalapp = Object.assign(window.evalapp || {}, { desk, clock, plural, keyOf, uuid });
})();
