// The lexicon: which words the links of the chosen system join, how often, and in which pairs.

const NULL = ""; // stands for no word, as in the lexicons of the command
const MOST_WORDS = 300; // in the list at a time
const LONG = 4; // letters of the word that is shown first, where there is one
const FAR = { source: "target", target: "source" };
const IN_GOLD = {
  sure: "a sure pair of the gold alignment",
  possible: "a possible pair of the gold alignment",
  false: "no pair of the gold alignment",
};

let lexicon = null; // for each side: word -> {word, count, partners: word -> {word, count, pairs}}
let known = null; // "source target" -> sure or possible, as the gold alignment has it
let headword = null; // the entry that is shown

/** Count what the links of a system join; a word without link is joined to NULL. */
function countLexicon(system) {
  const found = { source: new Map(), target: new Map() };
  data.pairs.forEach((pair, at) => {
    const free = { source: new Set(pair.source.keys()), target: new Set(pair.target.keys()) };
    for (const [i, j] of unpackLinks(system.links[at], pair)) {
      join(found, pair.source[i], pair.target[j], 1, [at]);
      free.source.delete(i);
      free.target.delete(j);
    }
    for (const i of free.source) join(found, pair.source[i], NULL, 1, [at]);
    for (const j of free.target) join(found, NULL, pair.target[j], 1, [at]);
  });
  return found;
}

/** The lexicon that the page brings along, counted from more text than its pairs. */
function givenLexicon() {
  const found = { source: new Map(), target: new Map() };
  for (const [source, target, count, sources, targets, pairs] of data.lexicon) {
    join(found, source, target, count, pairs);
    if (source !== NULL) found.source.get(source).total = sources;
    if (target !== NULL) found.target.get(target).total = targets;
  }
  return found;
}

function join(found, source, target, count, pairs) {
  for (const [side, word, partner] of [["source", source, target], ["target", target, source]]) {
    if (word === NULL) continue;
    const entry = found[side].get(word) ?? { word, count: 0, partners: new Map() };
    found[side].set(word, entry);
    entry.count += count;
    const joined = entry.partners.get(partner) ?? { word: partner, count: 0, pairs: [] };
    entry.partners.set(partner, joined);
    joined.count += count;
    for (const at of pairs) if (joined.pairs.at(-1) !== at) joined.pairs.push(at);
  }
}

const totalOf = (entry) => entry.total ?? entry.count;

function goldPairs() {
  const found = new Map();
  for (const kind of ["possible", "sure"]) {
    for (const pair of data.pairs) {
      for (const [i, j] of unpackLinks(pair[kind], pair)) found.set(`${pair.source[i]} ${pair.target[j]}`, kind);
    }
  }
  return found;
}

/** The words of a side that the search finds, those it names first, then the most frequent ones. */
function wordsFound(side, sought) {
  const rank = (word) => (word === sought ? 0 : word.startsWith(sought) ? 1 : 2);
  const found = [...lexicon[side].values()].map((entry) => ({ entry, lower: entry.word.toLowerCase() }));
  return found
    .filter(({ lower }) => lower.includes(sought))
    .sort((a, b) => (sought ? rank(a.lower) - rank(b.lower) : 0) || totalOf(b.entry) - totalOf(a.entry))
    .map(({ entry }) => entry);
}

function fillWordList() {
  const side = by("side").value;
  const sought = by("lookup").value.trim().toLowerCase();
  const found = wordsFound(side, sought);
  const shown = found.slice(0, MOST_WORDS);
  by("word-count").textContent = `${found.length} of ${lexicon[side].size} words`;
  by("words").replaceChildren(...shown.map(wordItem));
  by("entry").hidden = shown.length === 0;
  if (!shown.length) return;
  const again = shown.find((entry) => entry.word === headword);
  pickWord((again ?? (sought ? shown[0] : shown.find(({ word }) => word.length >= LONG)) ?? shown[0]).word);
}

function wordItem(entry) {
  const count = html("span", { textContent: totalOf(entry).toLocaleString("en"), className: "score" });
  const item = html("li", { role: "option" }, html("bdi", { textContent: entry.word }), count);
  item.dataset.word = entry.word;
  return item;
}

