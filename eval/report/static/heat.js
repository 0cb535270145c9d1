// The soft alignment as a heat map: a row for each target word, a column for each source word, links marked.

const CELL = { least: 14, most: 26 }; // pixels
const LETTERS = 14; // most letters of a word that are shown, where a wide one counts as two
const WIDE = /[\u1100-\u11ff\u2e80-\uffef]/u;

/** Where things are: `left` and `top` of the cells, `size` of one, `columns` and `rows` of them. */
function layOut(pair, room) {
  const [left, top] = [pair.target, pair.source].map((words) => 12 + 7.5 * Math.max(0, ...words.map(lettersOf)));
  const [columns, rows] = [pair.source.length, pair.target.length];
  const size = Math.max(CELL.least, Math.min(CELL.most, Math.floor((room - left - 2) / Math.max(1, columns))));
  return { left, top, size, columns, rows, x: (i) => left + i * size, y: (j) => top + j * size };
}

const lettersOf = (word) => Math.min(LETTERS, [...word].reduce((sum, letter) => sum + (WIDE.test(letter) ? 2 : 1), 0));

function drawHeat(picture, place, pair, links, shares) {
  const { left, top, size, columns, rows, x, y } = place;
  const [width, height] = [x(columns) + 2, y(rows) + 2];
  for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    picture.setAttribute(key, value);
  }
  const scale = Math.min(1, size / 18);
  picture.replaceChildren(
    ...(shares ? shades(shares, place) : []),
    grid(place),
    ...pair.source.map((word, i) => label(word, x(i + 0.5), top - 6, "source", i)),
    ...pair.target.map((word, j) => label(word, left - 6, y(j + 0.5), "target", j)),
    ...links.map(({ i, j, kind }) => mark(kind, x(i + 0.5), y(j + 0.5), scale)),
    svg("rect", { class: "frame", visibility: "hidden" }),
  );
}

/** One path for all cells of a shade: a few dozen elements, however long the sentences are. */
function shades(shares, { size, x, y }) {
  const paths = new Map();
  shares.forEach((row, j) =>
    row.forEach((share, i) => {
      const square = `M${x(i)} ${y(j)}h${size}v${size}h${-size}z`;
      if (share > 0) paths.set(share, (paths.get(share) ?? "") + square);
    }),
  );
  return [...paths].map(([share, d]) => svg("path", { class: "shade", d, "fill-opacity": opacity(share) }));
}

const opacity = (share) => (share ** 0.7).toFixed(3); // small shares would hardly be seen

/** What the shades stand for. */
function drawScale(box) {
  for (const share of [0.1, 0.25, 0.5, 1]) {
    const cell = svg("rect", { class: "shade", width: 14, height: 14, "fill-opacity": opacity(share) });
    box.append(html("span", {}, svg("svg", { width: 14, height: 14 }, cell), `${share}`));
  }
}

function grid({ left, top, columns, rows, x, y }) {
  let d = "";
  for (let i = 0; i <= columns; i += 1) d += `M${x(i)} ${top}V${y(rows)}`;
  for (let j = 0; j <= rows; j += 1) d += `M${left} ${y(j)}H${x(columns)}`;
  return svg("path", { class: "grid", d });
}

function label(word, x, y, side, index) {
  const most = WIDE.test(word) ? LETTERS / 2 : LETTERS;
  const letters = [...word];
  const text = letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : word;
  const element = svg("text", { class: side, x, y }, text);
  element.dataset.index = index;
  return element;
}

/** The cell under a pointer, {i, j}, or null. */
function cellAt(picture, event, { left, top, size, columns, rows }) {
  const box = picture.getBoundingClientRect();
  const i = Math.floor((event.clientX - box.left - left) / size);
  const j = Math.floor((event.clientY - box.top - top) / size);
  return i >= 0 && j >= 0 && i < columns && j < rows ? { i, j } : null;
}

/** Frame the row or column of a word, or nothing. */
function lightHeat(picture, focus, { left, top, size, columns, rows, x, y }) {
  for (const text of picture.querySelectorAll("text")) {
    const on = focus !== null && text.classList.contains(focus.side) && Number(text.dataset.index) === focus.index;
    text.classList.toggle("lit", on);
  }
  const frame = picture.querySelector(".frame");
  frame.setAttribute("visibility", focus ? "visible" : "hidden");
  const row = focus?.side === "target";
  const box = row
    ? { x: left, y: y(focus.index), width: columns * size, height: size }
    : { x: x(focus?.index ?? 0), y: top, width: size, height: rows * size };
  for (const [key, value] of Object.entries(box)) frame.setAttribute(key, value);
}
