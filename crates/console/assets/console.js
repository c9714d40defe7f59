// Keeps the page as things are: the server says that something changed, the page is read again and
// what differs is put in its place, so that focus, scrolling and unfolded parts stay.
"use strict";

const main = document.getElementById("main");
const link = document.getElementById("link");
const said = document.getElementById("said");

// The server's clock counts, not the reader's.
let ahead = Number(main.dataset.now) - Date.now();

function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

function tick() {
  const now = Date.now() + ahead;
  for (const time of main.querySelectorAll("time[data-since]")) {
    write(time, span(now - Number(time.dataset.since)));
  }
  for (const time of main.querySelectorAll("time[data-until]")) {
    write(time, span(Number(time.dataset.until) - now));
  }
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// What the reader set stays: unfolded parts, what is typed, the chosen size.
const KEPT = new Set(["open", "value", "checked"]);

function match(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) {
    old.replaceWith(now.cloneNode(true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!now.hasAttribute(name) && !KEPT.has(name)) old.removeAttribute(name);
  }
  for (const { name, value } of now.attributes) {
    if (old.getAttribute(name) !== value && !KEPT.has(name)) old.setAttribute(name, value);
  }
  const before = [...old.childNodes];
  const after = [...now.childNodes];
  after.forEach((child, at) => {
    if (at < before.length) match(before[at], child);
    else old.append(child.cloneNode(true));
  });
  before.slice(after.length).forEach((child) => child.remove());
}

let reading = false;
let again = false;

async function refresh() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.getElementById("main");
    if (now) {
      match(main, now);
      ahead = Number(now.dataset.now) - Date.now();
      tick();
    }
  } catch {
    write(link, "The controller does not answer.");
  }
  // A busy controller says a lot; twice a second is as much as a reader sees.
  setTimeout(() => {
    reading = false;
    if (again) {
      again = false;
      refresh();
    }
  }, 500);
}

// A page that takes long to make stays as it was made.
function follow() {
  if (!("still" in main.dataset)) refresh();
}

function listen() {
  const events = new EventSource("/events");
  events.addEventListener("open", () => {
    write(link, "Live");
    // What happened before, or while there was no connection, was not told.
    follow();
  });
  events.addEventListener("error", () => write(link, "Not connected; trying again."));
  events.addEventListener("change", (event) => {
    const text = JSON.parse(event.data).said;
    if (text) write(said, text);
    follow();
  });
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
}

// A drawing is moved by dragging, and sized with Ctrl and the wheel or + and -.
const SIZES = ["zoom-50", "zoom-75", "zoom-100", "zoom-150"];

function choose(id) {
  const input = document.getElementById(id);
  if (!input) return;
  input.checked = true;
  sessionStorage.setItem("zoom", id);
}

function step(by) {
  const at = SIZES.findIndex((id) => document.getElementById(id)?.checked);
  choose(SIZES[Math.min(SIZES.length - 1, Math.max(0, at + by))]);
}

function drawings() {
  choose(sessionStorage.getItem("zoom") ?? "zoom-100");
  main.addEventListener("change", (event) => {
    if (event.target.name === "zoom") sessionStorage.setItem("zoom", event.target.id);
  });
  main.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !event.target.closest(".drawing")) return;
    event.preventDefault();
    step(event.deltaY < 0 ? 1 : -1);
  }, { passive: false });
  main.addEventListener("keydown", (event) => {
    if (!event.target.classList.contains("drawing")) return;
    if (event.key === "+") step(1);
    if (event.key === "-") step(-1);
  });
  main.addEventListener("pointerdown", (event) => {
    const drawing = event.target.closest(".drawing");
    if (!drawing || event.button !== 0 || event.pointerType === "touch") return;
    if (event.target.closest("a")) return;
    const start = [event.clientX + drawing.scrollLeft, event.clientY + drawing.scrollTop];
    drawing.classList.add("grabbed");
    const move = (e) => {
      drawing.scrollLeft = start[0] - e.clientX;
      drawing.scrollTop = start[1] - e.clientY;
    };
    const end = () => {
      drawing.classList.remove("grabbed");
      removeEventListener("pointermove", move);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end, { once: true });
    addEventListener("pointercancel", end, { once: true });
  });
}

setInterval(tick, 1000);
drawings();
listen();
