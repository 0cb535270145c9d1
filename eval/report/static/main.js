// Choosing a system, and what pointer and keys do.

const TELLING = 8; // words of the pair that is shown first, where there is one

function pickSystem(number) {
  state.system = number;
  const system = data.systems[number];
  by("system").value = number;
  markRow(number);
  tellAbout(system);
  fillLexicon();
  fillList();
}

/** The card of the system's method, how its figures were made, and the chart of layers. */
function tellAbout(system) {
  by("chosen").textContent = labelOf(system);
  by("signature").textContent = system.signature ?? "";
  const cards = [...document.querySelectorAll(".card")];
  for (const card of cards) card.hidden = card.dataset.card !== system.name;
  by("about").hidden = !system.signature && cards.every((card) => card.hidden);
  if (data.systems.some((other) => other.layer !== null)) drawLayers(by("layers"), system, pickSystem);
}

const labelOf = ({ name, details, direction, pooling }) => [name, details, direction, pooling].filter(Boolean).join(", ");

/** The next system that the page has links of, or the one before. */
function stepSystem(steps) {
  const select = by("system");
  const option = select.options[select.selectedIndex + steps];
  if (option) pickSystem(Number(option.value));
}

function startTools() {
  data.systems.forEach((system, number) => {
    if (system.links !== null) by("system").append(new Option(labelOf(system), number));
  });
  by("system").addEventListener("change", () => pickSystem(Number(by("system").value)));
  for (const id of ["erring", "search"]) by(id)?.addEventListener("input", () => fillList());
  by("order").addEventListener("change", () => fillList(false));
  by("previous").addEventListener("click", () => stepPair(-1));
  by("next").addEventListener("click", () => stepPair(1));
  by("list").addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) pickPair(Number(item.dataset.at));
  });
}

function startPictures() {
  const wordOf = ({ side, index }) => ({ side, index: Number(index) });
  for (const type of ["pointerover", "focusin"]) {
    by("links").addEventListener(type, (event) => {
      const item = event.target.closest("li");
      if (item) focusWord(wordOf(item.dataset));
    });
  }
  by("heat").addEventListener("pointermove", (event) => {
    const cell = cellAt(by("heat"), event, place);
    if (cell) focusWord({ side: "target", index: cell.j });
  });
  for (const picture of [by("links"), by("heat")]) picture.addEventListener("pointerleave", leaveWord);
  by("links").addEventListener("focusout", leaveWord);
  let width = by("pair").clientWidth;
  new ResizeObserver(() => {
    if (by("pair").clientWidth === width || listed.length === 0) return;
    width = by("pair").clientWidth;
    drawPictures();
  }).observe(by("pair"));
}

const PAGE_KEYS = {
  ArrowLeft: () => stepPair(-1),
  ArrowRight: () => stepPair(1),
  "[": () => stepSystem(-1),
  "]": () => stepSystem(1),
  "/": () => by("search").focus(),
  l: () => by("lookup").focus(),
};
const LIST_KEYS = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

function onKey(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (key === "Escape") target.blur();
  else if (target.matches("input, select")) return;
  else if (target.matches("#links li") && key.startsWith("Arrow")) stepWord(target, key);
  else if (target.matches("#list") && key in LIST_KEYS) stepPair(LIST_KEYS[key]);
  else if (target.matches("#words") && key in LIST_KEYS) stepHeadword(LIST_KEYS[key]);
  else if (key in PAGE_KEYS) PAGE_KEYS[key]();
  else return;
  event.preventDefault();
}

/** From a word to its neighbour, or to the word beside it in the other sentence. */
function stepWord(item, key) {
  const column = item.parentElement;
  const [source, , target] = by("links").children;
  const across = { ArrowLeft: source, ArrowRight: target }[key];
  const index = Number(item.dataset.index);
  const next = across
    ? across.children[Math.min(index, across.children.length - 1)]
    : column.children[index + (key === "ArrowDown" ? 1 : -1)];
  next?.focus();
}

state.pair = Math.max(0, data.pairs.findIndex((pair) => pair.source.length >= TELLING));
startTable(pickSystem);
drawLegend(by("legend"));
drawScale(by("scale"));
startTools();
startLexicon();
startPictures();
document.addEventListener("keydown", onKey);
pickSystem(0);
