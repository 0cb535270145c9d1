// Both sentences as columns of words, with the links drawn between them.

const ROW = 26; // pixels from word to word, as in the style sheet
const KNOT = 0.433; // where on a strand its mark sits: off the middle, so that crossing strands keep theirs apart

function drawLinks(box, pair, links) {
  const [source, strands, target] = box.children;
  fillWords(source, pair.source, "source");
  fillWords(target, pair.target, "target");
  const width = strands.clientWidth;
  const height = ROW * Math.max(pair.source.length, pair.target.length);
  strands.setAttribute("height", height);
  strands.setAttribute("viewBox", `0 0 ${width} ${height}`);
  strands.setAttribute("preserveAspectRatio", "none"); // printed narrower, it keeps its height
  strands.replaceChildren(...links.map(({ i, j, kind }) => strand(i, j, kind, width)));
}

function fillWords(list, words, side) {
  list.replaceChildren(
    ...words.map((word, index) => {
      const text = html("bdi", { textContent: word, className: matches(word) ? "found" : "" });
      const number = html("span", { textContent: index, className: "position" });
      const item = html("li", { tabIndex: index === 0 && side === "source" ? 0 : -1, title: word }, number, text);
      Object.assign(item.dataset, { side, index });
      return item;
    }),
  );
}

function strand(i, j, kind, width) {
  const [from, to] = [ROW * (i + 0.5), ROW * (j + 0.5)];
  const [t, u] = [KNOT, 1 - KNOT];
  const x = width * (1.5 * t * u * u + 1.5 * t * t * u + t * t * t);
  const y = from + (to - from) * (3 * t * t * u + t * t * t);
  const group = svg(
    "g",
    {},
    svg("path", {
      class: `strand ${kind}`,
      d: `M0 ${from}C${width / 2} ${from} ${width / 2} ${to} ${width} ${to}`,
    }),
    mark(kind, x, y),
  );
  Object.assign(group.dataset, { source: i, target: j, kind });
  return group;
}

/** Bring out one word ({side, index}, or null for none), the links on it and the words at their other ends. */
function lightLinks(box, focus) {
  const other = { source: "target", target: "source" };
  const lit = { source: new Set(), target: new Set() };
  if (focus) lit[focus.side].add(focus.index);
  for (const group of box.querySelectorAll("g")) {
    const on = focus !== null && Number(group.dataset[focus.side]) === focus.index;
    group.classList.toggle("dim", focus !== null && !on);
    if (on && group.dataset.kind !== "open") lit[other[focus.side]].add(Number(group.dataset[other[focus.side]]));
  }
  for (const item of box.querySelectorAll("li")) {
    item.classList.toggle("lit", lit[item.dataset.side].has(Number(item.dataset.index)));
  }
}
