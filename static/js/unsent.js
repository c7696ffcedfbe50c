/* My work: sends answers that an earlier visit could not send. Entries that need a decision or an editor are only
   listed here; their campaign's page handles them. */
(function () {
  "use strict";

  const place = document.getElementById("unsent");
  if (!place) return;
  const { ngettext, interpolate } = window.evalapp;
  const token = () => (document.cookie.match(/(?:^|; )csrftoken=([^;]+)/) || [])[1] || place.dataset.csrf;
  const refused = []; // functions that draw the boxes of rejected entries
  let sent = 0;

  function show() {
    const answers = judging.entries().length;
    const doubts = judging.undecided().length;
    const texts = writing.entries().length;
    const lines = [];
    const add = (count, message) => { if (count) lines.push(interpolate(message, { count })); };
    add(sent, ngettext("%(count)s saved answer was sent.", "%(count)s saved answers were sent.", sent));
    add(answers, ngettext(
      "%(count)s answer is saved in this browser and will be sent when the connection returns.",
      "%(count)s answers are saved in this browser and will be sent when the connection returns.", answers));
    add(doubts, ngettext(
      "%(count)s answer needs your decision: open the campaign.",
      "%(count)s answers need your decision: open the campaign.", doubts));
    add(texts, ngettext(
      "%(count)s text is saved in this browser: open the campaign to send it.",
      "%(count)s texts are saved in this browser: open the campaign to send them.", texts));
    place.textContent = lines.join(" ");
    place.hidden = !lines.length;
    Object.assign(place.dataset, { sent, undecided: doubts });
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
