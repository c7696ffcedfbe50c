// What every page shares: the keyboard help, copying, menus, dialogs, parts that are fetched again, and saying when the
// server cannot be reached.
// Pages work without it.
"use strict";

const typing = (target) =>
  target.closest("input:not([type=radio]):not([type=checkbox]):not([type=submit]), textarea:not([readonly]), select, [contenteditable=true]");

/** Calls `handler` for each key, except for keys of an input method (IME): there Enter and Esc choose or cancel
    characters. Every key handler is registered here. Some browsers report such a key by its code 229 only. */
function onKeydown(handler) {
  document.addEventListener("keydown", (event) => {
    if (!event.isComposing && event.keyCode !== 229) handler(event);
  });
}
window.evalapp = { onKeydown };

const openMenus = () => [...document.querySelectorAll("details.menu[open]")];

onKeydown((event) => {
  if (event.key === "Escape") {
    for (const menu of openMenus()) {
      const within = menu.contains(document.activeElement);
      menu.open = false;
      // What had the focus is hidden now: without this it would fall to the top of the page.
      if (within) menu.querySelector("summary").focus();
      event.preventDefault();
    }
    // Esc leaves a field that is filled, else the page, where it has a way back.
    const back = document.querySelector("a[data-escape]");
    if (!back || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (typing(event.target) && event.target.value) event.target.blur();
    else back.click();
    return;
  }
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
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
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
});
// By keyboard a menu is left by Tab.
document.addEventListener("focusin", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
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

// `hx-swap="renew"` (with hx-ext="renew" around it) changes only what is different in a part that is fetched again: the
// focus, a selection, and what somebody opened or scrolled stay where they are. Elements with an id are known by it, all
// others by their place.
const BY_READER = ["open", "data-sent"];

function renew(old, fresh, added) {
  for (const { name } of [...old.attributes]) {
    if (!BY_READER.includes(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (!BY_READER.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  let next = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const found = sameNode(next, node);
    if (!found) {
      old.insertBefore(node, next);
      added.push(node);
      continue;
    }
    while (next !== found) next = removed(next);
    next = found.nextSibling;
    if (node.nodeType === Node.ELEMENT_NODE) renew(found, node, added);
    else if (found.data !== node.data) renewText(found, node.data);
  }
  while (next) next = removed(next);
}

function removed(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

function sameNode(next, node) {
  let found = next;
  while (node.id && found && found.id !== node.id) found = found.nextSibling;
  return found && found.nodeName === node.nodeName && (found.id ?? "") === (node.id ?? "") ? found : null;
}

/** A log goes on behind what it has in common with the one that is there, which stays as it is. */
function renewText(old, now) {
  const log = old.parentElement.closest(".log");
  let from = 0;
  while (log && from < old.data.length && !now.startsWith(old.data.slice(from))) {
    from = old.data.indexOf("\n", from) + 1 || old.data.length;
  }
  if (!log || from === old.data.length) {
    old.data = now;
    return;
  }
  const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  old.appendData(now.slice(old.data.length - from));
  if (atEnd) log.scrollTop = log.scrollHeight;
}

if (window.htmx) {
  htmx.defineExtension("renew", {
    handleSwap(style, target, fragment) {
      if (style !== "renew") return false;
      const fresh = fragment.querySelector(`#${target.id}`);
      const added = [];
      if (fresh) renew(target, fresh, added);
      return added;
    },
  });
}

// On a narrow screen the places of a project scroll sideways: the present one is brought into view.
const here = document.querySelector(".site-nav [aria-current]");
if (here) {
  const row = here.closest(".site-nav");
  row.scrollLeft = here.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
}
