"use strict";

// What follows adds to a page that says everything without it.

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// Buttons that copy a text. Where the browser refuses, an element with the text is selected.
function copier(label, text, shown, attributes = {}) {
  const button = element("button", label, { type: "button", ...attributes });
  const said = element("span", "", { role: "status" });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown());
      said.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { said.textContent = ""; }, 3000);
  });
  return [button, said];
}

for (const code of document.querySelectorAll("code.command")) {
  const text = () => code.textContent;
  const name = text().length < 100 ? text() : "all";
  const parts = copier("Copy", text, () => code, { "aria-label": `Copy: ${name}` });
  (code.closest("pre") ?? code).after(...parts);
}

// Tables as LaTeX, with the rows, the order and the numbers that are shown.
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}" };

function latexCell(cell) {
  const text = cell.innerText.replace(/[↕↑↓]/g, "").replace(/\s+/g, " ").trim();
  if (/^-[\d.e+-]+$/.test(text)) return `$${text}$`;
  return text.replace(/[\\&%$#_{}~^]/g, (special) => LATEX[special] ?? `\\${special}`);
}

function latexOf(table) {
  const line = (row) => `${[...row.cells].map(latexCell).join(" & ")} \\\\`;
  const lines = (part) => [...(part?.rows ?? [])].filter((row) => !row.hidden).map(line);
  const columns = [...table.tHead.rows[0].cells].map((cell) => (cell.classList.contains("number") ? "r" : "l"));
  const foot = lines(table.tFoot);
  return [
    `% ${table.dataset.latex.replace(/\s+/g, " ")}`,
    "% needs \\usepackage{booktabs}",
    `\\begin{tabular}{${columns.join("")}}`,
    "\\toprule", ...lines(table.tHead), "\\midrule", ...lines(table.tBodies[0]),
    ...(foot.length ? ["\\midrule", ...foot] : []),
    "\\bottomrule", "\\end{tabular}", "",
  ].join("\n");
}

for (const table of document.querySelectorAll("table[data-latex]")) {
  const tools = element("p", "", { class: "table-tools" });
  const shown = () => {
    const text = element("pre", latexOf(table));
    tools.after(text);
    return text;
  };
  tools.append(...copier("Copy as LaTeX", () => latexOf(table), shown));
  table.closest(".scroll").after(tools);
}

// Tables that are wider than the page say so, as long as there is more to the right.
for (const scroll of document.querySelectorAll(".scroll")) {
  const hint = element("p", "Wider than the page: scroll the table sideways for more columns →", { class: "hint", "aria-hidden": "true" });
  hint.hidden = true;
  scroll.before(hint);
  const look = () => {
    hint.hidden = scroll.scrollWidth <= scroll.clientWidth + 1;
    scroll.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1);
  };
  new ResizeObserver(look).observe(scroll);
  scroll.addEventListener("scroll", look, { passive: true });
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
    const button = element("button", "", { type: "button" });
    button.append(...header.childNodes);
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
// A paper's title belongs to each of its rows; "figure 3" is one word, and 3 is not found in 31.
const TITLES = Object.fromEntries([...document.querySelectorAll(".elsewhere [data-title]")]
  .map((link) => [link.hash.slice(1), link.dataset.title]));

function wordsOf(text) {
  const words = text.toLowerCase().match(/(?:figure|table|section|eq\.) \S+|\S+/g) ?? [];
  return words.map((word) => {
    const literal = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(" ", "\\s+");
    return new RegExp((/^\d/.test(word) ? "(?<![\\d.])" : "") + literal + (/\d$/.test(word) ? "(?![\\d.]*\\d)" : ""));
  });
}

function holds(text, words) {
  const low = text.toLowerCase();
  return words.every((word) => word.test(low));
}

function fits(row, paper, verdict, words) {
  if (paper && row.dataset.paper !== paper) return false;
  if (verdict && !row.dataset.verdict.split("|").includes(verdict)) return false;
  const texts = [...row.cells].map((cell) => cell.textContent);
  return holds([...texts, row.dataset.words, TITLES[row.dataset.paper]].join(" "), words);
}

function showElsewhere(form, words) {
  const elsewhere = form.querySelector(".elsewhere");
  if (!elsewhere) return;
  const links = [...elsewhere.querySelectorAll("a")];
  for (const link of links) link.hidden = !words.length || !holds(link.dataset.words, words);
  elsewhere.hidden = links.every((link) => link.hidden);
}

function filterTables(form) {
  const { paper, verdict, words } = form.elements;
  const wanted = wordsOf(words.value);
  showElsewhere(form, wanted);
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

// Costs and the commit, from costs.js beside this page.
for (const place of document.querySelectorAll("[data-commit]")) {
  const commit = window.privclustCommit;
  place.replaceChildren(commit ? element("code", commit) : "no commit is known");
}

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
