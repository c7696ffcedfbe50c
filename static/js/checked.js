// A checked form: the next step is offered only while the form still has the checked values. Without this script the
// server compares.
"use strict";

(() => {
  const differs = (field) =>
    field.matches("select") ? [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex !== firstOf(field) :
    field.matches("[type=checkbox], [type=radio]") ? field.checked !== field.defaultChecked :
    field.matches("input, textarea") && field.type !== "hidden" && field.value !== field.defaultValue;

  // A select without a selected option shows its first option.
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

  // The result of the check is taller than the line it replaces, and browsers keep the scroll position of the form
  // below: scroll the result into view if the line was visible, but not for people who have moved on to the form.
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
  // If the address has a fragment, browsers ignore autofocus.
  window.addEventListener("load", () => document.querySelector(".note[autofocus]")?.focus());
})();
