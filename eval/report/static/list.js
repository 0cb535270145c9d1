// The list of sentence pairs: search, order, and the pair that is chosen in it.

const by = (id) => document.getElementById(id);
const state = { system: 0, pair: 0, entry: null };
let listed = []; // the pairs in the list, in its order: {at, errors, aer, ...}

const ORDERS = {
  aer: (a, b) => (b.aer ?? -1) - (a.aer ?? -1),
  errors: (a, b) => b.errors - a.errors,
  length: (a, b) => wordsOf(b.at).length - wordsOf(a.at).length,
};

const wordsOf = (at) => [...data.pairs[at].source, ...data.pairs[at].target];
const query = () => by("search").value.trim().toLowerCase();
const matches = (word) => query() !== "" && word.toLowerCase().includes(query());

/** Fill the list; to `keep` the chosen pair, it must still be in it. */
function fillList(keep = true) {
  const system = data.systems[state.system];
  listed = data.pairs.map((_, at) => ({ at, ...tally(judge(system, at)) }));
  by("drop").hidden = state.entry === null;
  if (state.entry) {
    const { word, partner, pairs } = state.entry;
    by("drop").textContent = `${word} – ${partner || "(no link)"} ✕`;
    listed = listed.filter(({ at }) => pairs.has(at));
  }
  if (query()) listed = listed.filter(({ at }) => wordsOf(at).some(matches));
  if (by("erring")?.checked) listed = listed.filter(({ errors }) => errors > 0);
  listed.sort(ORDERS[by("order").value]);
  by("count").textContent = `${listed.length} of ${data.pairs.length} pairs`;
  by("list").replaceChildren(...listed.map(listItem));
  by("pair").hidden = listed.length === 0;
  if (!listed.length) return;
  pickPair(keep && listed.some(({ at }) => at === state.pair) ? state.pair : listed[0].at);
}

function listItem({ at, aer }) {
  const pair = data.pairs[at];
  const item = html(
    "li",
    { id: `pair-${at}`, role: "option" },
    html("span", { className: "position", textContent: pair.line }),
    html("bdi", { textContent: pair.source.join(" ") || "(empty)" }),
  );
  if (hasGold) item.append(html("span", { className: "score", textContent: percent(aer) }));
  item.dataset.at = at;
  return item;
}

function pickPair(at) {
  state.pair = at;
  const list = by("list");
  const chosen = by(`pair-${at}`);
  list.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
  chosen.ariaSelected = "true";
  list.setAttribute("aria-activedescendant", chosen.id);
  scrollWithin(list, chosen);
  showPair();
}

/** Choose the pair so many steps further down the list, as far as it goes. */
function stepPair(steps) {
  const place = listed.findIndex(({ at }) => at === state.pair) + steps;
  if (listed.length) pickPair(listed[Math.max(0, Math.min(listed.length - 1, place))].at);
}

/** Scroll the list to an item of it, but never the page. */
function scrollWithin(list, item) {
  const top = item.offsetTop - list.offsetTop;
  const bottom = top + item.offsetHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}
