"use strict";

const at = (id) => document.getElementById(id);
const percent = (share) => (share == null ? "" : `${(100 * share).toFixed(1)} %`);
// Numbers have separators between thousands, and as many decimals as a price needs.
const numeral = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 6 }) : value);
const PROMPTS = JSON.parse(at("ask").dataset.prompts);
let asking = null;
let mostTokens = 0;

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
  made.textContent = numeral(text);
  if (className) made.className = className;
  return made;
}

function tableRow(cells, className) {
  const made = element("tr", "", className);
  made.append(...cells.map((cell) => element("td", cell)));
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
    const votes = one.certainty == null ? "not voted on" : `${one.votes}, ${percent(one.certainty)} certain`;
    return field(pointer, JSON.stringify(one.value), bar(pointer || "/", one.votes, budget, votes, one.certainty != null));
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

// How far a vote is: what was asked for, what is in, and the tokens that have arrived, also of what is not in yet.
function showProgress(asked, arrived, tokens) {
  mostTokens = Math.max(mostTokens, tokens); // what a server counts at the end may be a little less than its pieces
  at("progress").textContent = `asked ${asked}, ${arrived} in` + (mostTokens ? `, ${mostTokens} tokens` : "");
}

// How a vote stands, and how many were drawn for it; 0 where that is only how far it is.
function showMoment(moment) {
  if (!moment.votes) {
    showProgress(moment.asked, moment.arrived, moment.tokens);
    return 0;
  }
  showProgress(moment.draws + moment.in_flight + (moment.decision ?? 0), moment.draws, moment.tokens);
  if (moment.fields) showFields(moment.fields, moment.budget);
  else showBars(moment.votes, moment.budget);
  if (moment.decision !== null && moment.draws) {
    const next = moment.decision ? `${moment.decision} more` : "enough";
    const sure = moment.certainty === null ? "" : `${percent(moment.certainty)} certain, `;
    at("rounds").append(element("li", `${moment.draws} drawn: ${sure}${next}`));
  }
  return moment.draws;
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
  const { budget } = outcome;
  if (outcome.fields) showElected(outcome.fields, budget);
  cards(at("outcome"), [
    ...(outcome.fields ? [] : [["answer", outcome.answer ?? "none"]]),
    ["certain", certain(outcome.certainty) || "—"],
    ["same as full vote", percent(outcome.same_as_full_vote) || "—"],
    ["samples", `${outcome.samples}`],
    ["samples over one", `${outcome.over_one.samples}`],
    ["tokens", usage?.completion_tokens ?? "—"],
    ["tokens over one", outcome.over_one.tokens],
    ["prompt tokens sent again", outcome.over_one.prompt_tokens],
    ["the first said", outcome.changed ? "something else" : "the same"],
    ["seconds", outcome.seconds.toFixed(1)],
    ...(outcome.samples_saved == null ? [] : [
      ["samples saved", `${outcome.samples_saved} of ${budget}`],
      ["tokens saved", `about ${numeral(outcome.tokens_saved)}`],
      ["generation saved", `about ${outcome.seconds_saved.toFixed(1)} s`],
    ]),
    ...Object.entries(outcome.by_voter ?? {}).map(([voter, votes]) => [
      `${voter} said`, Object.entries(votes).map(([answer, count]) => `${answer} ×${count}`).join(", ") || "no answer",
    ]),
    ["read from", outcome.evidence ?? "—"],
    ["stopped by", outcome.stop_reason],
    ...(outcome.composed == null ? [] : [["object", outcome.composed ? "put together" : "as it came"]]),
  ]);
}

// A reply that no vote was held on: all of it is shown.
function showAlone(why) {
  at("progress").textContent = `one sample, and no vote${why ? `: ${why}` : ""}`;
  at("what").textContent = "The reply";
  at("said").hidden = false;
  at("said").open = true;
}

// The question as the model is best asked, or as it is.
function put(question, boxed) {
  const { messages, ...more } = PROMPTS[at("model").value] ?? PROMPTS[""];
  if (!boxed) return { messages: [{ role: "user", content: question }] };
  return { messages: messages.map((one) => ({ ...one, content: one.content.replace("{question}", () => question) })), ...more };
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
  at("what").textContent = "The response that was chosen";
  at("said").open = false;
  showBars({}, 1);
  at("vote").hidden = false;
  asking = new AbortController();
  at("go").disabled = true;
  at("stop").disabled = false;
  const structured = at("json").checked;
  const body = {
    model: at("model").value,
    ...put(at("question").value.trim(), at("boxed").checked && !structured),
    ...(structured ? { response_format: { type: "json_object" } } : {}),
    stream: true,
    stream_options: { include_usage: true },
    suffice: { controller: at("controller").value || null, budget: Number(at("budget").value) || null, watch: true },
  };
  mostTokens = 0;
  showProgress(1, 0, 0);
  let said = "", outcome = null, drawn = 0;
  try {
    const reply = await call("v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal: asking.signal });
    for await (const event of events(reply)) {
      if (event.startsWith(": suffice ")) drawn = showMoment(JSON.parse(event.slice(10))) || drawn;
      if (!event.startsWith("data: {")) continue;
      const chunk = JSON.parse(event.slice(6));
      if (chunk.error) throw new Error(chunk.error.message);
      said += chunk.choices[0]?.delta.content ?? "";
      at("text").textContent = said;
      if (said && !drawn) showAlone(reply.headers.get("x-suffice-no-vote"));
      outcome = chunk.suffice ?? outcome;
      if (chunk.usage && outcome) showOutcome(outcome, chunk.usage);
    }
    at("said").hidden = !said;
    if (!outcome) showAlone(reply.headers.get("x-suffice-no-vote"));
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
  const what = entry.kind === "vote" ? `vote, ${entry.controller}` : `${entry.kind}, ${entry.no_vote ?? entry.path}`;
  return tableRow([new Date(1000 * entry.time).toLocaleTimeString(), what, entry.status, entry.samples ?? "",
    entry.rounds ?? "", entry.tokens ?? "", entry.over_one_tokens ?? "", certain(entry.certainty),
    percent(entry.same_as_full_vote),
    entry.seconds.toFixed(2)]);
}

function showUnderWay(entry) {
  const what = entry.kind === "vote" ? `vote, ${entry.controller}` : entry.path;
  const arrived = entry.asked == null ? "" : `asked ${entry.asked}, ${entry.arrived} in`;
  const seconds = entry.seconds.toFixed(2);
  return tableRow(["now", what, "under way", arrived, "", entry.tokens ?? "", "", "", "", seconds], "under-way");
}

// What audits prove of the votes, and what was learned, by model and topic.
function showProof(told) {
  at("proof").hidden = !told.kinds.length;
  at("proved").textContent = told.share || told.all.audits ? told.all.said : "";
  at("kinds").replaceChildren(...told.kinds.map((kind) => tableRow([kind.model, kind.topic || "—", kind.learned_from ?? "",
    kind.audits || "", percent(kind.agreement), percent(kind.once_agreement), kind.penalty_draw ?? ""])));
}

// What votes cost over one response and what they changed: in a sentence, in all, and by model, evidence and key.
function showCosts(totals, costs) {
  at("cost").textContent = costs.said;
  for (const one of ["savings", "cap"]) at(one).textContent = costs[one];
  cards(at("totals"), [
    ["samples over one", totals.over_one_samples],
    ["tokens over one", totals.over_one_tokens],
    ["prompt tokens sent again", totals.over_one_prompt_tokens],
    ["answers changed", totals.changed],
    ["requests", totals.requests],
    ["votes", totals.votes],
    ["samples", totals.samples],
    ["tokens", totals.tokens],
  ]);
  const voted = costs.groups.filter((one) => one.votes);
  at("costs").hidden = !voted.length;
  at("groups").replaceChildren(...voted.map((one) => {
    const changed = `${one.changed} (${Math.round((100 * one.changed) / one.votes)} %)`;
    return tableRow([one.model || "—", one.evidence, one.key ?? "—", one.votes, one.over_one_samples, one.over_one_tokens,
      changed]);
  }));
}

// What auto would do with requests that are in the shadow.
function showShadow(costs) {
  at("shadow").hidden = !costs.shadow;
  at("foretold").textContent = costs.shadow;
  const foretold = costs.groups.filter((one) => one.expected_tokens);
  at("shadowed").replaceChildren(...foretold.map((one) => tableRow([one.model || "—", one.evidence, one.key ?? "—", one.requests,
    one.would_vote, Math.round(one.expected_samples), one.tokens, one.expected_tokens])));
}

// What becomes of each topic's requests, since when and why.
function showTopics(told) {
  at("topics").hidden = !told.topics.length;
  at("taught").replaceChildren(...told.topics.slice(0, 20).map((one) => tableRow([one.model || "—", one.topic, one.route, one.why,
    new Date(1000 * one.since).toLocaleTimeString(), one.passed_on, one.looked_at, one.voted_on, percent(one.agreement)])));
}

function showUpstream(one) {
  const health = one.healthy ? "healthy" : "set aside";
  return element("li", `${one.name}: ${health}, ${one.in_flight} in flight`, one.healthy ? "well" : "ill");
}

async function refresh() {
  try {
    const told = await (await call("v1/suffice/recent")).json();
    showCosts(told.totals, told.costs);
    showShadow(told.costs);
    at("recent").replaceChildren(...told.under_way.map(showUnderWay), ...told.recent.map(showRecent));
    at("worker").hidden = told.workers < 2;
    at("behind").hidden = told.upstreams.length < 2 && told.upstreams.every((one) => one.healthy);
    at("upstreams").replaceChildren(...told.upstreams.map(showUpstream));
    showTopics(await (await call("v1/suffice/topics")).json());
    showProof(await (await call("v1/suffice/audits")).json());
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
setInterval(() => { if (!document.hidden && at("unlock").hidden) refresh(); }, 2000);
