// A form that was checked: what leads on from the check is offered while the form is as it was then, and no longer.
// Without it the server compares.
"use strict";

(() => {
  const differs = (field) =>
    field.matches("select") ? [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex !== firstOf(field) :
    field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked :
    field.matches("input, textarea") && field.type !== "hidden" && field.value !== field.defaultValue;

  // A select of which nothing is marked as selected shows its first option.
  const firstOf = (field) => {
    const marked = [...field.options].findIndex((option) => option.defaultSelected);
    return Math.max(marked, 0);
  };

  function compare() {
    const form = document.querySelector("form[data-checked]");
    const onward = document.querySelector("[data-while=checked]");
    if (!form) return;
    const changed = [...form.elements].some(differs);
    for (const part of document.querySelectorAll("[data-while]")) part.hidden = (part.dataset.while === "changed") !== changed;
    form.querySelector("#check-button").classList.toggle("primary", changed || !onward);
  }

  // What the check found is taller than the line that stood there, and browsers keep the form below in its place: who
  // looked at that line would see the form alone. Who has gone on into the form stays there.
  let looking = false;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target } = event.detail;
    looking = target.id === "check" && target.getBoundingClientRect().top >= -1;
  });
  document.addEventListener("htmx:afterSettle", () => {
    const check = document.querySelector("#check");
    if (looking && check?.getBoundingClientRect().top < -1) check.scrollIntoView();
    looking = false;
  });

  document.addEventListener("input", compare);
  document.addEventListener("change", compare);
  document.addEventListener("htmx:afterSettle", compare);
  window.addEventListener("pageshow", compare);
  // Where the address names a part of the page, browsers leave the focus to it.
  window.addEventListener("load", () => document.querySelector(".note[autofocus]")?.focus());
})();
