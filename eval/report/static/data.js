// The data of the page and how to read it. Numbers are in base 64, one character a digit.

const data = JSON.parse(document.getElementById("data").textContent);
const BASE = data.alphabet.length;
const DIGITS = new Map([...data.alphabet].map((character, number) => [character, number]));
const hasGold = data.pairs.some((pair) => pair.sure !== undefined);

/** What a cell can be: a link of the system, of the gold alignment, or of both. */
const KINDS = {
  link: "link",
  sure: "hit, sure in the gold alignment",
  possible: "hit, possible in the gold alignment",
  false: "false link",
  miss: "missed sure link",
  open: "possible link not made",
};

/** Packed links as [[i, j], ...]: source word, target word. */
function unpackLinks(text, pair) {
  let width = 1;
  while (BASE ** width < Math.max(pair.source.length, pair.target.length)) width += 1;
  const numbers = [];
  for (let at = 0; at < text.length; at += width) {
    let number = 0;
    for (let k = at; k < at + width; k += 1) number = number * BASE + DIGITS.get(text[k]);
    numbers.push(number);
  }
  return Array.from({ length: numbers.length / 2 }, (_, k) => [numbers[2 * k], numbers[2 * k + 1]]);
}

/** The share of every cell, target word by target word, or null where the page has no soft alignment. */
function sharesOf(system, at) {
  if (system.soft === null) return null;
  const { source, target } = data.pairs[at];
  const text = data.matrices[system.soft][at];
  return target.map((_, j) => source.map((_, i) => DIGITS.get(text[j * source.length + i]) / (BASE - 1)));
}

/** The links of a system and of the gold alignment for one pair: [{i, j, kind}, ...]. */
function judge(system, at) {
  const pair = data.pairs[at];
  const found = unpackLinks(system.links[at], pair);
  if (!hasGold) return found.map(([i, j]) => ({ i, j, kind: "link" }));
  const gold = new Map();
  for (const [i, j] of unpackLinks(pair.possible, pair)) gold.set(`${i}-${j}`, { i, j, kind: "open" });
  for (const [i, j] of unpackLinks(pair.sure, pair)) gold.set(`${i}-${j}`, { i, j, kind: "miss" });
  const links = [];
  for (const [i, j] of found) {
    const wanted = gold.get(`${i}-${j}`);
    if (!wanted) links.push({ i, j, kind: "false" });
    else wanted.kind = wanted.kind === "miss" ? "sure" : "possible";
  }
  return [...gold.values(), ...links];
}

/** How many links of each kind, and the sentence's AER (null where there is nothing to count). */
function tally(links) {
  const count = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  for (const { kind } of links) count[kind] += 1;
  const made = count.sure + count.possible + count.false;
  const wanted = count.sure + count.miss;
  const aer = made + wanted ? 1 - (2 * count.sure + count.possible) / (made + wanted) : null;
  return { ...count, errors: count.false + count.miss, aer };
}

function percent(share) {
  return share === null ? "–" : (100 * share).toFixed(1);
}
