/* Shows the entries of an outbox that the server rejected, with the reasons, until the annotator decides what to do with
   them. Used by judge.js, write.js and unsent.js. */
(function () {
  "use strict";

  const { gettext, ngettext, interpolate } = window.evalapp;
  /** Messages by the kind of entry, for a count of entries. */
  const REJECTED = {
    answer: (count) => ngettext("%(count)s answer was rejected.", "%(count)s answers were rejected.", count),
    text: (count) => ngettext("%(count)s text was rejected.", "%(count)s texts were rejected.", count),
  };

  /** Returns the server's reasons for a rejection. */
  function reasonOf({ problem }) {
    const faults = (problem.errors || []).map((fault) => fault.message);
    return [...new Set([problem.detail, ...faults])].filter(Boolean).join(" ");
  }

  /** Adds a box after `anchor` and returns the function that redraws it; `noun` is the kind of entry, "answer" or
      "text". */
  function refusals(anchor, outbox, noun) {
    const box = document.createElement("div");
    box.className = "note warn";
    box.setAttribute("role", "status");
    box.hidden = true;
    anchor.after(box);
    let drawn = "";

    function button(label, act) {
      const made = document.createElement("button");
      Object.assign(made, { type: "button", className: "small", textContent: label });
      made.addEventListener("click", () => act(made));
      return made;
    }

    function download(found) {
      const rows = found.map((entry) => ({
        kept: new Date(entry.at || Date.now()).toISOString(),
        why: reasonOf(entry),
        ...(entry.held || entry.body),
        questions: entry.names,
      }));
      const url = URL.createObjectURL(new Blob([JSON.stringify(rows, null, 2)], { type: "application/json" }));
      Object.assign(document.createElement("a"), { href: url, download: "unsent-" + noun + "s.json" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    }

    function discard(pressed, found) {
      if (!pressed.dataset.asked) {
        pressed.dataset.asked = "1";
        pressed.textContent = gettext("Discard permanently");
        return;
      }
      for (const entry of found) outbox.remove(entry.id);
      show();
    }

    function show() {
      const found = outbox.refusals();
      const why = [...new Set(found.map(reasonOf))];
      const content = JSON.stringify([found.map((entry) => entry.id), why]);
      if (content === drawn) return; // redrawing would lose the focus
      drawn = content;
      box.hidden = !found.length;
      box.replaceChildren();
      if (box.hidden) return;
      const count = found.length;
      const line = document.createElement("p");
      line.textContent = [
        interpolate(REJECTED[noun](count), { count }),
        ...why,
        ngettext(
          "It stays in this browser until you decide what to do with it.",
          "They stay in this browser until you decide what to do with them.", count),
      ].join(" ");
      const row = document.createElement("div");
      row.className = "row";
      row.append(
        button(gettext("Try again"), () => outbox.again()),
        button(gettext("Download"), () => download(found)),
        button(gettext("Discard"), (pressed) => discard(pressed, found)),
      );
      box.append(line, row);
    }

    return show;
  }

  window.evalapp = Object.assign(window.evalapp || {}, { refusals });
})();
