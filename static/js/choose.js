// The catalogue of evaluators: a filter, selecting whole parts, and the number of selected. It works without them.
"use strict";
{
  const { ngettext, interpolate, gettext, onKeydown } = window.evalapp;
  const form = document.getElementById("score-form");
  const boxes = () => [...form.elements].filter((element) => element.name === "evaluators");

  const count = () => {
    const place = form.querySelector("[data-ticked]");
    if (!place) return;
    const n = boxes().filter((box) => box.checked).length;
    place.textContent = n ? interpolate(ngettext("%(n)s selected", "%(n)s selected", n), { n }) : gettext("None selected");
  };

  const filter = (field) => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const list = document.getElementById(field.dataset.filter);
    let found = 0;
    for (const part of list.querySelectorAll("[data-part]")) {
      const rows = [...part.querySelectorAll("li")];
      for (const row of rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      part.hidden = rows.every((row) => row.hidden);
      found += rows.filter((row) => !row.hidden).length;
    }
    list.querySelector("[data-nothing]").hidden = found > 0;
  };

  // A filter must not send the form.
  onKeydown((event) => {
    if (event.key === "Enter" && event.target.matches("[data-filter]")) event.preventDefault();
  });
  form.addEventListener("input", (event) => {
    if (event.target.matches("[data-filter]")) filter(event.target);
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tick]");
    if (!button) return;
    const inside = boxes().filter((box) => box.closest(`[data-part="${button.dataset.tick}"] li:not([hidden])`));
    const all = inside.every((box) => box.checked);
    for (const box of inside) box.checked = !all;
    count();
  });
  document.addEventListener("change", count);
  window.addEventListener("pageshow", count);
  for (const element of form.querySelectorAll("[data-scripted]")) delete element.dataset.scripted;
  count();
}
