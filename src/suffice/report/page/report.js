"use strict";

const at = (id) => document.getElementById(id);
const REPORT = JSON.parse(at("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const redraws = []; // what shows the chosen pool, and is drawn again when another is chosen
let pool = "";

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text != null) made.textContent = text;
  return made;
}

const number = (value, places) => (value == null ? "–" : value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }));
// A cell is a text, a number, or a number to sort by with its text.
const shown = (cell, column) => (Array.isArray(cell) ? cell[1] : column.places == null ? cell ?? "–" : number(cell, column.places));
const worth = (cell) => (Array.isArray(cell) ? cell[0] : cell);

// The part that shows the chosen pool: its own, that of all, or where there is none, all of them.
const chosen = (panels) => panels.filter((one) => one.name === pool).concat(panels.filter((one) => one.name === ""))[0];

function compare(a, b) {
  if (a == null || b == null) return (a == null) - (b == null); // what is not known comes last
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

function drawRow(row, columns) {
  const line = element("tr");
  line.append(...row.map((cell, place) => {
    const text = shown(cell, columns[place]), made = element("td", "", columns[place].text ? "text" : "");
    made.append(columns[place].text ? element("span", text) : text);
    return made;
  }));
  return line;
}

function drawTable(section, body) {
  const scroll = element("div", "", "scroll");
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", section.title);
  const table = element("table"), head = element("tr"), rows = element("tbody");
  let by = null, down = false;
  const fill = () => {
    const sorted = [...(chosen(section.panels) ?? section.panels[0]).rows];
    if (by != null) {
      sorted.sort((a, b) => {
        const [first, second] = [worth(a[by]), worth(b[by])];
        return first == null || second == null || !down ? compare(first, second) : compare(second, first);
      });
    }
    rows.replaceChildren(...sorted.map((row) => drawRow(row, section.columns)));
  };
  head.append(...section.columns.map((column, place) => {
    const cell = element("th", "", column.text ? "text" : ""), button = element("button", column.label);
    cell.scope = "col";
    button.type = "button";
    button.addEventListener("click", () => {
      down = by === place ? !down : false;
      by = place;
      for (const other of head.children) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      fill();
    });
    cell.append(button);
    return cell;
  }));
  table.append(element("thead"), rows);
  table.tHead.append(head);
  scroll.append(table);
  body.append(scroll);
  redraws.push(fill);
}

const PATHS = {
  o: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", s: "M-4,-4h8v8h-8z", "^": "M0,-5L5,4H-5z", v: "M0,5L5,-4H-5z",
  D: "M0,-5.5L5.5,0L0,5.5L-5.5,0z", "*": "M0,-7L1.8,-2.2L7,-2.2L2.8,1L4.3,6L0,3L-4.3,6L-2.8,1L-7,-2.2L-1.8,-2.2z",
  P: "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z", X: "M-5,-3L-3,-5L0,-2L3,-5L5,-3L2,0L5,3L3,5L0,2L-3,5L-5,3L-2,0z",
  "<": "M-5,0L4,-5V5z", ">": "M5,0L-4,-5V5z",
};
const marker = (series, attributes = {}) => shape("path", { d: PATHS[series.marker], fill: series.colour, ...attributes });

// The ends of an axis: those of the values, with a span that makes no cliff of little, and a little air.
function ends(axis, values) {
  const span = axis.span ?? 0;
  let low = axis.zero ? 0 : Math.min(...values), high = Math.max(...values);
  high = Math.min(Math.max(high, (low + high + span) / 2), axis.most ?? Infinity);
  low = Math.max(Math.min(low, high - span), axis.least ?? -Infinity);
  const air = (high - low || 1) * 0.05;
  return [axis.zero ? low : low - air, high + air];
}

// From values to places, with the values that are told at the axis.
function scale(axis, values, from, to) {
  if (axis.log && Math.min(...values) > 0) {
    const low = Math.min(...values) / 1.15, high = Math.max(...values) * 1.15;
    const place = (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
    const all = [-2, -1, 0, 1, 2, 3, 4, 5, 6, 7].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));
    return { place, ticks: all.filter((tick) => tick >= low && tick <= high) };
  }
  const [low, high] = ends(axis, values);
  const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough);
  const ticks = [];
  for (let count = Math.ceil(low / step); count * step <= Math.min(high, axis.most ?? Infinity); count++) ticks.push(count * step + 0); // + 0: there is no -0
  return { place: (value) => from + ((to - from) * (value - low)) / (high - low), ticks };
}