function pickWord(word) {
  headword = word;
  const items = [...by("words").children];
  items.forEach((item, number) => {
    item.id = `word-${number}`;
    if (item.dataset.word === word) item.ariaSelected = "true";
    else item.removeAttribute("aria-selected");
  });
  const chosen = items.find((item) => item.dataset.word === word);
  by("words").setAttribute("aria-activedescendant", chosen.id);
  scrollWithin(by("words"), chosen);
  showEntry(lexicon[by("side").value].get(word));
}

/** Choose the word so many steps further down the list, as far as it goes. */
function stepHeadword(steps) {
  const items = [...by("words").children];
  const at = items.findIndex((item) => item.dataset.word === headword) + steps;
  if (items.length) pickWord(items[Math.max(0, Math.min(items.length - 1, at))].dataset.word);
}

/** A word with its translations, the most frequent first. */
function showEntry(entry) {
  const total = totalOf(entry);
  const partners = [...entry.partners.values()].sort((a, b) => b.count - a.count);
  by("entry-title").textContent = entry.word;
  by("entry-note").textContent = `counted ${total.toLocaleString("en")} times, with ${partners.length} partners`;
  by("translations").tBodies[0].replaceChildren(...partners.map((partner) => partnerRow(entry, partner, total)));
}

function partnerRow(entry, partner, total) {
  const side = by("side").value;
  const back = lexicon[FAR[side]].get(partner.word);
  const share = partner.count / total;
  const name = html("bdi", { textContent: partner.word || "(no link)" });
  const label = partner.pairs.length ? html("button", { type: "button", className: "name" }, name) : name;
  if (partner.pairs.length) {
    label.addEventListener("click", () => showExamples({ side, word: entry.word, partner: partner.word }, partner.pairs));
  }
  return html(
    "tr",
    {},
    html("th", { scope: "row" }, ...goldMark(side, entry.word, partner.word), label),
    html("td", { className: "chance" }, shareBar(share), html("span", { textContent: percent(share) })),
    html("td", { className: "number", textContent: partner.count.toLocaleString("en") }),
    html("td", { className: "number", textContent: back ? percent(partner.count / totalOf(back)) : "–" }),
  );
}

function shareBar(share) {
  const bar = svg("rect", { width: 100 * share, height: 10 });
  return svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, bar);
}

function goldMark(side, word, partner) {
  if (!hasGold) return [];
  known ??= goldPairs();
  const box = svg("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", role: "img" });
  if (partner === NULL) return [box];
  const kind = known.get(side === "source" ? `${word} ${partner}` : `${partner} ${word}`) ?? "false";
  box.append(svg("title", {}, IN_GOLD[kind]), mark(kind, 0, 0, 0.9));
  return [box];
}

/** Keep the list of pairs to those in which an entry occurs, and go there. */
function showExamples(entry, pairs) {
  by("search").value = "";
  if (by("erring")) by("erring").checked = false;
  state.entry = { ...entry, pairs: new Set(pairs) };
  fillList(false);
  by("browser").scrollIntoView();
  by("list").focus({ preventScroll: true });
}

function dropEntry() {
  state.entry = null;
  fillList();
}

/** The word of the shown pair that stands for the chosen entry, as {side, index}; null if there is none. */
function entryWord(pair) {
  if (!state.entry) return null;
  const { side, word, partner } = state.entry;
  const ends = (link) => (side === "source" ? [link.i, link.j] : [link.j, link.i]);
  const made = judged.filter(({ kind }) => kind !== "miss" && kind !== "open").map(ends);
  const index = pair[side].findIndex((text, near) => {
    const far = made.filter(([end]) => end === near).map(([, end]) => pair[FAR[side]][end]);
    return text === word && (partner === NULL ? far.length === 0 : far.includes(partner));
  });
  return index < 0 ? null : { side, index };
}

/** Count anew what the chosen system joins. */
function fillLexicon() {
  state.entry = null;
  lexicon = data.lexicon ? givenLexicon() : countLexicon(data.systems[state.system]);
  fillWordList();
}

function startLexicon() {
  by("lookup").addEventListener("input", fillWordList);
  by("side").addEventListener("change", fillWordList);
  by("drop").addEventListener("click", dropEntry);
  by("words").addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) pickWord(item.dataset.word);
  });
}
