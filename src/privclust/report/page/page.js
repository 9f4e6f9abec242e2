"use strict";

// What follows adds to a page that says everything without it.

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Commands: a button that copies. Where the browser refuses, the text is selected.
for (const code of document.querySelectorAll("code.command")) {
  const button = element("button", "Copy", { type: "button", "aria-label": `Copy: ${code.textContent}` });
  const said = element("span", "", { role: "status" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      said.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { said.textContent = ""; }, 3000);
  });
  code.parentElement.append(button, said);
}

// Tables: a click on a header sorts, another one the other way round. Empty cells stay last.
function sortKey(row, column) {
  const cell = row.cells[column];
  return cell.dataset.sort ?? cell.textContent.trim();
}

function sortTable(table, column, direction) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [sortKey(row, column), row]);
  const filled = keyed.filter(([key]) => key !== "");
  const numeric = filled.every(([key]) => !Number.isNaN(Number(key)));
  const compare = numeric
    ? (a, b) => Number(a) - Number(b)
    : (a, b) => a.localeCompare(b, "en", { numeric: true });
  filled.sort(([a], [b]) => direction * compare(a, b));
  const empty = keyed.filter(([key]) => key === "");
  body.append(...[...filled, ...empty].map(([, row]) => row));
}

for (const table of document.querySelectorAll("table[data-sortable]")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = element("button", header.textContent, { type: "button" });
    header.replaceChildren(button);
    header.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const isUp = header.getAttribute("aria-sort") === "ascending";
      for (const other of headers) other.setAttribute("aria-sort", "none");
      header.setAttribute("aria-sort", isUp ? "descending" : "ascending");
      sortTable(table, column, isUp ? -1 : 1);
    });
  });
}

// Filters: rows that do not fit are hidden, and how many are left is said.
function fits(row, paper, verdict, words) {
  if (paper && row.dataset.paper !== paper) return false;
  if (verdict && !row.dataset.verdict.split("|").includes(verdict)) return false;
  const text = row.textContent.toLowerCase();
  return words.every((word) => text.includes(word));
}

function filterTables(form) {
  const { paper, verdict, words } = form.elements;
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const counts = form.dataset.filters.split(" ").map((id) => {
    const table = document.getElementById(id);
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) row.hidden = !fits(row, paper.value, verdict.value, wanted);
    const shown = rows.filter((row) => !row.hidden).length;
    return `${shown} of ${rows.length} ${table.dataset.noun}`;
  });
  form.querySelector("[role=status]").textContent = `${counts.join(", ")} shown`;
}

for (const form of document.querySelectorAll("form.filters")) {
  form.hidden = false;
  form.addEventListener("input", () => filterTables(form));
  form.addEventListener("submit", (event) => event.preventDefault());
  const showAll = () => {
    form.reset();
    filterTables(form);
  };
  form.querySelector("button").addEventListener("click", showAll);
  showAll();
}

// Costs, from costs.js beside this page.
function seconds(value) {
  const digits = value < 100 ? 1 : 0;
  const said = `${value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
  return value < 3600 ? said : `${said} (${(value / 3600).toFixed(1)} h)`;
}

function costCaption(experiment) {
  const caption = element("caption", "");
  caption.append(element("span", `CPU seconds of the fits of ${experiment}`));
  return caption;
}

function costTable(experiment, pairs) {
  const table = element("table", "");
  table.append(costCaption(experiment));
  const head = table.createTHead().insertRow();
  head.append(element("th", "method", { scope: "col" }), element("th", "CPU seconds", { scope: "col", class: "number" }));
  const body = table.createTBody();
  for (const [label, value] of pairs) {
    const row = body.insertRow();
    row.append(element("th", label, { scope: "row" }), element("td", value.toFixed(2), { class: "number" }));
  }
  const scroll = element("div", "", { class: "scroll", tabindex: "0", role: "group", "aria-label": `Cost of ${experiment}` });
  scroll.append(table);
  return scroll;
}

for (const details of document.querySelectorAll("[data-costs]")) {
  const known = window.privclustCosts ?? {};
  const found = details.dataset.costs.split(" ").filter((name) => name in known);
  if (!found.length) continue;
  const total = found.flatMap((name) => known[name]).reduce((sum, [, value]) => sum + value, 0);
  details.querySelector("summary").textContent = `Cost: ${seconds(total)} of CPU time in fits`;
  details.append(...found.map((name) => costTable(name, known[name])));
}

// Figures: a click or Enter opens one large. Wheel, buttons and keys zoom; drag and arrow keys move.
const dialog = document.getElementById("zoom");
const stage = dialog.querySelector(".stage");
const large = stage.querySelector("img");
const STEP = 1.25;
const LARGEST = 12;
const view = { zoom: 1, fit: 0 };

function setZoom(zoom, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const before = view.zoom;
  view.zoom = Math.min(LARGEST, Math.max(1, zoom));
  large.style.width = `${view.fit * view.zoom}px`;
  // what was under the pointer stays there
  const ratio = view.zoom / before;
  stage.scrollLeft = (stage.scrollLeft + x) * ratio - x;
  stage.scrollTop = (stage.scrollTop + y) * ratio - y;
  dialog.querySelector("output").textContent = `${Math.round(100 * view.zoom)} %`;
}

function fitStage() {
  const ratio = large.getAttribute("width") / large.getAttribute("height");
  view.fit = Math.min(stage.clientWidth, stage.clientHeight * ratio);
  setZoom(1);
}

const ACTIONS = {
  in: () => setZoom(view.zoom * STEP),
  out: () => setZoom(view.zoom / STEP),
  fit: fitStage,
  close: () => dialog.close(),
};
const KEYS = { "+": "in", "=": "in", "-": "out", "0": "fit" };

for (const link of document.querySelectorAll("a.zoom")) {
  link.setAttribute("aria-haspopup", "dialog");
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const small = link.querySelector("img");
    document.getElementById("zoom-title").textContent = link.dataset.title;
    for (const name of ["width", "height", "alt", "src"]) large.setAttribute(name, small.getAttribute(name));
    dialog.showModal();
    fitStage();
    dialog.addEventListener("close", () => link.focus({ preventScroll: true }), { once: true });
  });
}

for (const button of dialog.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", ACTIONS[button.dataset.zoom]);
}
dialog.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || !(event.key in KEYS)) return;
  event.preventDefault();
  ACTIONS[KEYS[event.key]]();
});
stage.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = stage.getBoundingClientRect();
  setZoom(view.zoom * STEP ** -Math.sign(event.deltaY), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });
stage.addEventListener("pointermove", (event) => {
  if (event.pointerType !== "mouse" || event.buttons !== 1) return;
  stage.scrollBy(-event.movementX, -event.movementY);
});
window.addEventListener("resize", () => { if (dialog.open) fitStage(); });
