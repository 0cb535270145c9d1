// The chart of AER by decoder layer, a line for each position and head that attention is read from.

const CHART = { width: 360, height: 210, left: 40, right: 70, top: 14, bottom: 34 };

/** Draw the layers of the systems that are as `chosen` in everything but layer, heads and position. */
function drawLayers(figure, chosen, pick) {
  const like = chosen.layer !== null ? chosen : data.systems.find((system) => system.layer !== null);
  const shown = data.systems.filter(
    (system) =>
      system.layer !== null &&
      system.aer !== null &&
      system.name === like.name &&
      system.direction === like.direction &&
      system.pooling === like.pooling,
  );
  const layers = [...new Set(shown.map((system) => system.layer))].sort((a, b) => a - b);
  figure.hidden = layers.length < 2;
  if (figure.hidden) return;
  const [caption, picture] = figure.children;
  const kind = [like.direction, like.pooling].filter(Boolean).join(", ");
  caption.textContent = `AER by decoder layer: ${like.name}${kind ? ` (${kind})` : ""}`;
  picture.setAttribute("viewBox", `0 0 ${CHART.width} ${CHART.height}`);
  picture.setAttribute("aria-label", caption.textContent);
  const most = Math.max(...shown.map((system) => system.aer_high ?? system.aer));
  const x = (layer) =>
    CHART.left + ((layers.indexOf(layer) + 0.5) / layers.length) * (CHART.width - CHART.left - CHART.right);
  const y = (aer) => CHART.height - CHART.bottom - (aer / most) * (CHART.height - CHART.top - CHART.bottom);
  picture.replaceChildren(...axes(layers, most, x, y), ...curves(shown, chosen, x, y, pick));
}

function axes(layers, most, x, y) {
  const step = most > 0.5 ? 0.2 : most > 0.2 ? 0.1 : 0.05;
  const ticks = Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, k) => k * step);
  const right = CHART.width - CHART.right;
  return [
    ...ticks.map((aer) => svg("path", { class: "rule", d: `M${CHART.left} ${y(aer)}H${right}` })),
    ...ticks.map((aer) => svg("text", { class: "tick end", x: CHART.left - 6, y: y(aer) }, (100 * aer).toFixed(0))),
    ...layers.map((layer) => svg("text", { class: "tick middle", x: x(layer), y: CHART.height - 22 }, `${layer}`)),
    svg("text", { class: "tick middle", x: (CHART.left + right) / 2, y: CHART.height - 7 }, "layer"),
  ];
}

function curves(shown, chosen, x, y, pick) {
  const lines = Map.groupBy(shown, (system) => lineName(system));
  return [...lines].flatMap(([name, systems], number) => {
    systems.sort((a, b) => a.layer - b.layer);
    const path = systems.map((system) => `${x(system.layer)} ${y(system.aer)}`).join("L");
    const last = systems.at(-1);
    const group = svg("g", { class: `curve curve-${number % 4}` }, svg("path", { class: "line", d: `M${path}` }));
    for (const system of systems) group.append(point(system, chosen, x(system.layer), y, pick));
    group.append(svg("text", { class: "tick", x: x(last.layer) + 12, y: y(last.aer) }, name));
    return [group];
  });
}

function lineName(system) {
  const heads = system.heads === null || system.heads === "mean" ? "" : ` head ${system.heads}`;
  return `${(system.position ?? "").toUpperCase()}${heads}`;
}

function point(system, chosen, x, y, pick) {
  const group = svg("g", { class: system === chosen ? "point chosen" : "point" });
  const interval = system.aer_low === null ? "" : ` (${percent(system.aer_low)} to ${percent(system.aer_high)})`;
  group.append(svg("title", {}, `${system.name} ${system.details}: ${percent(system.aer)}${interval}`));
  if (interval) group.append(svg("path", { class: "whisker", d: `M${x} ${y(system.aer_low)}V${y(system.aer_high)}` }));
  group.append(svg("circle", { cx: x, cy: y(system.aer), r: 4.5 }));
  if (system.links !== null) group.addEventListener("click", () => pick(data.systems.indexOf(system)));
  return group;
}
