/* The judging page: keyboard, drafts, prefetching of the next text, and answers through the outbox. Without this script
   the page works as plain forms. */
(function () {
  "use strict";

  const page = document.getElementById("judging");
  if (!page) return;
  const stage = document.getElementById("stage");
  const conflictBox = document.getElementById("conflict");
  const { answerOf, flash, keyOf, onKeydown, uuid, gettext } = window.evalapp;
  const desk = window.evalapp.desk(page, "answer");
  const { say, saySaved, saySending, warn, draft } = desk;
  const urls = { next: page.dataset.next, home: page.dataset.home, work: page.dataset.work };
  const TRY_AGAIN = 3000;
  const SECOND_ENTER = 600; // an Enter this soon after a text appears was meant for the previous one

  let card = null; // the displayed assignment
  let ahead = null; // the prefetched {html}, or {done: true} when nothing is left
  let fetching = null;
  let shownAt = 0;
  let touched = false; // whether an answer was chosen since shownAt
  let patience = null;
  let sending = false; // whether an answer is waiting for the server's confirmation
  let lost = null; // {content, body} of an answer without confirmation; the same content reuses its submission id

  /* ---- the values of the form ---- */

  const form = () => card && card.querySelector("form.answer");
  const questions = () => [...card.querySelectorAll("fieldset[data-aspect]")];
  const inputs = (question) => [...question.querySelectorAll("input:not([type=hidden])")];

  function valueOf(question) {
    const found = inputs(question);
    if (found.length === 1 && found[0].type === "number") return found[0].value === "" ? null : Number(found[0].value);
    const chosen = found.find((input) => input.checked);
    if (!chosen) return null;
    return question.dataset.number ? Number(chosen.value) : chosen.value;
  }

  function collect() {
    const answer = {};
    for (const question of questions()) {
      const value = valueOf(question);
      if (value !== null) answer[question.dataset.aspect] = value;
    }
    const note = card.querySelector("textarea[name=note]");
    return { answer, note: note ? note.value.trim() : "" };
  }

  function restore(kept) {
    if (!kept) return;
    for (const question of questions()) {
      const value = (kept.answer || {})[question.dataset.aspect];
      if (value === undefined || value === null) continue;
      for (const input of inputs(question)) {
        if (input.type === "number") input.value = value;
        else input.checked = String(input.value) === String(value);
      }
    }
    const note = card.querySelector("textarea[name=note]");
    if (note && kept.note) {
      note.value = kept.note;
      const box = note.closest("details");
      if (box) box.open = true;
    }
  }

  /* ---- keyboard ---- */

  let active = 0;

  function activate(index, focus) {
    const all = questions();
    active = Math.max(0, Math.min(index, all.length - 1));
    all.forEach((question, place) => question.toggleAttribute("data-active", place === active && all.length > 1));
    if (focus && all[active]) {
      const found = inputs(all[active]);
      const target = found.find((input) => input.checked) || found[0];
      if (target) target.focus({ preventScroll: false });
    }
  }

  function choose(input) {
    input.checked = true;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    const open = questions().findIndex((question) => valueOf(question) === null);
    if (open >= 0) activate(open, true);
    else {
      const button = card.querySelector("button[data-submit]");
      if (page.dataset.answerOnKey && questions().length === 1) form().requestSubmit(button);
      else if (button) button.focus();
    }
  }

  const tooSoon = () => Date.now() - shownAt < SECOND_ENTER && !touched;

  const typing = (element) =>
    element.closest("textarea, select, [contenteditable=true], input[type=text], input[type=search]");

  onKeydown((event) => {
    if (!card || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form()) {
      event.preventDefault();
      if (event.repeat || tooSoon()) return;
      form().requestSubmit(card.querySelector("button[data-submit]"));
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^Arrow/.test(event.key) && event.target.closest("aside")) return; // scrolls the guidelines
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const isNumber = event.target.matches("input[type=number]");
    if (event.key === "Enter") {
      if (event.repeat || tooSoon()) {
        event.preventDefault();
        return;
      }
      if (event.target.closest("a, summary") || event.target.closest("button:not([data-submit])")) return;
      const go = card.querySelector("[data-go-on]");
      event.preventDefault();
      if (go) go.click();
      else if (form()) form().requestSubmit(card.querySelector("button[data-submit]"));
      return;
    }
    if (isNumber && (event.key.length > 1 || /[0-9.,eE+-]/.test(event.key))) return; // part of a number
    const question = form() && questions()[active];
    const wanted = question && inputs(question).find((input) => (input.dataset.keys || "").split(" ").includes(keyOf(event)));
    if (wanted) {
      event.preventDefault();
      if (!event.repeat) choose(wanted); // a held key answers one question only
      return;
    }
    if (event.repeat) return;
    const button = document.querySelector(`#stage [data-key="${CSS.escape(keyOf(event))}"], header [data-key="${CSS.escape(keyOf(event))}"]`);
    if (button && !button.disabled) {
      event.preventDefault();
      if (button.matches("summary")) {
        button.parentElement.open = true;
        const first = button.parentElement.querySelector("textarea, select, input");
        if (first) first.focus();
      } else button.click();
    }
  });

  document.addEventListener("focusin", (event) => {
    const question = card && event.target.closest && event.target.closest("fieldset[data-aspect]");
    if (question) activate(questions().indexOf(question), false);
  });

  /* ---- drafts ---- */

  function keepDraft() {
    if (form()) draft.keep(card.dataset.id, collect(), sendDraft);
  }

  function sendDraft() {
    if (card && form() && card.dataset.state === "open") draft.send(card, "PATCH", collect(), sendDraft, offline);
  }

  /* ---- the outbox ---- */

  function offline() {
    desk.offline(outbox.entries().length);
    if (outbox.unkept.size) warn(gettext("This browser cannot save your answers. Keep the page open until they are sent."));
  }

  const outbox = new window.evalapp.Outbox(page.dataset.user, desk.token, {
    changed() { showRefused(); },
    waiting() { offline(); },
    asks(entry) { return wantsMore(entry) ? { next: "ahead" } : {}; },
    sent(entry, answer) {
      draft.forget(entry.assignment);
      keepAhead(answer.html);
      const left = outbox.entries().length;
      if (left) saySending(left);
      else saySaved();
      goOn();
    },
    refused(entry, problem, code) {
      const left = outbox.entries().length;
      if (code === 401) desk.kept(problem);
      else {
        if (left) saySending(left);
        else say(gettext("Not saved"));
        if (window.evalapp.isDoubt(problem)) conflict(entry, problem);
        showRefused();
        goOn();
      }
    },
  });
  const showRefused = window.evalapp.refusals(document.getElementById("trouble"), outbox, "answer");

  /** Continues when all answers have been sent. */
  function goOn() {
    if (outbox.entries().length) return;
    warn("");
    fetchAhead();
    if (stage.querySelector("[data-waiting]")) showNext();
  }

  /* ---- two answers to one text ---- */

  /** Returns the labels of questions and choices; stored with each answer to describe it in a conflict. */
  function names() {
    const found = {};
    for (const question of questions()) {
      const words = {};
      for (const input of inputs(question)) {
        const label = input.closest("label");
        const text = label && [...label.childNodes].find((node) => node.nodeType === 3 && node.data.trim());
        if (text) words[input.value] = text.data.trim();
      }
      found[question.dataset.aspect] = { question: question.querySelector("legend").textContent.trim(), words };
    }
    return found;
  }

  function describe(place, answer, known) {
    place.replaceChildren();
    for (const [name, value] of Object.entries(answer || {})) {
      const labels = (known || {})[name] || { question: name, words: {} };
      const line = document.createElement("p");
      line.textContent = labels.question + " " + (labels.words[String(value)] || value);
      place.append(line);
    }
  }

  const conflicts = [];

  function conflict(entry, problem) {
    outbox.hold(entry, problem); // in case the page is closed before a choice
    conflicts.push({ entry, stored: problem.stored || {} });
    if (!conflictBox.open) askNext();
  }

  function askNext() {
    if (!conflicts.length) return;
    const { entry, stored } = conflicts[0];
    describe(conflictBox.querySelector("[data-mine]"), entry.body.answer, entry.names);
    describe(conflictBox.querySelector("[data-theirs]"), stored.answer, entry.names);
    const done = () => {
      conflicts.shift();
      outbox.remove(entry.id);
      draft.forget(entry.assignment);
      conflictBox.close();
      askNext();
    };
    conflictBox.querySelector("[data-keep]").onclick = () => {
      done();
      if (card && card.dataset.id === entry.assignment) showNext();
    };
    conflictBox.querySelector("[data-replace]").onclick = () => {
      const id = uuid();
      const body = { ...entry.body, submission: id, replaces: stored.version };
      outbox.add({ ...entry, id, body, at: undefined, problem: undefined });
      done();
      if (card && card.dataset.id === entry.assignment) showNext();
    };
    conflictBox.showModal();
  }
  // Closing the dialog without a choice would silently discard one of the two answers.
  conflictBox.addEventListener("cancel", (event) => event.preventDefault());

  /* ---- submitting ---- */

  function missing() {
    const open = questions().find((question) => valueOf(question) === null);
    for (const question of questions()) {
      const place = question.querySelector(".errorlist");
      if (place) place.remove();
    }
    if (!open) return false;
    const list = document.createElement("ul");
    list.className = "errorlist";
    list.setAttribute("role", "alert");
    list.append(Object.assign(document.createElement("li"), { textContent: gettext("Choose an answer first.") }));
    open.querySelector("legend").after(list);
    activate(questions().indexOf(open), true);
    return true;
  }

  // The second click of a double one was meant for the previous text.
  stage.addEventListener("click", (event) => {
    if (event.detail > 1 && event.target.closest("[data-submit]")) event.preventDefault();
  });

  stage.addEventListener("submit", (event) => {
    if (!event.target.matches("form.answer")) return;
    const pressed = event.submitter && event.submitter.value;
    if (pressed && pressed !== "submit") return; // skip and flag are plain forms
    event.preventDefault();
    if (sending || missing()) return;
    const { answer, note } = collect();
    const id = uuid();
    const body = { submission: id, answer, note, seconds: desk.spent() };
    if (Number(card.dataset.version)) body.replaces = Number(card.dataset.version);
    draft.stop();
    if (card.dataset.practice || card.dataset.state !== "open") {
      const content = JSON.stringify([card.dataset.id, answer, note]);
      sendNow(card, content, lost && lost.content === content ? lost.body : body);
      return;
    }
    count(1);
    // A new answer replaces a rejected one to the same text.
    for (const old of outbox.refusals()) if (old.assignment === card.dataset.id) outbox.remove(old.id);
    outbox.add({ id, assignment: card.dataset.id, url: card.dataset.submitUrl, body, names: names() });
    showNext();
  });

  /** Sends a practice answer or a correction and waits for the server. After practice the page shows the expected answer;
      after a correction the annotator continues with the text they came from. */
  async function sendNow(mine, content, body) {
    let response, answer;
    sending = true;
    const button = mine.querySelector("button[data-submit]");
    button.setAttribute("aria-disabled", "true");
    const again = () => {
      sending = false;
      button.removeAttribute("aria-disabled");
    };
    try {
      response = await desk.send("POST", mine.dataset.submitUrl, { ...body, confirm: Boolean(body.replaces) });
      answer = (await answerOf(response)) || {};
    } catch (error) {
      lost = { content, body };
      again();
      warn(gettext("No connection. Your answer stays on this page; submit it again when you are online."));
      return;
    }
    if (response.ok) {
      draft.forget(mine.dataset.id);
      window.location.assign(mine.dataset.practice ? mine.dataset.pageUrl : urls.home);
      return;
    }
    again();
    if (response.status === 409 && answer.stored) {
      const entry = { id: body.submission, assignment: mine.dataset.id, url: mine.dataset.submitUrl, body, names: names() };
      conflict(entry, answer);
    } else if (response.status === 401 || response.status === 403) desk.kept(answer);
    else warn(answer.detail || gettext("The answer was rejected. Reload the page."));
  }

  desk.openInPlace(stage, {
    async skip() {
      draft.stop();
      draft.forget(card.dataset.id);
      await showNext();
      say(gettext("Skipped"));
    },
    flag() { flash(gettext("Thank you. The researcher will see your report."), "success"); },
  });

  function count(step) {
    const place = document.getElementById("done-count");
    if (place) place.textContent = String(Number(place.textContent) + step);
    const bar = document.getElementById("done-bar");
    if (bar) bar.value += step;
  }

  /* ---- the next text ---- */

  async function fetchAhead() {
    if (fetching || ahead || !card || outbox.entries().length || card.dataset.practice) return fetching;
    if (card.dataset.state !== "open") return null;
    const url = urls.next + "?after=" + encodeURIComponent(card.dataset.id);
    fetching = fetch(url, { credentials: "same-origin", headers: { "X-Requested-With": "fetch", "Accept-Language": document.documentElement.lang } })
      .then(async (response) => {
        if (response.status === 204) ahead = { done: true };
        else if (response.ok) ahead = { html: await response.text() };
      })
      .catch(() => {})
      .finally(() => { fetching = null; });
    return fetching;
  }

  /** Whether the confirmation of this answer should include the text after the displayed one, which is already loaded or
      is displayed as soon as the answer is sent. */
  function wantsMore(entry) {
    if (fetching || !card || card.dataset.practice || card.dataset.state !== "open") return false;
    const shown = card.dataset.id !== entry.assignment;
    return outbox.entries().length === 1 && (shown ? !ahead : Boolean(ahead && ahead.html));
  }

  function keepAhead(html) {
    if (html === undefined || ahead || fetching || !card) return;
    if (!html) ahead = { done: true };
    else if (!html.includes(`data-id="${card.dataset.id}"`)) ahead = { html };
  }

  async function showNext() {
    if (fetching) await fetching;
    if (ahead && ahead.html) {
      const html = ahead.html;
      ahead = null;
      swap(html);
      return;
    }
    ahead = null;
    if (outbox.entries().length) {
      wait();
      return;
    }
    try {
      const response = await fetch(urls.home, { credentials: "same-origin" });
      if (response.ok) swap(await response.text());
      else if (response.status >= 500) wait();
      else window.location.assign(outbox.refusals().length ? urls.work : urls.home); // both pages show rejected answers
    } catch (error) {
      wait();
    }
  }

  /** Shows that the page waits for the server. The outbox retries if it has entries, else this timer: the server may be
      unreachable although the browser is online. */
  function wait() {
    clearTimeout(patience);
    patience = setTimeout(() => {
      if (stage.querySelector("[data-waiting]") && !outbox.entries().length) showNext();
    }, TRY_AGAIN);
    if (stage.querySelector("[data-waiting]")) return;
    card = null;
    stage.replaceChildren(document.getElementById("waiting").content.cloneNode(true));
    const heading = stage.querySelector("[data-start]");
    if (heading) heading.focus();
  }

  function swap(html) {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    const next = parsed.querySelector("#stage article[data-id], body > article[data-id]");
    if (!next) {
      window.location.assign(urls.home);
      return;
    }
    desk.clearMessages();
    stage.replaceChildren(document.importNode(next, true));
    window.scrollTo(0, 0);
    mount();
  }

  function mount() {
    card = stage.querySelector("article[data-id]");
    if (!card) return;
    desk.restart();
    ahead = null;
    shownAt = Date.now();
    touched = false;
    sending = false;
    if (form()) {
      if (card.dataset.state === "open") restore(draft.local(card.dataset.id));
      const open = questions().findIndex((question) => valueOf(question) === null);
      activate(open < 0 ? 0 : open, false);
      form().addEventListener("change", () => {
        touched = true;
        keepDraft();
      });
      form().addEventListener("input", keepDraft);
    }
    const heading = card.querySelector("[data-start]");
    if (heading) heading.focus({ preventScroll: true });
    fetchAhead();
  }

  window.addEventListener("offline", offline);
  window.addEventListener("online", () => {
    say(gettext("Back online"));
    sendDraft();
    if (stage.querySelector("[data-waiting]") && !outbox.entries().length) showNext();
  });
  mount();
  if (outbox.entries().length) {
    saySending(outbox.entries().length);
    outbox.flush();
  }
  showRefused();
  for (const entry of outbox.undecided()) conflict(entry, entry.problem);
})();
