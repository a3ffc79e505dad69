"use strict";

const at = (id) => document.getElementById(id);
const percent = (share) => (share == null ? "" : `${(100 * share).toFixed(1)} %`);
const BOXED = "\n\nPlease reason step by step, and put your final answer within \\boxed{}.";
let asking = null;

function headers() {
  const key = sessionStorage.getItem("suffice-key");
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

async function call(path, options = {}) {
  const reply = await fetch(path, { ...options, headers: headers() });
  at("unlock").hidden = reply.status !== 401;
  if (reply.status === 401) {
    at("key").focus();
    throw new Error("A key is needed.");
  }
  if (!reply.ok) throw new Error(await words(reply));
  return reply;
}

async function words(reply) {
  try {
    return (await reply.json()).error.message;
  } catch {
    return `The gateway answered with status ${reply.status}.`;
  }
}

function complain(message) {
  at("error").textContent = message;
  at("error").hidden = !message;
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function bar(name, count, most, told, lead) {
  const row = element("div", "", lead ? "bar lead" : "bar");
  const progress = element("progress", "");
  progress.max = most;
  progress.value = count;
  progress.setAttribute("aria-label", `${name}: ${count} votes`);
  const label = element("span", name, "name");
  label.title = name;
  row.append(label, progress, element("span", told, "told"));
  return row;
}

function showBars(votes, budget) {
  const most = Object.entries(votes).sort((a, b) => b[1] - a[1]).slice(0, 10);
  at("bars").replaceChildren(...most.map(([answer, count], place) => bar(answer, count, budget, count, !place)));
}

// An object's fields while they are voted on: each with what leads there.
function showFields(fields, budget) {
  at("bars").replaceChildren(...Object.entries(fields).map(([pointer, votes]) => {
    const [[value, count] = ["", 0], second] = Object.entries(votes).sort((a, b) => b[1] - a[1]);
    return field(pointer, value, bar(pointer || "/", count, budget, count, !second));
  }));
}

// The same when the vote is over: with the elected value, and how sure it is.
function showElected(fields, budget) {
  at("bars").replaceChildren(...Object.entries(fields).map(([pointer, one]) => {
    const votes = one.confidence == null ? "not voted on" : `${one.votes}, ${percent(one.confidence)} sure`;
    return field(pointer, JSON.stringify(one.value), bar(pointer || "/", one.votes, budget, votes, one.confidence != null));
  }));
}

function field(pointer, value, row) {
  row.classList.add("field");
  const said = element("code", value);
  said.title = value;
  row.children[0].after(said);
  return row;
}

// Below this certainty a question is called hard.
const HARD = 0.5;

function certain(certainty) {
  return percent(certainty) + (certainty != null && certainty < HARD ? ", hard" : "");
}

function showMoment(moment) {
  if (moment.fields) showFields(moment.fields, moment.budget);
  else showBars(moment.votes, moment.budget);
  if (moment.decision !== null && moment.draws) {
    const next = moment.decision ? `${moment.decision} more` : "enough";
    const sure = moment.confidence === null ? "" : `${percent(moment.confidence)} sure, `;
    at("rounds").append(element("li", `${moment.draws} drawn: ${sure}${next}`));
  }
}

function cards(target, figures) {
  target.replaceChildren(...figures.map(([name, value]) => {
    const card = document.createElement("div");
    card.append(element("dt", name), element("dd", value));
    return card;
  }));
  target.hidden = false;
}

function showOutcome(outcome, usage) {
  const budget = outcome.samples + outcome.samples_saved;
  if (outcome.fields) showElected(outcome.fields, budget);
  cards(at("outcome"), [
    ...(outcome.fields ? [] : [["answer", outcome.answer ?? "none"]]),
    ["sure", percent(outcome.confidence) || "—"],
    ["certain", certain(outcome.certainty) || "—"],
    ["samples", `${outcome.samples} of ${budget}`],
    ["samples saved", `${outcome.samples_saved} (${Math.round((100 * outcome.samples_saved) / budget)} %)`],
    ["tokens", `${usage?.completion_tokens ?? "—"}`],
    ["tokens saved", `about ${outcome.tokens_saved}`],
    ["seconds", outcome.seconds.toFixed(1)],
    ["generation saved", `about ${outcome.seconds_saved.toFixed(1)} s`],
    ["stopped by", outcome.stop_reason],
    ...(outcome.composed == null ? [] : [["object", outcome.composed ? "put together" : "as it came"]]),
  ]);
}

async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    yield* parts;
  }
}

