/* The judging page: keyboard, drafts, the next text fetched ahead, answers through the outbox. The page works
   without this file as plain forms; everything here only makes it faster and keeps more. */
(function () {
  "use strict";

  const page = document.getElementById("judging");
  if (!page) return;
  const stage = document.getElementById("stage");
  const conflictBox = document.getElementById("conflict");
  const { answerOf, clock, plural, keyOf, onKeydown, uuid } = window.evalapp;
  const desk = window.evalapp.desk(page, "answer", "judge");
  const { say, warn, draft } = desk;
  const urls = { next: page.dataset.next, home: page.dataset.home, work: page.dataset.work };
  const TRY_AGAIN = 3000;
  const SECOND_ENTER = 600; // an Enter this soon after a text appeared was meant for the one before

  let card = null; // the assignment on show
  let ahead = null; // {html} fetched ahead, {done: true} when nothing is left
  let fetching = null;
  let shownAt = 0;
  let touched = false; // whether an answer was chosen since then
  let patience = null;
  let sending = false; // an answer that waits for the server's word is on its way
  let lost = null; // {said, body} of such an answer that had no word: submitted again it is the same submission

  /* ---- what the form says ---- */

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
      if (!event.repeat) choose(wanted); // held down it answers one question, not the next text as well
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
    if (outbox.unkept.size) warn("This browser keeps nothing for the page. Leave it open until your answers are sent.");
  }

  const outbox = new window.evalapp.Outbox(page.dataset.user, desk.token, {
    changed() { showRefused(); },
    waiting() { offline(); },
    asks(entry) { return wantsMore(entry) ? { next: "ahead" } : {}; },
    sent(entry, answer) {
      draft.forget(entry.assignment);
      keepAhead(answer.html);
      const left = outbox.entries().length;
      say(left ? plural(left, "answer") + " on the way" : "Saved " + clock());
      goOn();
    },
    refused(entry, problem, code) {
      const left = outbox.entries().length;
      if (code === 401) desk.kept(problem);
      else {
        say(left ? plural(left, "answer") + " on the way" : "Not saved");
        if (window.evalapp.isDoubt(problem)) conflict(entry, problem);
        showRefused();
        goOn();
      }
    },
  });
  const showRefused = window.evalapp.refusals(document.getElementById("trouble"), outbox, "answer");

  /** Once nothing is on its way any more: what the page has waited for. */
  function goOn() {
    if (outbox.entries().length) return;
    warn("");
    fetchAhead();
    if (stage.querySelector("[data-waiting]")) showNext();
  }

  /* ---- two answers to one text ---- */

  /** What the questions and their choices are called, kept with each answer for the case of a conflict. */
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
      const told = (known || {})[name] || { question: name, words: {} };
      const line = document.createElement("p");
      line.textContent = told.question + " " + (told.words[String(value)] || value);
      place.append(line);
    }
  }

  const conflicts = [];

  function conflict(entry, problem) {
    outbox.hold(entry, problem); // should the page be closed before somebody has chosen
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
  // Closing the dialog without a choice would drop one of the two answers without a word.
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
    list.append(Object.assign(document.createElement("li"), { textContent: "Choose an answer first." }));
    open.querySelector("legend").after(list);
    activate(questions().indexOf(open), true);
    return true;
  }

  stage.addEventListener("submit", (event) => {
    if (!event.target.matches("form.answer")) return;
    const pressed = event.submitter && event.submitter.value;
    if (pressed && pressed !== "submit") return; // skip and flag go the plain way
    event.preventDefault();
    if (sending || missing()) return;
    const { answer, note } = collect();
    const id = uuid();
    const body = { submission: id, answer, note, seconds: desk.spent() };
    if (Number(card.dataset.version)) body.replaces = Number(card.dataset.version);
    draft.stop();
    if (card.dataset.practice || card.dataset.state !== "open") {
      const said = JSON.stringify([card.dataset.id, answer, note]);
      sendNow(card, said, lost && lost.said === said ? lost.body : body);
      return;
    }
    count(1);
    // A new answer to a text stands in place of the one that was refused: two would be in each other's way.
    for (const old of outbox.refusals()) if (old.assignment === card.dataset.id) outbox.remove(old.id);
    outbox.add({ id, assignment: card.dataset.id, url: card.dataset.submitUrl, body, names: names() });
    showNext();
  });

  /** Practice and corrections wait for the server: its answer is what the person wants to see. After a practice answer
      the same page shows what was expected; after a correction the person goes on where they were before. */
  async function sendNow(mine, said, body) {
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
      lost = { said, body };
      again();
      warn("No connection. Your answer stays on this page; submit it again when you are online.");
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
    else warn(answer.detail || "The answer was not taken. Reload the page.");
  }

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
    fetching = fetch(url, { credentials: "same-origin", headers: { "X-Requested-With": "fetch" } })
      .then(async (response) => {
        if (response.status === 204) ahead = { done: true };
        else if (response.ok) ahead = { html: await response.text() };
      })
      .catch(() => {})
      .finally(() => { fetching = null; });
    return fetching;
  }

  /** Whether the confirmation of this answer should bring the text after the one on show: the one on show is there
      already, or is shown the moment the answer is on its way. */
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
      else window.location.assign(outbox.refusals().length ? urls.work : urls.home); // there they are shown, too
    } catch (error) {
      wait();
    }
  }

  /** Nothing can be shown before the server has been reached again. With answers to send the outbox tries; without, this
      does: the server may be away while the browser believes to be online. */
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
    say("Back online");
    sendDraft();
    if (stage.querySelector("[data-waiting]") && !outbox.entries().length) showNext();
  });
  mount();
  if (outbox.entries().length) {
    say(plural(outbox.entries().length, "answer") + " on the way");
    outbox.flush();
  }
  showRefused();
  for (const entry of outbox.undecided()) conflict(entry, entry.problem);
})();
