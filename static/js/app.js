// What every page shares: the keyboard help, copying, dialogs, and saying when the server cannot be reached.
// Pages work without it.
"use strict";

const typing = (target) =>
  target.closest("input:not([type=radio]):not([type=checkbox]):not([type=submit]), textarea, select, [contenteditable=true]");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "?") {
    const help = document.getElementById("keys");
    if (help && !help.open) { event.preventDefault(); help.showModal(); }
  } else if (event.key === "/") {
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  }
});

/** Whether it was copied; else it is selected. Browsers give a clipboard to pages by TLS and of this machine alone. */
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent.trim());
    return true;
  } catch (error) {
    if (!source.select) return false;
    source.select();
    return document.execCommand("copy");
  }
}

document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    const dialog = document.getElementById(opener.dataset.dialog);
    if (dialog) { event.preventDefault(); dialog.showModal(); }
    return;
  }
  const copier = event.target.closest("[data-copy]");
  if (copier) {
    copy(document.getElementById(copier.dataset.copy)).then((done) => {
      if (!done) return;
      const before = copier.textContent;
      copier.textContent = "Copied";
      setTimeout(() => { copier.textContent = before; }, 1500);
    });
    return;
  }
  if (event.target.matches("dialog")) event.target.close();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-autosubmit]")) event.target.form.requestSubmit();
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-once]")) {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
  }
});
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

function say(text, level) {
  const place = document.getElementById("messages");
  if (!place) return;
  const flash = document.createElement("div");
  flash.className = "flash";
  flash.dataset.level = level;
  const line = document.createElement("p");
  line.textContent = text;
  flash.append(line);
  for (const old of place.querySelectorAll("[data-from=network]")) old.remove();
  flash.dataset.from = "network";
  place.append(flash);
}
document.addEventListener("htmx:sendError", () => say("The server cannot be reached. This page goes on when it is back.", "warning"));
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status === 503) {
    // A part of the installation is not running: the page that came says which.
    const line = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html").querySelector("h1 + p");
    say(line ? line.textContent : "A part of the installation is not running. Try again in a moment.", "warning");
    return;
  }
  say(status === 403 ? "You are signed out, or your role does not allow this. Reload the page." :
      `That did not work (${status}). Reload the page and try again.`, "error");
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && !isSignIn(event.detail.xhr)) for (const old of document.querySelectorAll("#messages [data-from=network]")) old.remove();
});

// Signed out meanwhile, here or in another tab: what comes in place of a part is the page of signing in.
const isSignIn = (xhr) => new URL(xhr.responseURL, location.href).pathname.endsWith("/account/sign-in/");
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isSignIn(event.detail.xhr)) return;
  event.detail.shouldSwap = false;
  say("You are signed out. Reload the page to sign in and go on.", "warning");
});

// A part that is fetched again keeps open or closed what somebody opened or closed in it (`<details id>`).
const folds = new Map();
document.addEventListener("htmx:beforeSwap", (event) => {
  folds.clear();
  for (const fold of event.detail.target.querySelectorAll("details[id]")) folds.set(fold.id, fold.open);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [id, open] of folds) {
    const fold = document.getElementById(id);
    if (fold) fold.open = open;
  }
});

// On a narrow screen the places of a project scroll sideways: the present one is brought into view.
const here = document.querySelector(".site-nav [aria-current]");
if (here) {
  const row = here.closest(".site-nav");
  row.scrollLeft = here.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
}
