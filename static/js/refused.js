/* What the server did not take of what lies in an outbox: shown with the reasons, kept until somebody has said what
   becomes of it. Used by judge.js, write.js and unsent.js. */
(function () {
  "use strict";

  /** Why the server did not take it, in its words. */
  function reasonOf({ problem }) {
    const faults = (problem.errors || []).map((fault) => fault.message);
    return [...new Set([problem.detail, ...faults])].filter(Boolean).join(" ");
  }

  /** A box after `anchor`; `noun` is what lies in the outbox ("answer"). Gives the function that draws it anew. */
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

    function throwAway(pressed, found, what) {
      if (!pressed.dataset.asked) {
        pressed.dataset.asked = "1";
        pressed.textContent = "Throw " + what + " away for good";
        return;
      }
      for (const entry of found) outbox.remove(entry.id);
      show();
    }

    function show() {
      const found = outbox.refusals();
      const why = [...new Set(found.map(reasonOf))];
      const told = JSON.stringify([found.map((entry) => entry.id), why]);
      if (told === drawn) return; // what has the focus stays
      drawn = told;
      box.hidden = !found.length;
      box.replaceChildren();
      if (box.hidden) return;
      const one = found.length === 1;
      const what = one ? "it" : "them";
      const line = document.createElement("p");
      line.textContent =
        found.length + " " + noun + (one ? " was" : "s were") + " not taken. " + why.join(" ") +
        (one ? " It stays" : " They stay") + " in this browser until you say what becomes of " + what + ".";
      const row = document.createElement("div");
      row.className = "row";
      row.append(
        button("Try again", () => outbox.again()),
        button("Download", () => download(found)),
        button("Throw away", (pressed) => throwAway(pressed, found, what)),
      );
      box.append(line, row);
    }

    return show;
  }

  window.evalapp = Object.assign(window.evalapp || {}, { refusals });
})();
