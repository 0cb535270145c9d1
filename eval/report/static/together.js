// Which source words act on a target word together: half a table of source words, the words on its diagonal.

const TOGETHER = { cell: 22, told: 3 }; // pixels; how many pairs of words are told in words
let actedOn = 0; // the target word of the table

/** Interactions of the pair under show, or undefined where the page has none. */
const interactionsOf = (at) => data.interactions?.[at];

/** For a target word, [{i, k, value}, ...] in nats, k before i. */
function interactingWords({ most, cells }, target, words) {
  const half = BASE / 2 - 1;
  const found = [];
  for (let i = 1; i < words; i += 1) {
    for (let k = 0; k < i; k += 1) {
      const level = DIGITS.get(cells[target][(i * (i - 1)) / 2 + k]);
      found.push({ i, k, value: ((level - half) / half) * most });
    }
  }
  return found;
}

/** Begin a pair with the target word that shows most. */
function startTogether() {
  const found = interactionsOf(state.pair);
  if (by("together")) by("together").hidden = !found;
  if (!found) return;
  const { source, target } = data.pairs[state.pair];
  const greatest = (j) => Math.max(0, ...interactingWords(found, j, source.length).map(({ value }) => Math.abs(value)));
  const sizes = target.map((_, j) => greatest(j));
  showTogether(sizes.indexOf(Math.max(...sizes)));
}

function showTogether(target) {
  const found = interactionsOf(state.pair);
  if (!found) return;
  actedOn = target;
  const pair = data.pairs[state.pair];
  const values = interactingWords(found, target, pair.source.length);
  by("together-word").textContent = pair.target[target];
  by("together-most").textContent = found.most.toFixed(2);
  by("together-told").replaceChildren(...tellTogether(values, pair.source));
  drawTogether(by("together").querySelector(".scroll svg"), values, pair.source, found.most);
}

function tellTogether(values, source) {
  const strongest = values.toSorted((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, TOGETHER.told);
  return strongest.map(({ i, k, value }) => {
    const words = [k, i].map((n) => html("bdi", { textContent: source[n] }));
    return html("li", {}, words[0], " + ", words[1], ` ${signedNats(value)}`);
  });
}

const signedNats = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

/** A square whose area is the amount: filled above 0, hollow below. */
function drawTogether(picture, values, source, most) {
  const { cell } = TOGETHER;
  const letters = Math.max(0, ...source.map((word, i) => lettersOf(word) * 7.5 + i * cell));
  const [width, height] = [Math.max(letters + 34, cell), source.length * cell + 2];
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    picture.setAttribute(key, value);
  }
  const squares = values.map(({ i, k, value }) => {
    const side = Math.sqrt(Math.abs(value) / (most || 1)) * (cell - 4);
    const [x, y] = [k * cell + 1 + (cell - side) / 2, i * cell + 1 + (cell - side) / 2];
    const title = svg("title", {}, `${source[k]} + ${source[i]}: ${signedNats(value)}`);
    const ground = svg("rect", { class: "ground", x: k * cell + 1, y: i * cell + 1, width: cell, height: cell });
    const kind = value < 0 ? "instead" : "needed";
    const shape = value === 0 ? [] : [svg("rect", { class: kind, x, y, width: side, height: side })];
    return svg("g", {}, title, ground, ...shape);
  });
  const names = source.map((word, i) => label(word, i * cell + 8, (i + 0.5) * cell + 1, "source", i));
  picture.replaceChildren(...squares, ...names);
}
