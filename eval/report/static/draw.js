// Elements, and the marks that tell links apart without colour.

function html(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const RING = "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z";
const MARKS = {
  link: RING,
  sure: RING,
  possible: RING,
  false: "M-4-4L4 4M4-4L-4 4",
  miss: "M0-5.5L5.5 0L0 5.5L-5.5 0z",
  open: "M-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0z",
};

/** The mark of a kind of link, drawn around (x, y). */
function mark(kind, x, y, scale = 1) {
  return svg("path", { class: `mark ${kind}`, d: MARKS[kind], transform: `translate(${x} ${y}) scale(${scale})` });
}

/** The kinds that a page can show, each with its stroke and its mark. */
function drawLegend(list) {
  for (const kind of Object.keys(KINDS).filter((kind) => (kind === "link") !== hasGold)) {
    const line = svg("path", { class: `strand ${kind}`, d: "M0 8H40" });
    list.append(html("li", {}, svg("svg", { width: 40, height: 16 }, line, mark(kind, 20, 8)), KINDS[kind]));
  }
}
