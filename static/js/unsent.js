/* My work: answers that an earlier visit could not send leave from here, too, so that nobody has to open a campaign for
   them. What needs a decision, or belongs into an editor, waits for its own page and is told here. */
(function () {
  "use strict";

  const place = document.getElementById("unsent");
  if (!place) return;
  const token = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || [])[1] || place.dataset.csrf;
  const wait = (n, word) => n + " " + word + (n === 1 ? " waits" : "s wait");
  const refused = []; // what draws the boxes of what was not taken
  let sent = 0;

  function show() {
    const answers = judging.entries().length;
    const doubts = judging.undecided().length;
    const texts = writing.entries().length;
    const lines = [];
    if (sent) lines.push("Sent now: " + sent + (sent === 1 ? " answer that had waited here." : " answers that had waited here."));
    if (answers) lines.push(wait(answers, "answer") + " in this browser for the connection.");
    if (doubts) lines.push(wait(doubts, "answer") + " for your decision: open the campaign.");
    if (texts) lines.push(wait(texts, "text") + " in this browser: open the campaign to send it.");
    place.textContent = lines.join(" ");
    place.hidden = !lines.length;
    for (const draw of refused) draw();
  }

  const judging = new window.evalapp.Outbox(place.dataset.judging, token, {
    changed: show,
    waiting: show,
    sent() {
      sent += 1;
      show();
    },
    refused: show,
  });
  const writing = new window.evalapp.Outbox(place.dataset.writing, token, { changed: show });
  refused.push(window.evalapp.refusals(place, judging, "answer"), window.evalapp.refusals(place, writing, "text"));
  show();
  judging.flush();
})();
