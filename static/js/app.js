// Shared by all pages: translations, keyboard help, copying, menus, dialogs, refreshed parts, and messages about the
// connection. Pages work without it.
"use strict";

/** Translations of the page's language: {messages, plurals}; base.html writes them. */
const catalogue = JSON.parse(document.getElementById("catalogue")?.textContent ?? '{"messages":{},"plurals":[]}');

/** Returns the translation of a message. */
const gettext = (message) => catalogue.messages[message] ?? message;

/** Returns the translated form of a message for a count. */
function ngettext(singular, plural, count) {
  const forms = catalogue.messages[singular];
  if (!Array.isArray(forms)) return count === 1 ? singular : plural;
  // The table ends at 199 because plural rules of larger numbers depend on their last two digits.
  return forms[catalogue.plurals[count < 200 ? count : 100 + (count % 100)]] ?? plural;
}

/** Replaces %(name)s in a translated message by values[name]. */
const interpolate = (message, values) => message.replace(/%\((\w+)\)s/g, (mark, name) => String(values[name] ?? mark));

const typing = (target) =>
  target.closest("input:not([type=radio]):not([type=checkbox]):not([type=submit]), textarea:not([readonly]), select, [contenteditable=true]");

/** Calls `handler` for each key except those of an input method (IME), where Enter and Esc choose or cancel characters.
    All key handlers are registered here. Some browsers mark such keys only by the code 229. */
function onKeydown(handler) {
  document.addEventListener("keydown", (event) => {
    if (!event.isComposing && event.keyCode !== 229) handler(event);
  });
}
window.evalapp = { onKeydown, gettext, ngettext, interpolate };

const openMenus = () => [...document.querySelectorAll("details.menu[open]")];

onKeydown((event) => {
  if (event.key === "Escape") {
    for (const menu of openMenus()) {
      const within = menu.contains(document.activeElement);
      menu.open = false;
      // Without this, the focus of the hidden element would jump to the top of the page.
      if (within) menu.querySelector("summary").focus();
      event.preventDefault();
    }
    // Esc leaves a non-empty field; otherwise it follows the page's back link.
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

/** Copies the text of an element and returns whether that worked; otherwise selects it. The clipboard API exists only on
    pages from HTTPS or localhost. */
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
    const menu = opener.closest("details.menu");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus(); // where the focus returns to
    }
    if (dialog) { event.preventDefault(); dialog.showModal(); }
    return;
  }
  const copier = event.target.closest("[data-copy]");
  if (copier) {
    copy(document.getElementById(copier.dataset.copy)).then((done) => {
      if (!done) return;
      const before = copier.textContent;
      copier.textContent = gettext("Copied");
      setTimeout(() => { copier.textContent = before; }, 1500);
    });
    return;
  }
  if (event.target.matches("dialog")) event.target.close();
});
// Tab leaves a menu.
document.addEventListener("focusin", (event) => {
  for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
});

document.addEventListener("change", (event) => {
  if (event.target.closest("[data-autosubmit]")) event.target.form.requestSubmit();
  const display = event.target.closest("form[data-display]");
  if (!display) return;
  // Applied at once, and stored without leaving the page.
  document.documentElement.dataset[event.target.name] = event.target.value;
  const stored = fetch(display.action, { method: "POST", redirect: "manual", body: new URLSearchParams(new FormData(display)) });
  stored.then(() => event.target.name === "language" && location.reload()).catch(() =>
    say(gettext("The server cannot be reached. Choose again when the connection returns."), "warning"));
});

// Repeated clicks send a form only once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("dialog form[data-display]")) {
    event.preventDefault(); // every choice is stored already
    form.closest("dialog").close();
  }
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
window.evalapp.flash = say;
document.addEventListener("htmx:sendError", () => say(gettext("The server cannot be reached. The page continues when the connection returns."), "warning"));
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (status === 503) {
    // The error page names the service that is not running.
    const line = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html").querySelector("h1 + p");
    say(line ? line.textContent : gettext("A part of the installation is not running. Try again in a moment."), "warning");
    return;
  }
  say(status === 403 ? gettext("You are signed out, or your role does not allow this. Reload the page.") :
      interpolate(gettext("The request failed (status %(status)s). Reload the page and try again."), { status }), "error");
});
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.successful && !isSignIn(event.detail.xhr)) for (const old of document.querySelectorAll("#messages [data-from=network]")) old.remove();
});

// After signing out, possibly in another tab, the server answers requests for parts with the sign-in page.
const isSignIn = (xhr) => new URL(xhr.responseURL, location.href).pathname.endsWith("/account/sign-in/");
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!isSignIn(event.detail.xhr)) return;
  event.detail.shouldSwap = false;
  say(gettext("You are signed out. Reload the page to sign in again."), "warning");
});

// A field that the browser refuses is shown, also in a closed `<details>`.
document.addEventListener("invalid", (event) => event.target.closest("details:not([open])")?.setAttribute("open", ""), true);

// Refreshed parts keep the open or closed state of `<details id>`.
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

// `hx-swap="renew"` (inside hx-ext="renew") changes only the differences of a refreshed part, so that focus, selection,
// open elements and scroll positions stay. Elements are matched by id, or else by position.
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

/** Appends the new lines of a log without changing the lines already shown. */
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

/** Latin letters that do not consist of a letter and an accent; evalapp/accounts/forms.py has the same. */
const LATIN = { ß: "ss", æ: "ae", œ: "oe", ø: "o", ł: "l", đ: "d", ð: "d", þ: "th", ı: "i" };
// A short name follows the name until somebody types one.
for (const slug of document.querySelectorAll("[data-slug-of]")) {
  const name = document.getElementById(slug.dataset.slugOf);
  const derive = () => name.value.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase()
    .replace(/[ßæœøłđðþı]/g, (letter) => LATIN[letter])
    .replace(/[^a-z0-9_\s-]/g, "").trim().replace(/[\s-]+/g, "-").slice(0, 63).replace(/^[-_]+|[-_]+$/g, "");
  let follows = !slug.value;
  slug.addEventListener("input", () => { follows = !slug.value; });
  name.addEventListener("input", () => { if (follows) slug.value = derive(); });
}

// On narrow screens the project navigation scrolls sideways: show the current entry.
for (const here of document.querySelectorAll(".site-nav [aria-current]")) {
  const row = here.closest(".site-nav");
  row.scrollLeft = here.offsetLeft - (row.clientWidth - here.offsetWidth) / 2;
}
