// The table of systems: sorting, how much of it is shown, and choosing a system.

const TOP = 12;
const table = document.getElementById("systems");
const which = document.getElementById("which");

function startTable(pick) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => sortTable(heads, column)));
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row.querySelector("button")) pick(Number(row.dataset.system));
  });
  which?.addEventListener("change", showRows);
  showRows();
}

/** Sort by a column, and the other way round when it is sorted already; empty cells stay last. */
function sortTable(heads, column) {
  const down = heads[column].ariaSort === "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].ariaSort = down ? "descending" : "ascending";
  const rows = [...table.tBodies[0].rows];
  const value = (row) => row.cells[column].dataset.value;
  rows.sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === "" || right === "") return (left === "") - (right === "");
    const order = Number.isNaN(left - right) ? left.localeCompare(right) : left - right;
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows);
  showRows();
}

function showRows() {
  const seen = new Set();
  [...table.tBodies[0].rows].forEach((row, rank) => {
    const { name } = data.systems[row.dataset.system];
    const chosen = row.classList.contains("chosen");
    const wanted = { top: rank < TOP, each: !seen.has(name) }[which?.value] ?? true;
    row.hidden = !wanted && !chosen;
    seen.add(name);
  });
}

function markRow(number) {
  for (const row of table.tBodies[0].rows) row.classList.toggle("chosen", Number(row.dataset.system) === number);
  showRows();
}
