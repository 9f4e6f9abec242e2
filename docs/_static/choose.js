/* The chooser: the nearest groups of methods that were measured side by side, and the best of each.
   What it knows stands in the page, in #chooser-data; nothing is asked of a network. */
"use strict";

(() => {
  const form = document.getElementById("chooser");
  const answer = document.getElementById("chooser-answer");
  const { tasks, counted } = JSON.parse(document.getElementById("chooser-data").textContent);
  const CLOSE = 3; // times; a setting that is farther away is flagged
  const REACH = 10; // times; beyond it no result reaches
  const NAMES = { n: "rows, n", d: "features, d", k: "clusters, k", epsilon: "epsilon" };
  const PROMISES = {
    approximate: "(epsilon, delta)",
    pure: "epsilon",
    asymptotic: "epsilon, only in the limit of many sweeps",
    none: "none",
  };

  /** Make an element with attributes, and with nodes or texts inside. */
  function make(tag, attributes, ...inside) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...inside);
    return node;
  }

  const digits = (value, count) => String(Number(value.toPrecision(count)));
  const title = ({ name, label }) => (name === label ? name : `${name} (${label})`);
  const shown = (value) => (value < 1 ? digits(value, 3) : value.toLocaleString("en"));
  const link = (page, text) => (page ? make("a", { href: page }, text) : text);
  const factor = (yours, measured) => Math.max(yours / measured, measured / yours);
  const isAsked = (method, wanted) => counted[wanted.promise].includes(method.promise);

  /** How far a group is from what is wanted: the length of the vector of log10 of the factors. */
  function distance(group, wanted, names) {
    return Math.hypot(...names.map((name) => Math.log10(wanted[name] / group[name])));
  }

  /** The methods of a group, the best first; those without the promise that is asked for last. */
  function ranked(group, wanted, sign) {
    const last = (method) => (isAsked(method, wanted) ? 0 : 1);
    return [...group.methods].sort((a, b) => last(a) - last(b) || sign * (a.value - b.value));
  }

  /** Settings that were asked for, and those that were measured. */
  function comparison(group, wanted, names) {
    const rows = names.map((name) => {
      const times = factor(wanted[name], group[name]);
      const apart = `${digits(times, 3)} times`;
      const far = times > CLOSE ? `${apart}, extrapolated` : apart;
      return make(
        "tr",
        {},
        make("th", { scope: "row" }, NAMES[name]),
        ...[shown(wanted[name]), shown(group[name]), times > 1.0001 ? far : "measured"].map((text) =>
          make("td", {}, text),
        ),
      );
    });
    const heads = ["", "yours", "nearest measured", "apart"];
    return table("Your settings and the nearest that were measured", heads, rows);
  }

  function table(caption, heads, rows) {
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
    return make(
      "table",
      { class: "docutils" },
      make("caption", {}, caption),
      make("thead", {}, head),
      make("tbody", {}, ...rows),
    );
  }

  /** What was measured in one group. */
  function measured(group, wanted, sign) {
    const rows = ranked(group, wanted, sign).map((method) => {
      const delta = method.promise === "approximate" ? `, delta = ${method.delta}` : "";
      const neighbours =
        method.promise === "none" ? "" : `; rows ${
          method.neighbours === "add_remove" ? "added or removed" : "replaced"}`;
      const counts = isAsked(method, wanted) ? "" : " (not what you asked for)";
      return make(
        "tr",
        { "data-label": method.label, "data-value": method.value },
        make("td", {}, link(method.page, title(method))),
        make("td", {}, digits(method.value, 6)),
        make("td", {}, PROMISES[method.promise] + delta + neighbours + counts),
      );
    });
    const found = table(`${group.data}: ${group.measure}`, ["method", "value", "privacy"], rows);
    found.classList.add("measured");
    const nothing = group.nothing ? `; ${group.nothing.name}: ${digits(group.nothing.value, 6)}` : "";
    const note = make("p", {}, `${group.trials} trials${nothing}. `, link(group.page, "Result"), ".");
    return [found, note];
  }

  /** The name that wins in most groups, the first of equals. */
  function winner(groups, wanted, sign) {
    const wins = new Map();
    for (const group of groups) {
      const [{ name, page }] = ranked(group, wanted, sign);
      const before = wins.get(name) ?? { page, count: 0 };
      wins.set(name, { ...before, count: before.count + 1 });
    }
    const [[name, { page }]] = [...wins].sort(([, a], [, b]) => b.count - a.count);
    return { name, page };
  }

  /** Whether the best of every group is no better than what takes no data at all. */
  function isUseless(groups, wanted, sign) {
    return groups.every(({ nothing, ...group }) => {
      const [first] = ranked(group, wanted, sign);
      return nothing && sign * (first.value - nothing.value) >= 0;
    });
  }

  /** The command that predicts, for tasks that have one, what was not measured. */
  function prediction(wanted) {
    const delta = wanted.promise === "approximate" ? " --delta 1e-6" : "";
    const sizes = `--n ${wanted.n} --features ${wanted.d} --clusters ${wanted.k}`;
    const command = `privclust plan ${sizes} --epsilon ${wanted.epsilon}${delta}`;
    return make("p", {}, "Predict it, from simulated fits: ", make("code", {}, command));
  }

  function show(...inside) {
    answer.replaceChildren(...inside);
  }

  function update() {
    const given = Object.fromEntries(new FormData(form));
    const isPrivate = given.promise !== "none";
    form.elements.epsilon.disabled = !isPrivate;
    const names = isPrivate ? ["n", "d", "k", "epsilon"] : ["n", "d", "k"];
    const wanted = { promise: given.promise };
    for (const name of names) wanted[name] = Number(form.elements[name].value);
    const wrong = names.filter((name) => !(wanted[name] > 0 && Number.isFinite(wanted[name])));
    delete answer.dataset.take;
    if (wrong.length) {
      show(make("p", {}, `Give a number above 0 for ${wrong.map((n) => NAMES[n]).join("; ")}.`));
      return;
    }
    const broken = ["n", "d", "k"].filter((name) => !Number.isInteger(wanted[name]));
    if (broken.length) {
      show(make("p", {}, `Give a whole number for ${broken.map((n) => NAMES[n]).join("; ")}.`));
      return;
    }
    if (wanted.k >= wanted.n) {
      show(make("p", {}, "Give fewer clusters, k, than rows, n."));
      return;
    }
    const task = tasks[given.task];
    const sign = task.higher_is_better ? -1 : 1;
    const able = task.groups.filter((group) => group.methods.some((m) => isAsked(m, wanted)));
    if (!able.length) {
      show(make("p", {}, "No result: nothing with this privacy was measured for this task."));
      return;
    }
    const distances = able.map((group) => distance(group, wanted, names));
    const least = Math.min(...distances);
    const nearest = able.filter((_, i) => distances[i] <= least + 1e-9);
    const isPlanned = task.plan && isPrivate;
    const reach = isPlanned ? CLOSE : REACH;
    const beyond = (times) =>
      names.filter((name) => nearest.every((g) => factor(wanted[name], g[name]) > times));
    const far = beyond(reach);
    const stretched = beyond(CLOSE);
    const { name, page } = winner(nearest, wanted, sign);
    answer.dataset.take = far.length ? "" : name;
    const head = far.length
      ? [make("strong", {}, "No result reaches your settings"), ` (${far.join(", ")}). The nearest: `]
      : [make("strong", {}, "Take "), ""];
    const flag = far.length || !stretched.length ? "" : `, extrapolated (${stretched.join(", ")})`;
    const parts = [make("p", { class: "take" }, ...head, link(page, name), `${flag}.`)];
    if (far.length && isPlanned) parts.push(prediction(wanted));
    if (isUseless(nearest, wanted, sign)) {
      const text = `None is of use here: ${nearest[0].nothing.name} is as good as the best.`;
      parts.push(make("p", { class: "useless" }, text));
    }
    // settings that are equally far on either side stand in a table each
    const settings = new Map(nearest.map((g) => [names.map((n) => g[n]).join(), g]));
    for (const group of settings.values()) parts.push(comparison(group, wanted, names));
    for (const group of nearest) parts.push(...measured(group, wanted, sign));
    show(...parts);
  }

  form.hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update();
  });
  update();
})();
