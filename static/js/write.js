/* The writing page: keyboard, live score, drafts, texts through the outbox, and references that others add. Without this
   script the page works as plain forms; nothing here ever blocks the editor. */
(function () {
  "use strict";

  const page = document.getElementById("writing");
  if (!page) return;
  const stage = document.getElementById("stage");
  const { answerOf, flash, keyOf, onKeydown, uuid, gettext, ngettext, interpolate } = window.evalapp;
  const desk = window.evalapp.desk(page, "text");
  const { say, saySaved, saySending, warn, draft } = desk;
  const REST = 300; // milliseconds without a key press before requesting the score
  const SCORE_TIMEOUT = 2000;
  const SCORE_AGAIN = 5000;
  const POLL = 5000;
  const MOST_SCORED = 100; // candidates in the list that are scored
  const CHORD = 1500; // milliseconds from "c" to its digit

  let card = null; // the displayed item
  let aside = null; // a replaced text that can be restored
  let busy = ""; // the submission that the page waits for
  let chord = 0;

  const part = (name) => card && card.querySelector("#" + name);
  const editor = () => part("text");
  const form = () => card && card.querySelector("form.write");
  const typed = () => (editor() ? editor().value : "");

  /* ---- the candidate in the editor ---- */

  const inHand = () => (form() ? form().elements.candidate.value : "");
  const offered = () => [...card.querySelectorAll("[data-candidate]")];

  function relevant() {
    const chosen = form() && form().querySelector("input[name=relevant]:checked");
    return chosen ? chosen.value === "yes" : null;
  }

  function setRelevant(value) {
    for (const input of form().querySelectorAll("input[name=relevant]")) {
      input.checked = value !== null && input.value === (value ? "yes" : "no");
    }
  }

  /** Returns the content of the editor, to be restored later. */
  const hold = () => ({ text: typed(), candidate: inHand(), relevant: relevant() });

  function showAttempts(left) {
    const place = part("attempts");
    if (place && form() && !editor().readOnly) place.textContent = left;
  }

  function put(held) {
    editor().value = held.text || "";
    form().elements.candidate.value = held.candidate || "";
    setRelevant(held.relevant === undefined ? null : held.relevant);
    if (part("unscored")) part("unscored").hidden = true;
    showHand();
    keepDraft();
    askSoon(0);
  }

  function showHand() {
    const id = inHand();
    const box = part("relevance");
    if (box) box.hidden = !id;
    const drop = part("drop");
    if (drop) drop.hidden = !id;
    const label = part("hand-name");
    if (label && !editor().readOnly) label.textContent = id ? gettext("The candidate with your edits") : gettext("Your text");
    for (const row of offered()) row.toggleAttribute("data-taken", row.dataset.candidate === id);
  }

  /** Shows a message about the last replaced text, with a button that restores it. */
  function offerBack(words, held) {
    const place = part("aside");
    if (!place) return;
    aside = held;
    place.replaceChildren();
    place.hidden = !words;
    if (!words) return;
    place.append(words + " ");
    if (!held) return;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "link", textContent: gettext("Restore it") });
    button.addEventListener("click", () => {
      const back = aside;
      const now = hold();
      offerBack("", null);
      put(back);
      if (now.text.trim() && now.text !== back.text) offerBack(gettext("The other text was replaced."), now);
      editor().focus();
    });
    place.append(button);
  }

  /** Puts a candidate into the editor. If it was chosen by keyboard, the focus goes to the question whether it fits,
      because its answer keys would type into the text. */
  function take(row, byKey) {
    if (!form()) return;
    const before = hold();
    const mine = before.text.trim() && !(before.candidate && before.candidate === row.dataset.candidate);
    put({ text: row.dataset.text, candidate: row.dataset.candidate, relevant: null });
    showAttempts(card.dataset.maxAttempts);
    offerBack(mine ? gettext("The previous text was replaced.") : "", mine ? before : null);
    editor().setSelectionRange(typed().length, typed().length);
    const question = byKey && part("relevance") && part("relevance").querySelector("input");
    (question || editor()).focus();
  }

  function drop() {
    const before = hold();
    if (!before.candidate) return;
    desk.clearMessages();
    const entry = { id: uuid(), task: card.dataset.id, url: card.dataset.dropUrl, kind: "drop", held: before };
    entry.body = { submission: entry.id, candidate: before.candidate, seconds: desk.spent() };
    desk.restart();
    outbox.add(entry);
    draft.forget(card.dataset.id);
    if (card.dataset.rounds) {
      busy = entry.id; // the next candidate comes with the answer
      return;
    }
    for (const row of offered()) if (row.dataset.candidate === before.candidate) row.remove();
    put({ text: "" });
    offerBack(gettext("Candidate discarded."), { text: before.text, candidate: "", relevant: null });
    part("heading").focus({ preventScroll: true });
  }

  /* ---- the live score: requested after a pause in typing; only the latest request counts ----
     Two independent lanes: the text in the editor, and the candidates in the list. */

  let ticket = 0;
  const lanes = { text: null, list: null }; // {number, stop} of the pending request
  const timers = { text: null, list: null };
  const known = new Map(); // candidate -> reliability with it, for the current references

  const figure = (value) => value.toFixed(3);
  const difference = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
  const isNumber = (value) => typeof value === "number";

  /** Requests scores; returns null without an answer in time, undefined if a newer request replaced this one. */
  async function ask(lane, body) {
    const mine = card;
    ticket = Math.max(ticket + 1, Date.now());
    const number = ticket;
    if (lanes[lane]) lanes[lane].stop.abort();
    const stop = new AbortController();
    lanes[lane] = { number, stop };
    const late = setTimeout(() => stop.abort(), SCORE_TIMEOUT);
    let answer = null;
    try {
      const response = await desk.send("POST", mine.dataset.scoreUrl, { ticket: number, ...body }, { signal: stop.signal });
      if (response.ok) answer = await answerOf(response);
    } catch (error) {
      answer = null;
    }
    clearTimeout(late);
    if (mine !== card || !lanes[lane] || lanes[lane].number !== number) return undefined;
    lanes[lane] = null;
    if (answer && isNumber(answer.now)) mine.dataset.now = answer.now;
    return answer;
  }

  function askSoon(delay) {
    if (!card || !card.dataset.scoreUrl) return;
    clearTimeout(timers.text);
    if (!typed().trim()) {
      if (lanes.text) lanes.text.stop.abort();
      lanes.text = null;
      showScore("empty");
      return;
    }
    showScore("asking");
    timers.text = setTimeout(askText, delay);
  }

  async function askText() {
    const text = typed().trim();
    if (!card || !text) return;
    const answer = await ask("text", { text, candidates: [] });
    if (answer === undefined) return; // a newer request is pending
    if (!answer || !isNumber(answer.with_text)) {
      showScore("none", answer);
      timers.text = setTimeout(askText, SCORE_AGAIN);
    } else showScore("known", answer);
  }

  function askList(delay) {
    if (!card || !card.dataset.scoreUrl) return;
    clearTimeout(timers.list);
    timers.list = setTimeout(async () => {
      const ids = offered().slice(0, MOST_SCORED).map((row) => row.dataset.candidate);
      if (!ids.length && card.dataset.now) return;
      const answer = await ask("list", { text: "", candidates: ids });
      if (answer === undefined) return;
      const before = known.size;
      for (const [id, value] of Object.entries((answer && answer.candidates) || {})) if (isNumber(value)) known.set(id, value);
      if (answer) {
        showNow(answer.now);
        markCandidates(answer.now);
      }
      // The server scores few candidates at a time, so that the text in the editor comes first.
      if (!answer || answer.left > 0) askList(answer && known.size > before ? 20 : SCORE_AGAIN);
    }, delay || 20);
  }

  function showNow(value) {
    const now = part("now");
    if (now && isNumber(value)) now.textContent = figure(value);
    const bar = part("now-bar");
    if (bar && isNumber(value)) bar.value = value;
  }

  function showScore(state, answer) {
    const line = part("score");
    if (!line) return;
    line.dataset.state = state;
    line.setAttribute("aria-busy", String(state === "asking")); // screen readers wait for the score
    const arrow = part("with-text");
    if (arrow) arrow.replaceChildren();
    if (state === "known" && !isNumber(answer.now)) {
      line.dataset.sign = "same";
      line.textContent = interpolate(
        gettext("With this text %(value)s, the first of the set"), { value: figure(answer.with_text) });
    } else if (state === "known") {
      const gain = answer.with_text - answer.now;
      const sign = gain > 0 ? "up" : gain < 0 ? "down" : "same";
      line.dataset.sign = sign;
      const message = gain > Number(card.dataset.minGain || 0) ?
        gettext("With this text %(value)s, %(difference)s ▲ more reliable") :
        gettext("With this text %(value)s, %(difference)s ▽ not more reliable");
      line.textContent = interpolate(message, { value: figure(answer.with_text), difference: difference(gain) });
      if (part("unscored")) part("unscored").hidden = true;
      if (arrow) arrow.textContent = " → " + figure(answer.with_text) + (gain > 0 ? " ▲" : gain < 0 ? " ▽" : "");
    } else if (state === "asking") line.textContent = gettext("scoring…");
    else if (state === "none") line.textContent = gettext("Score not available. You can continue writing; it returns automatically.");
    else line.textContent = gettext("The score of your text appears here.");
    if (answer) showNow(answer.now);
  }

  function markCandidates(now) {
    if (!isNumber(now)) return;
    for (const row of offered()) {
      const value = known.get(row.dataset.candidate);
      if (value === undefined) continue;
      let place = row.querySelector(".gain");
      if (!place) {
        place = Object.assign(document.createElement("span"), { className: "gain" });
        const button = row.querySelector(".use");
        if (button) button.before(place);
        else row.append(place);
      }
      const gain = value - now;
      place.dataset.sign = gain > 0 ? "up" : gain < 0 ? "down" : "same";
      place.textContent = difference(gain) + (gain > 0 ? " ▲" : gain < 0 ? " ▽" : "");
      place.title = interpolate(gettext("reliability with it: %(value)s"), { value: figure(value) });
    }
  }

  /* ---- drafts ---- */

  function keepDraft() {
    if (form()) draft.keep(card.dataset.id, hold(), sendDraft);
  }

  function sendDraft() {
    if (card && form() && !busy) draft.send(card, "POST", hold(), sendDraft, offline);
  }

  /* ---- the outbox ---- */

  const waitingTexts = () => outbox.entries().filter((entry) => entry.kind === "text");

  const offline = () => desk.offline(waitingTexts().length);

  function showWaiting() {
    const place = part("waiting");
    if (!place) return;
    const mine = waitingTexts().filter((entry) => entry.task === card.dataset.id && entry.id !== busy);
    place.hidden = !mine.length;
    place.querySelector("ul").replaceChildren(
      ...mine.map((entry) => Object.assign(document.createElement("li"), { textContent: entry.body.text, dir: "auto" })),
    );
  }

  const outbox = new window.evalapp.Outbox(page.dataset.user, desk.token, {
    changed() {
      showWaiting();
      showRefused();
    },
    waiting(entries) {
      offline();
      // The pending text is safe in the outbox, so the editor is free for the next one.
      const mine = entries.find((entry) => entry.id === busy);
      if (mine) {
        free();
        if (mine.kind === "text" && card && card.dataset.id === mine.task && typed() === mine.held.text && !card.dataset.rounds) {
          put({ text: "" });
          draft.forget(mine.task);
        }
      }
      showWaiting();
    },
    sent(entry, answer) {
      if (busy === entry.id) free();
      if (!outbox.entries().length) warn("");
      saySaved();
      answered(entry, answer);
    },
    refused(entry, problem, code) {
      if (busy === entry.id) free();
      if (entry.kind === "text") say(code === 401 ? gettext("Saved in this browser.") : gettext("Not added"));
      if (code === 401) desk.kept(problem);
      else if (code !== 403) refused(entry, problem);
      showRefused();
    },
  });
  const showRefused = window.evalapp.refusals(document.getElementById("trouble"), outbox, "text");

  function free() {
    busy = "";
    const button = card && card.querySelector("[data-submit]");
    if (button) button.removeAttribute("aria-disabled");
  }

  /** Nothing was stored, so the time counts for the next attempt. */
  const giveTimeBack = (entry) => desk.restart(desk.spent() + (entry.body.seconds || 0));

  /* ---- the server's decision ---- */

  const parse = (html) => new DOMParser().parseFromString(html || "", "text/html");

  /** Updates everything except the editor and the candidates from the server's page. */
  function refresh(next) {
    const isExplained = part("gain-help") && part("gain-help").open;
    for (const name of ["references", "reliability", "last-text"]) {
      const mine = part(name);
      const theirs = next.querySelector("#" + name);
      if (mine && theirs) mine.replaceWith(document.importNode(theirs, true));
      else if (mine) mine.remove(); // another text is the last one now
    }
    if (isExplained && part("gain-help")) part("gain-help").open = true;
    for (const name of ["stamp", "now", "draftVersion", "state"]) {
      if (next.dataset[name] !== undefined) card.dataset[name] = next.dataset[name];
    }
    known.clear();
    askSoon(0);
    askList();
    showWaiting();
  }

  function tell(message, level) {
    const place = part("outcome");
    if (!place) return;
    place.textContent = message || "";
    place.className = "note " + (level || "");
    place.hidden = !message;
  }

  function answered(entry, answer) {
    if (!card || entry.task !== card.dataset.id) return;
    const next = parse(answer.html).querySelector("article[data-id]");
    if (answer.finished || card.dataset.rounds) draft.forget(card.dataset.id);
    if (answer.finished || !next || next.dataset.id !== card.dataset.id) {
      if (!outbox.entries().length) leave(answer.message);
      return;
    }
    if (entry.kind === "drop") {
      if (card.dataset.rounds) swap(next);
      else refresh(next);
      return;
    }
    const level = answer.decision === "accept" ? "good" : "warn";
    if (answer.decision === "accept" || answer.decision === "drop") {
      if (card.dataset.rounds) {
        swap(next);
        tell(answer.message, level);
        return;
      }
      for (const row of offered()) if (row.dataset.candidate === entry.held.candidate) row.remove();
      if (typed() === entry.held.text) {
        put({ text: "" });
        draft.forget(card.dataset.id);
        const heading = part("heading");
        if (heading && document.activeElement === editor()) heading.focus({ preventScroll: true });
      }
      refresh(next);
      tell(answer.message, level);
      offerBack(answer.decision === "drop" ? gettext("The text can be restored.") : "", answer.decision === "drop" ? { ...entry.held, candidate: "" } : null);
      return;
    }
    // The text is to be edited, or is a draft without a score: it stays in the editor.
    if (answer.decision === "wait") giveTimeBack(entry);
    refresh(next);
    if (answer.decision === "edit") showAttempts(answer.attempts_left);
    if (typed() !== entry.held.text) {
      const message = gettext("“%(text)s” needs another revision.");
      if (typed().trim()) offerBack(interpolate(message, { text: entry.held.text.slice(0, 60) }), entry.held);
      else put(entry.held);
    }
    tell(answer.message, level);
    const unscored = part("unscored");
    if (unscored) unscored.hidden = !answer.offer_unscored;
    backToEditor();
  }

  /** Returns the focus to the editor unless the annotator has moved it elsewhere. */
  function backToEditor() {
    const now = document.activeElement;
    if (editor() && (!now || now === document.body || now.id === "heading" || form().contains(now))) editor().focus();
  }

  /** The server rejected an entry (an error, a conflict, a closed campaign): its text returns to the editor, or stays in
      the outbox if there is no editor. */
  function refused(entry, problem) {
    const why = (problem.errors || []).map((fault) => fault.message).join(" ");
    if (entry.kind !== "text") {
      outbox.remove(entry.id); // a discarded candidate has no text to save
      warn((problem.detail || gettext("The server rejected the request.")) + " " + why);
      return;
    }
    if (!card || entry.task !== card.dataset.id) return;
    const next = parse(problem.html).querySelector("article[data-id]");
    if (next && next.dataset.id === card.dataset.id) {
      // The item or the round may have ended; the server stores the text as a draft.
      if (next.dataset.state !== card.dataset.state || (card.dataset.rounds && next.dataset.stamp !== card.dataset.stamp)) swap(next);
      else refresh(next);
    }
    if (editor()) {
      giveTimeBack(entry);
      if (!typed().trim()) put(entry.held);
      else if (typed() !== entry.held.text) offerBack(gettext("A text was rejected."), entry.held);
      outbox.remove(entry.id);
    }
    tell(why || problem.detail || gettext("The server rejected the text."), "bad");
    backToEditor();
  }

  function leave(message) {
    if (message) sessionStorage.setItem("evalapp.message", message);
    window.location.assign(page.dataset.home);
  }

  /* ---- taking back what was added last ---- */

  let undoing = false;

  async function takeBack(back) {
    if (undoing || busy) return;
    if (waitingTexts().length) {
      tell(gettext("Some texts are not sent yet. Take back the last one when they are."), "warn");
      return;
    }
    const mine = card;
    undoing = true;
    try {
      const response = await desk.send("POST", back.action, { reference: back.elements.reference.value });
      const answer = (await answerOf(response)) || {};
      if (mine !== card) return;
      if (response.status === 401 || response.status === 403) desk.kept(answer);
      else if (!response.ok) tell(answer.detail || gettext("It could not be taken back. Reload the page."), "bad");
      else {
        const next = parse(answer.html).querySelector("article[data-id]");
        draft.stop();
        // A text in the editor stays; otherwise the withdrawn text returns there.
        if (form() && typed().trim() && !card.dataset.rounds) refresh(next);
        else {
          draft.forget(card.dataset.id);
          swap(next);
        }
        tell(answer.message, "good");
        if (editor() && !typed().trim()) editor().focus();
      }
    } catch (error) {
      tell(gettext("No response from the server. Reload the page to see whether the text was taken back."), "bad");
    } finally {
      undoing = false;
    }
  }

  /* ---- adding ---- */

  function add(unscored) {
    const text = typed().trim();
    if (!text) {
      tell(card.dataset.ownText ? gettext("Write a text first.") : gettext("Choose a candidate first."), "bad");
      editor().focus();
      return;
    }
    if (busy) return;
    if (!inHand() && !card.dataset.ownText) {
      tell(gettext("Start with a candidate: press c and its number, or use the button next to it."), "bad");
      return;
    }
    const entry = { id: uuid(), task: card.dataset.id, url: card.dataset.url, kind: "text", held: { ...hold(), text: typed() } };
    entry.body = {
      submission: entry.id,
      text,
      candidate: inHand() || null,
      relevant: relevant(),
      seconds: desk.spent(),
    };
    if (unscored) entry.body.unscored = true;
    desk.restart();
    draft.stop();
    busy = entry.id;
    card.querySelector("[data-submit]").setAttribute("aria-disabled", "true");
    desk.clearMessages();
    tell("", "");
    say(gettext("Adding…"));
    outbox.add(entry);
  }

  stage.addEventListener("submit", (event) => {
    if (event.target.matches("form.take-back[data-here]")) {
      event.preventDefault();
      takeBack(event.target);
      return;
    }
    if (event.target.matches("form.write")) {
      const pressed = event.submitter;
      if (pressed && !pressed.matches("[data-submit], #unscored, #drop")) return; // done and skip are plain forms
      event.preventDefault();
      if (pressed && pressed.id === "drop") drop();
      else add(Boolean(pressed && pressed.id === "unscored"));
    }
  });

  desk.openInPlace(stage, {
    skip() {
      draft.stop();
      leave(gettext("Skipped. You will not see that item again."));
    },
    flag() { flash(gettext("Thank you. The researcher will see your report."), "success"); },
  });

  stage.addEventListener("click", (event) => {
    const use = event.target.closest("[data-candidate] .use");
    if (use) {
      event.preventDefault();
      take(use.closest("[data-candidate]"));
    }
  });

  stage.addEventListener("input", (event) => {
    if (event.target === editor()) {
      keepDraft();
      askSoon(REST);
    }
  });
  stage.addEventListener("change", (event) => {
    if (event.target.name === "relevant") keepDraft();
  });

  /* ---- keyboard ---- */

  const typing = (element) => element.closest("textarea:not([readonly]), select, [contenteditable=true], input:not([type=radio]):not([type=checkbox])");

  onKeydown((event) => {
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form()) {
      event.preventDefault();
      if (!event.repeat) add(false);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (typing(event.target)) leaveField(event.target);
      return;
    }
    if (typing(event.target) || event.repeat) return;
    if (form() && pressed(event)) return;
    const button = document.querySelector(`#stage [data-key="${CSS.escape(keyOf(event))}"], header [data-key="${CSS.escape(keyOf(event))}"]`);
    if (button && !button.disabled) {
      event.preventDefault();
      button.click();
    }
  });

  /** Leaves a field without changing it. */
  function leaveField(field) {
    field.blur();
    part("heading").focus({ preventScroll: true });
  }

  /** Handles the shortcuts of the editor and returns whether the key was one. */
  function pressed(event) {
    if (chord && Date.now() - chord < CHORD && event.key >= "1" && event.key <= "9") {
      const row = offered()[Number(event.key) - 1];
      chord = 0;
      event.preventDefault();
      if (row) take(row, true);
      return true;
    }
    const key = keyOf(event);
    chord = key === "c" ? Date.now() : 0;
    if (chord) {
      event.preventDefault();
      return true;
    }
    if (key === "e") {
      event.preventDefault();
      editor().focus();
      return true;
    }
    if ((key === "y" || key === "n") && part("relevance") && inHand()) {
      event.preventDefault();
      setRelevant(key === "y");
      keepDraft();
      editor().focus();
      return true;
    }
    return false;
  }

  /* ---- candidates, loaded by htmx ---- */

  document.addEventListener("htmx:afterSwap", (event) => {
    if (!card || !event.target.closest || !event.target.closest("#candidates")) return;
    offered().slice(0, 9).forEach((row, place) => {
      const use = row.querySelector(".use");
      if (use && !use.querySelector("kbd")) {
        use.append(" ", Object.assign(document.createElement("kbd"), { textContent: "c" + (place + 1) }));
      }
    });
    showHand();
    askList();
  });

  /* ---- references that others add ---- */

  let polling = false;
  async function poll() {
    if (!card || document.hidden || polling || busy || !["write", "wait"].includes(card.dataset.state)) return;
    const mine = card;
    polling = true;
    try {
      const response = await fetch(mine.dataset.url + "?part=references&stamp=" + encodeURIComponent(mine.dataset.stamp), {
        credentials: "same-origin",
        headers: { "X-Requested-With": "fetch", "Accept-Language": document.documentElement.lang },
      });
      if (response.status === 200 && !response.redirected && mine === card && !busy) {
        const next = parse(await response.text()).querySelector("article[data-id]");
        if (next && next.dataset.state !== card.dataset.state && !typed().trim()) swap(next);
        else if (next && next.dataset.stamp !== card.dataset.stamp) {
          const before = card.querySelectorAll("#references [data-reference]").length;
          refresh(next);
          const more = card.querySelectorAll("#references [data-reference]").length - before;
          const message = ngettext("%(count)s new reference by another annotator", "%(count)s new references by other annotators", more);
          if (more > 0) say(interpolate(message, { count: more }));
        }
      }
    } catch (error) {
      // The next poll tries again.
    } finally {
      polling = false;
    }
  }
  setInterval(poll, POLL);
  document.addEventListener("visibilitychange", poll);

  /* ---- the displayed item ---- */

  function swap(next) {
    stage.replaceChildren(document.importNode(next, true));
    if (window.htmx) window.htmx.process(stage);
    window.scrollTo(0, 0);
    mount();
  }

  function mount() {
    card = stage.querySelector("article[data-id]");
    if (!card) return;
    desk.restart();
    aside = null;
    busy = "";
    known.clear();
    if (form()) {
      const local = draft.local(card.dataset.id);
      const sameHand = !card.dataset.rounds || !local || local.candidate === inHand();
      if (local && local.text && sameHand && local.text !== typed()) {
        put(local);
        say(gettext("Draft restored"));
      }
      showHand();
      showWaiting();
      askSoon(0);
      askList();
    }
    const heading = part("heading");
    if (heading) heading.focus({ preventScroll: true });
    const message = sessionStorage.getItem("evalapp.message");
    if (message) {
      sessionStorage.removeItem("evalapp.message");
      tell(message, "good");
    }
  }

  window.addEventListener("offline", offline);
  window.addEventListener("online", () => {
    say(gettext("Back online"));
    if (card && form() && typed().trim()) sendDraft();
    askSoon(0);
  });
  mount();
  if (outbox.entries().length) {
    saySending(outbox.entries().length);
    outbox.flush();
  }
  showRefused();
})();