async function ask() {
  complain("");
  at("rounds").replaceChildren();
  at("outcome").hidden = at("said").hidden = true;
  showBars({}, 1);
  at("vote").hidden = false;
  asking = new AbortController();
  at("go").disabled = true;
  at("stop").disabled = false;
  const structured = at("json").checked;
  const content = at("question").value.trim() + (at("boxed").checked && !structured ? BOXED : "");
  const body = {
    model: at("model").value,
    messages: [{ role: "user", content }],
    ...(structured ? { response_format: { type: "json_object" } } : {}),
    stream: true,
    stream_options: { include_usage: true },
    suffice: { controller: at("controller").value || null, budget: Number(at("budget").value) || null },
  };
  let said = "", outcome = null;
  try {
    const reply = await call("v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal: asking.signal });
    for await (const event of events(reply)) {
      if (event.startsWith(": suffice ")) showMoment(JSON.parse(event.slice(10)));
      if (!event.startsWith("data: {")) continue;
      const chunk = JSON.parse(event.slice(6));
      if (chunk.error) throw new Error(chunk.error.message);
      said += chunk.choices[0]?.delta.content ?? "";
      outcome = chunk.suffice ?? outcome;
      if (chunk.usage && outcome) showOutcome(outcome, chunk.usage);
    }
    at("text").textContent = said;
    at("said").hidden = !said;
  } catch (error) {
    complain(error.name === "AbortError" ? "Stopped." : error.message);
  } finally {
    asking = null;
    at("go").disabled = false;
    at("stop").disabled = true;
    refresh();
  }
}

function showRecent(entry) {
  const row = document.createElement("tr");
  const what = entry.kind === "vote" ? `vote, ${entry.controller}` : `${entry.kind} ${entry.path}`;
  const saved = entry.samples_saved == null ? "" : `${entry.samples_saved}`;
  const cells = [new Date(1000 * entry.time).toLocaleTimeString(), what, entry.status, entry.samples ?? "",
    entry.rounds ?? "", saved, entry.tokens ?? "", percent(entry.confidence), certain(entry.certainty),
    entry.seconds.toFixed(2)];
  row.append(...cells.map((cell) => element("td", cell)));
  return row;
}

async function refresh() {
  try {
    const told = await (await call("v1/suffice/recent")).json();
    const { totals } = told;
    const full = totals.samples + totals.samples_saved;
    cards(at("totals"), [
      ["requests", totals.requests],
      ["votes", totals.votes],
      ["samples", totals.samples],
      ["samples saved", full ? `${totals.samples_saved} (${Math.round((100 * totals.samples_saved) / full)} %)` : "0"],
      ["tokens", totals.tokens],
      ["tokens saved", `about ${totals.tokens_saved}`],
    ]);
    at("recent").replaceChildren(...told.recent.map(showRecent));
    at("worker").hidden = told.workers < 2;
  } catch (error) {
    if (at("unlock").hidden) complain(error.message);
  }
}

async function listModels() {
  try {
    const { data } = await (await call("v1/models")).json();
    at("model").replaceChildren(...data.map((model) => element("option", model.id)));
  } catch (error) {
    if (at("unlock").hidden) complain(error.message);
  }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!asking) ask();
});
at("json").addEventListener("change", () => { at("boxed").disabled = at("json").checked; });
at("stop").addEventListener("click", () => asking?.abort());
at("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("suffice-key", at("key").value);
  at("key").value = "";
  complain("");
  listModels();
  refresh();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") asking?.abort();
  if (event.key === "Enter" && event.ctrlKey && !asking) at("ask").requestSubmit();
});

async function begin() {
  // Whether a key is needed is known before anything is asked under /v1.
  const needed = (await fetch("healthz")).headers.get("x-suffice-key") === "required";
  if (needed && !sessionStorage.getItem("suffice-key")) {
    at("unlock").hidden = false;
    at("key").focus();
    return;
  }
  listModels();
  refresh();
}

begin();
setInterval(() => { if (!document.hidden && !asking && at("unlock").hidden) refresh(); }, 5000);
