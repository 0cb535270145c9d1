// The chosen pair under the chosen system: both pictures, and a word brought out in them and told in words.

const TOLD = 0.05; // least share that is told of a word without link

let judged = []; // the links of the pair
let shares = null; // its soft alignment, if the page has one
let place = null; // where the cells of its heat map are

function showPair() {
  const pair = data.pairs[state.pair];
  const system = data.systems[state.system];
  judged = judge(system, state.pair);
  shares = sharesOf(system, state.pair);
  by("pair-title").textContent = `Pair ${pair.line}`;
  by("tally").textContent = tallyText(tally(judged));
  by("soft-note").textContent = system.soft_note;
  by("soft").hidden = shares === null;
  startTogether();
  drawPictures();
}

function drawPictures() {
  const pair = data.pairs[state.pair];
  drawLinks(by("links"), pair, judged);
  place = layOut(pair, by("heat").parentElement.clientWidth);
  drawHeat(by("heat"), place, pair, judged, shares);
  leaveWord();
}

/** Bring out what the lexicon led to, or nothing. */
function leaveWord() {
  focusWord(entryWord(data.pairs[state.pair]));
}

function tallyText(count) {
  if (!hasGold) return `${count.link} links`;
  const hits = `${count.sure} sure and ${count.possible} possible hits`;
  return `AER ${percent(count.aer)}: ${hits}, ${count.miss} missed, ${count.false} false`;
}

/** Bring out a word, {side, index}, or none (null). */
function focusWord(focus) {
  const pair = data.pairs[state.pair];
  lightLinks(by("links"), focus);
  lightHeat(by("heat"), focus, place);
  if (focus?.side === "target" && focus.index !== actedOn) showTogether(focus.index);
  by("readout").replaceChildren(...(focus ? describe(focus, pair) : ["Point at a word to see what it is linked to."]));
}

/** A word, then what it is linked to or rests on, greatest share first. */
function describe({ side, index }, pair) {
  const far = side === "source" ? "target" : "source";
  const ends = new Map(
    judged
      .map(({ i, j, kind }) => (side === "source" ? [i, j, kind] : [j, i, kind]))
      .filter(([near]) => near === index)
      .map(([, end, kind]) => [end, kind]),
  );
  const share = (end) => (shares === null ? 0 : side === "source" ? shares[end][index] : shares[index][end]);
  const told = [...pair[far].keys()].filter((end) => ends.has(end) || share(end) >= TOLD);
  told.sort((a, b) => share(b) - share(a));
  const parts = told.map((end) => {
    const notes = [shares && share(end).toFixed(2), KINDS[ends.get(end)]].filter(Boolean).join(", ");
    return html("span", {}, html("bdi", { textContent: pair[far][end] }), ` ${notes}`);
  });
  const word = html("bdi", { className: "word", textContent: pair[side][index] });
  return [word, ...(parts.length ? parts : [html("span", { textContent: "no link" })])];
}
