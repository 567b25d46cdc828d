// The page works without this script; with it, it updates by itself, asks
// before dangerous clicks and says how a click went.
"use strict";

const byId = (id) => document.getElementById(id);
const query = new URLSearchParams({ channel: document.body.dataset.channel, as: document.body.dataset.as });
const toastBox = byId("toast");
const shown = new Map(); // part or message key → the HTML the server sent for it

// ---- live updates ----

let loading = false;
let again = false;

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    const response = await fetch(`/sim/view?${query}`);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const parts = await response.json();
    for (const name of ["channels", "deliveries"]) swap(name, parts[name]);
    patchMessages(parts.messages);
    if (swap("modal", parts.modal)) showModal();
  } catch {
    byId("live").hidden = false; // the event stream reconnects and refreshes
  } finally {
    loading = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

// swap replaces a part only when the server sends something else than before,
// so that what a person is typing survives.
function swap(name, html) {
  if (shown.get(name) === html) return false;
  shown.set(name, html);
  byId(name).innerHTML = html;
  if (!toastBox.isConnected) document.body.append(toastBox); // it sat in a modal now gone
  return true;
}

// patchMessages keeps messages that did not change, with their open menus.
function patchMessages(html) {
  if (shown.get("messages") === html) return;
  shown.set("messages", html);
  const box = byId("messages");
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 80;
  const focused = document.activeElement?.id;
  const template = document.createElement("template");
  template.innerHTML = html;
  const old = new Map([...box.children].map((node) => [node.dataset.key, node]));
  let cursor = box.firstElementChild;
  for (const fresh of [...template.content.children]) {
    const key = fresh.dataset.key;
    const kept = old.get(key);
    const same = kept && shown.get(`key:${key}`) === fresh.outerHTML;
    shown.set(`key:${key}`, fresh.outerHTML);
    old.delete(key);
    if (same) {
      if (kept === cursor) cursor = cursor.nextElementSibling;
      else box.insertBefore(kept, cursor);
      continue;
    }
    if (!kept) fresh.classList.add("new");
    if (kept) {
      if (kept === cursor) cursor = cursor.nextElementSibling;
      kept.replaceWith(fresh);
    } else {
      box.insertBefore(fresh, cursor);
    }
  }
  for (const [key, gone] of old) {
    gone.remove();
    shown.delete(`key:${key}`);
  }
  if (focused && document.activeElement === document.body) {
    // The focused button may be gone; its message is the nearest place.
    (byId(focused) ?? byId(focused.match(/^m\d+-\d+/)?.[0] ?? "messages"))?.focus({ preventScroll: true });
  }
  if (atEnd) box.scrollTop = box.scrollHeight;
}

function remember() {
  for (const node of byId("messages").children) shown.set(`key:${node.dataset.key}`, node.outerHTML);
}

function listen() {
  const stream = new EventSource("/sim/events");
  stream.onmessage = () => {
    byId("live").hidden = true;
    refresh();
  };
  stream.onerror = () => {
    byId("live").hidden = false;
  };
}

// ---- modals ----

function showModal() {
  const view = document.querySelector("dialog.view");
  if (!view) return;
  view.close();
  view.showModal();
  view.querySelector(".view-body input:not([type=hidden]), .view-body select, .view-body textarea")?.focus();
  view.addEventListener("cancel", (event) => {
    event.preventDefault();
    byId("view-close").click();
  });
}

function ask(data) {
  const dialog = byId("confirm");
  byId("confirm-title").textContent = data.confirmTitle;
  byId("confirm-text").textContent = data.confirmText;
  byId("confirm-no").textContent = data.confirmNo;
  byId("confirm-yes").textContent = data.confirmYes;
  byId("confirm-yes").className = `btn ${data.confirmStyle === "danger" ? "danger" : "primary"}`;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// ---- acting ----

let toastTimer;

function toast(message, bad) {
  // A modal dialog covers everything outside it, the toast included.
  (document.querySelector("dialog:modal") ?? document.body).append(toastBox);
  toastBox.textContent = message;
  toastBox.classList.toggle("bad", bad);
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toastBox.textContent = ""), bad ? 8000 : 3000);
}

async function act(form, submitter) {
  // form.action would be the hidden field of that name.
  const body = new URLSearchParams(new FormData(form, submitter));
  if (form.dataset.confirmTitle && !(await ask(form.dataset))) return;
  if (form.dataset.url) window.open(form.dataset.url, "_blank", "noopener");
  submitter?.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { Accept: "application/json" } });
    const result = response.ok ? await response.json() : { ok: false, message: await response.text() };
    if (result.message) toast(result.message, !result.ok);
    if (result.ok && "reset" in form.dataset) form.reset();
    form.closest("details.overflow")?.removeAttribute("open");
  } catch {
    toast("The stand-in does not answer. Is it still running?", true);
  } finally {
    submitter?.removeAttribute("aria-busy");
  }
  refresh();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!("act" in form.dataset)) return;
  event.preventDefault();
  if (event.submitter?.getAttribute("aria-busy") === "true") return;
  act(form, event.submitter);
});

document.addEventListener("change", (event) => {
  if ("navigate" in event.target.dataset) event.target.form.submit();
  const choice = event.target.closest("[data-choose]");
  if (choice && event.target.value !== "") act(event.target.form, null);
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) byId("view-close").click();
  for (const menu of document.querySelectorAll("details.overflow[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  const menu = event.target.closest?.("details.overflow[open]");
  if (event.key === "Escape" && menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

remember();
showModal();
byId("messages").scrollTop = byId("messages").scrollHeight;
listen();
