// Draws the plots and sorts the tables. The root element has `data-ready`, the milliseconds since the
// page was opened, as soon as all plots answer.
(() => {
  "use strict";
  const specs = JSON.parse(document.getElementById("charts").textContent);

  const colour = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function config() {
    const [ink, soft, rule, accent] = ["ink", "soft", "rule", "accent"].map(colour);
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: null },
      axis: {
        labelColor: soft, titleColor: soft, titleFontWeight: "normal", labelFontSize: 12,
        titleFontSize: 12, gridColor: rule, gridOpacity: 0.6, domainColor: rule, tickColor: rule, tickCount: 6,
        labelOverlap: "greedy", labelSeparation: 8,
      },
      axisY: { domain: false, ticks: false, labelPadding: 6 },
      legend: { labelColor: soft, titleColor: soft, titleFontWeight: "normal" },
      range: {
        category: [accent, colour("other")],
        ramp: [colour("accent-soft"), accent],
      },
      bar: { color: accent, cornerRadiusEnd: 2 },
      line: { color: accent, strokeWidth: 2 },
      point: { color: accent },
      rule: { color: ink },
      text: { color: ink },
    };
  }

  function draw() {
    const options = {
      actions: { export: true, source: false, compiled: false, editor: false },
      ast: true, // expressions are interpreted: the page allows no evaluation
      config: config(),
      mode: "vega-lite",
      renderer: "svg",
    };
    return Promise.all(
      Object.entries(specs).map(([name, spec]) => vegaEmbed(`#chart-${name}`, spec, options)),
    );
  }

  function valueOf(row, column) {
    const cell = row.cells[column];
    if (cell.dataset.value === undefined) return cell.textContent.trim();
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  }

  function compare(first, second) {
    if (first === null || second === null) return (first === null) - (second === null);
    return typeof first === "number" ? first - second : first.localeCompare(second);
  }

  function sort(table, header, column) {
    const direction = header.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
    for (const each of header.parentNode.cells) each.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row, column), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? 1 : sign) * compare(a, b));
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(table, header, column));
      header.append(button);
    });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw().then(() => {
    document.documentElement.dataset.ready = String(performance.now());
  });
})();