function picker(label, axes, change) {
  const said = element("label", `${label} `), select = element("select");
  select.append(...axes.map((axis, place) => { const one = element("option", axis.label); one.value = place; return one; }));
  select.addEventListener("change", () => change(axes[Number(select.value)]));
  said.append(select);
  return said;
}

// All series of the chosen pool; where a plot has nothing for all pools together, those of each.
function seriesOf(section) {
  const panel = chosen(section.panels);
  if (panel) return panel.series;
  const joined = new Map();
  for (const one of section.panels.flatMap((each) => each.series)) {
    const known = joined.get(one.name);
    joined.set(one.name, known ? { ...known, points: known.points.concat(one.points) } : one);
  }
  return [...joined.values()];
}

function drawPlot(section, body) {
  let x = section.x[0], y = section.y[0], near = -1, places = [];
  const hidden = new Set();
  const controls = element("div", "", "row"), legend = element("div", "", "row legend"), plot = element("div", "", "plot");
  const tip = element("div", "", "tip");
  tip.hidden = true;
  tip.setAttribute("role", "status");
  if (section.y.length > 1) controls.append(picker("Show", section.y, (axis) => { y = axis; draw(); }));
  if (section.x.length > 1) controls.append(picker("against", section.x, (axis) => { x = axis; draw(); }));
  let svg = null;

  function point(place) {
    near = place;
    svg.querySelector(".near")?.remove();
    tip.hidden = place < 0;
    if (place < 0) return;
    const { series, values, left, top } = places[place];
    svg.append(marker(series, { class: "near", transform: `translate(${left},${top}) scale(1.4)` }));
    tip.replaceChildren(element("b", values[0] ? `${series.name}: ${values[0]}` : series.name));
    for (const column of section.details) {
      if (values[column.column] != null) tip.append(element("div", `${column.label} ${number(values[column.column], column.places)}`));
    }
    const most = plot.clientWidth - tip.offsetWidth;
    tip.style.left = `${Math.max(0, Math.min(most, left + 12))}px`;
    tip.style.top = `${top > tip.offsetHeight + 12 ? top - tip.offsetHeight - 10 : top + 14}px`;
  }

  function draw() {
    const all = seriesOf(section);
    const shown = all.filter((one) => !hidden.has(one.name));
    legend.replaceChildren(...all.map((series) => {
      const button = element("button"), icon = shape("svg", { width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" });
      if (series.line) icon.append(shape("path", { d: "M-8,0H8", stroke: series.colour }));
      icon.append(marker(series));
      button.type = "button";
      button.setAttribute("aria-pressed", String(!hidden.has(series.name)));
      button.append(icon, series.name);
      button.addEventListener("click", () => {
        if (!hidden.delete(series.name)) hidden.add(series.name);
        draw();
        legend.children[all.indexOf(series)].focus();
      });
      return button;
    }));
    const width = Math.max(280, plot.clientWidth || 280), height = Math.max(260, Math.min(400, width * 0.55));
    svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img",
      "aria-label": `${section.title}: ${y.label} against ${x.label}. Arrow keys go from point to point.` });
    const known = shown.map((series) => ({ series, points: series.points.filter((one) => one[x.column] != null && one[y.column] != null) }));
    const flat = known.flatMap((one) => one.points);
    plot.replaceChildren(svg, tip);
    tip.hidden = true;
    near = -1;
    places = [];
    if (!flat.length) {
      svg.append(shape("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "nothing to show"));
      return;
    }
    const text = (tick) => tick.toLocaleString("en", { maximumSignificantDigits: 6 });
    const [right, top, bottom] = [width - 12, 10, height - 42];
    const up = scale(y, flat.map((one) => one[y.column]), bottom, top);
    const left = 31 + 7 * Math.max(...up.ticks.map((tick) => text(tick).length)); // the axis' name, and its longest tick
    const across = scale(x, flat.map((one) => one[x.column]), left, right);
    let last = -99;
    for (const tick of across.ticks) {
      const place = across.place(tick);
      svg.append(shape("line", { class: "grid", x1: place, x2: place, y1: top, y2: bottom }));
      if (place - last < 9 + 7 * text(tick).length) continue; // there is no room for it
      last = place;
      svg.append(shape("text", { x: place, y: bottom + 17, "text-anchor": "middle" }, text(tick)));
    }
    for (const tick of up.ticks) {
      const place = up.place(tick);
      svg.append(shape("line", { class: "grid", x1: left, x2: right, y1: place, y2: place }));
      svg.append(shape("text", { x: left - 9, y: place + 4, "text-anchor": "end" }, text(tick)));
    }
    svg.append(shape("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.label));
    svg.append(shape("text", { transform: `translate(12,${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
    if (section.diagonal) {
      svg.append(shape("line", { class: "diagonal", x1: across.place(0), y1: up.place(0), x2: across.place(100), y2: up.place(100) }));
    }
    for (const { series, points } of known) {
      const drawn = points.map((values) => ({ series, values, left: across.place(values[x.column]), top: up.place(values[y.column]) }));
      if (series.line && drawn.length > 1) {
        svg.append(shape("path", { d: `M${drawn.map((one) => `${one.left},${one.top}`).join("L")}`, fill: "none", stroke: series.colour, "stroke-width": 1.6 }));
      }
      const small = drawn.length > 60;
      for (const one of drawn) {
        const size = section.sizes ? 0.4 + Math.sqrt(one.values[section.sizes] / 40) : small ? 0.7 : 1.15;
        svg.append(marker(series, { transform: `translate(${one.left},${one.top}) scale(${size})`, "fill-opacity": small ? 0.55 : 1 }));
      }
      places.push(...drawn);
    }
    places.sort((a, b) => a.left - b.left);
    const seek = (event) => {
      const box = svg.getBoundingClientRect(), [h, v] = [event.clientX - box.left, event.clientY - box.top];
      let best = -1, least = 30;
      places.forEach((one, place) => {
        const far = Math.hypot((one.left * box.width) / width - h, (one.top * box.height) / height - v);
        if (far < least) [best, least] = [place, far];
      });
      if (best !== near) point(best);
    };
    svg.addEventListener("pointermove", seek);
    svg.addEventListener("pointerdown", seek); // a finger that taps does not move
    svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") point(-1); });
    svg.addEventListener("blur", () => point(-1));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      point((near + step + places.length) % places.length);
    });
  }

  body.append(controls, plot, legend);
  redraws.push(draw);
  let width = 0;
  new ResizeObserver(() => {
    if (plot.clientWidth !== width) { width = plot.clientWidth; draw(); }
  }).observe(plot);
}

const MANY = 20;

function drawQuestions(section, body) {
  const search = element("input"), label = element("label", "Search "), list = element("div"), more = element("button", "Show more");
  const order = element("select"), sorted = element("label", "Order ");
  let most = MANY;
  search.type = "search";
  search.placeholder = "a question, its name or an answer";
  label.append(search);
  order.append(...["as in the file", ...section.orders.map((one) => one.label)].map((text, place) => {
    const one = element("option", text);
    one.value = place - 1;
    return one;
  }));
  sorted.append(order);
  const controls = element("div", "", "row"), count = element("span", "", "hint");
  controls.append(label, sorted, count);
  const words = (one) => `${one.id} ${one.question ?? ""} ${one.votes.map(([answer]) => answer).join(" ")}`.toLowerCase();
  function fill() {
    const wanted = search.value.trim().toLowerCase();
    let found = section.questions.filter((one) => (!pool || one.pool === pool) && (!wanted || words(one).includes(wanted)));
    const by = section.orders[Number(order.value)];
    if (by) found = [...found].sort((a, b) => compare(b.order[by.place], a.order[by.place]));
    count.textContent = `${found.length} of ${section.questions.length}`;
    list.replaceChildren(...found.slice(0, most).map((one) => question(one, section)));
    more.hidden = found.length <= most;
  }
  search.addEventListener("input", () => { most = MANY; fill(); });
  order.addEventListener("change", fill);
  more.type = "button";
  more.addEventListener("click", () => { most += 5 * MANY; fill(); });
  body.append(controls, list, more);
  redraws.push(fill);
}

function question(one, section) {
  const made = element("details", "", "question"), head = element("summary"), name = element("span", "", "name");
  name.textContent = `${one.id}${one.question ? `: ${one.question}` : ""}`;
  head.append(name, element("span", one.summary, "brief"));
  made.append(head);
  made.addEventListener("toggle", () => {
    if (!made.open || made.children.length > 1) return;
    if (one.question) made.append(element("p", one.question, "asked"));
    const total = one.votes.reduce((sum, [, count]) => sum + count, 0) + one.none + one.others;
    for (const [answer, count] of one.votes) made.append(bar(answer, count, total, answer === one.gold));
    if (one.others) made.append(bar("other answers", one.others, total, false));
    if (one.none) made.append(bar("no answer", one.none, total, false));
    if (one.gold != null) made.append(element("p", `The right answer is ${one.gold}.`, "hint"));
    if (one.rows.length) drawFigures(one.rows, section.columns, made);
  }, { once: false });
  return made;
}

function drawFigures(rows, columns, made) {
  const table = element("table"), head = element("tr"), scroll = element("div", "", "scroll");
  head.append(...columns.map((column) => element("th", column.label, column.text ? "text" : "")));
  table.append(head, ...rows.map((row) => drawRow(row, columns)));
  scroll.append(table);
  made.append(scroll);
}

function bar(name, count, most, gold) {
  const row = element("div", "", gold ? "bar gold" : "bar"), progress = element("progress"), label = element("span", name, "name");
  progress.max = most;
  progress.value = count;
  progress.setAttribute("aria-label", `${name}: ${count} votes`);
  row.append(label, progress, element("span", String(count)));
  return row;
}

function drawFacts(section, body) {
  const list = element("dl");
  list.append(...section.facts.map(([name, value]) => {
    const card = element("div");
    card.append(element("dt", name), element("dd", value));
    return card;
  }));
  body.append(list);
}

const DRAW = { table: drawTable, plot: drawPlot, questions: drawQuestions, facts: drawFacts };

for (const section of REPORT.sections) {
  const made = element("section");
  made.append(element("h2", section.title));
  if (section.note) made.append(element("p", section.note, "note"));
  at("sections").append(made);
  DRAW[section.kind](section, made);
}
if (REPORT.pools.length > 1) {
  at("pool").append(...["", ...REPORT.pools].map((name) => { const one = element("option", name || `all ${REPORT.pools.length} together`); one.value = name; return one; }));
  at("pool").addEventListener("change", () => { pool = at("pool").value; redraws.forEach((redraw) => redraw()); });
  at("choice").hidden = false;
}
redraws.forEach((redraw) => redraw());

at("copy").addEventListener("click", async () => {
  const range = document.createRange();
  range.selectNodeContents(at("command"));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  try {
    await navigator.clipboard.writeText(at("command").textContent);
  } catch {
    document.execCommand("copy"); // where a page from disk may not write to the clipboard
  }
  at("copy").textContent = "Copied";
});
