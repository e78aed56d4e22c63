/* Figures: drawn when they come into view, all of them for print, at the width that they have on
   paper, and again when their width changes. */
((report) => {
  "use strict";

  const { h } = report;
  const waiting = new Set();
  const drawn = new WeakMap(); // plot box -> figure

  const near = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (entry.isIntersecting && waiting.has(entry.target)) entry.target.draw();
      }
    },
    { rootMargin: "240px 0px" },
  );

  let printing = false; // figures keep the width of the paper until the screen has them again

  const sized = new ResizeObserver((entries) => {
    if (printing) return;
    for (const entry of entries) {
      const width = Math.floor(entry.contentRect.width);
      const figure = drawn.get(entry.target);
      if (figure && width > 0 && Math.abs(width - figure.width) > 2) {
        window.requestAnimationFrame(() => figure.draw());
      }
    }
  });

  function drawAll() {
    for (const figure of [...waiting]) {
      if (figure.isConnected) figure.draw();
      else waiting.delete(figure); // replaced before it came into view
    }
  }

  const PAPER = "186mm"; // A4 less the margins in media.css

  /** Draw all figures as wide as they are on paper: a browser lays it out after this event. */
  function drawForPaper() {
    const rules = Array.from(document.styleSheets)
      .flatMap((sheet) => Array.from(sheet.cssRules))
      .filter((rule) => rule.media && rule.media.mediaText === "print");
    const { style } = document.body;
    printing = true;
    rules.forEach((rule) => (rule.media.mediaText = "all"));
    style.width = PAPER;
    document.querySelectorAll("figure.chart").forEach((figure) => figure.draw());
    style.removeProperty("width");
    rules.forEach((rule) => (rule.media.mediaText = "print"));
  }

  function drawForScreen() {
    printing = false;
    document.querySelectorAll("figure.chart").forEach((figure) => figure.redraw());
  }

  window.addEventListener("beforeprint", drawForPaper);
  window.addEventListener("afterprint", drawForScreen);
  window.matchMedia("print").addEventListener("change", (event) => event.matches && drawAll());

  const legend = (items) =>
    h(
      "ul",
      { class: "legend" },
      items.map(([label, colour, shape]) =>
        h(
          "li",
          {},
          h("span", {
            class: `key ${shape || "line"}`,
            style: { "--key": colour },
            "aria-hidden": "true",
          }),
          report.name(label, 64),
        ),
      ),
    );

  /** The disclosure with the numbers of a chart; the table is made when it is first opened. */
  function asTable(title, table) {
    const box = h("details", { class: "as-table" }, h("summary", {}, "Show as table"));
    const caption = title instanceof Node ? title.title || title.textContent : title;
    box.addEventListener("toggle", () => {
      if (box.open && box.children.length === 1) box.append(report.tables.plain(caption, table()));
    });
    return box;
  }

  /**
   * A figure with title, note, chart, legend and the disclosure of its numbers.
   *
   * options: title, note, label (text alternative), draw(width) -> element, height (before drawing),
   * legend: [[label, colour, shape]], table() -> { columns, rows }, interactive, level, wide
   */
  function chart(options) {
    const box = h("div", {
      class: "plot-box",
      role: options.interactive ? null : "img",
      style: { "min-height": `${options.height || 260}px` },
    });
    const figure = h(
      "figure",
      { class: `chart${options.wide ? " wide" : ""}`, id: options.id },
      h(
        "figcaption",
        {},
        options.title && h(`h${options.level || 3}`, {}, options.title),
        options.note && h("p", { class: "note" }, options.note),
      ),
      options.controls,
      options.legend && legend(options.legend),
      box,
      options.table && asTable(options.title, options.table),
    );
    figure.draw = () => {
      // A hidden figure has no width: it keeps its place in the queue.
      const width = Math.floor(box.clientWidth);
      if (width === 0) return;
      waiting.delete(figure);
      near.unobserve(figure);
      const first = !drawn.has(box);
      figure.width = width;
      drawn.set(box, figure);
      try {
        report.replace(box, options.draw(width));
      } catch (error) {
        // One chart with values that it cannot draw must not take the others with it.
        console.error(error);
        report.replace(box, h("p", { class: "note" }, "This chart could not be drawn."));
      }
      box.style.minHeight = "";
      if (!options.interactive) {
        box.setAttribute(
          "aria-label",
          typeof options.label === "function" ? options.label() : options.label,
        );
      }
      if (first) sized.observe(box);
    };
    figure.redraw = () => {
      if (drawn.has(box)) figure.draw();
    };
    waiting.add(figure);
    near.observe(figure);
    return figure;
  }

  /** A plot in the page's style. `options` are those of Plot.plot. */
  function plot(width, options) {
    return Plot.plot({
      width,
      marginTop: 24,
      marginRight: 16,
      marginBottom: 38,
      marginLeft: 48,
      className: "plot",
      ...options,
      x: { labelArrow: "none", labelAnchor: "center", ...options.x },
      y: { labelArrow: "none", ...options.y },
    });
  }

  const grid = (axis, options = {}) =>
    Plot[axis === "x" ? "gridX" : "gridY"]({ stroke: "var(--grid)", strokeOpacity: 1, ...options });

  /** The tip of the point that is nearest to the pointer; `options` come from Plot.pointer. */
  const tip = (data, options) =>
    Plot.tip(data, {
      stroke: "var(--axis)",
      lineHeight: 1.35,
      lineWidth: 26,
      textPadding: 9,
      ...options,
    });

  /** A number at an axis: short, so that it has room beside the chart. */
  const tick = (value) =>
    Math.abs(value) >= 1e4 ? d3.format("~s")(value) : report.format.number(value);

  /** Pairs of two columns as objects { x, y }. */
  const points = (x, y) => Array.from(x, (value, index) => ({ x: value, y: y[index] }));

  /** The line on which both coordinates are equal. */
  const diagonal = (low = 0, high = 1) =>
    Plot.line(
      [
        [low, low],
        [high, high],
      ],
      { stroke: "var(--axis)", strokeDasharray: "3 4" },
    );

  /** The height of a chart that is square where there is room. */
  const square = (width, most = 340) => Math.min(width, most);

  /** Room for labels at the left of a chart: as wide as the longest of them, within limits. */
  const labelRoom = (labels, width) =>
    Math.min(
      Math.max(40, 14 + 6.7 * Math.max(0, ...labels.map((text) => Array.from(text).length))),
      width * 0.42,
    );

  report.charts = {
    chart,
    plot,
    grid,
    tip,
    points,
    diagonal,
    labelRoom,
    square,
    legend,
    tick,
    drawAll,
  };
})(window.arboostReport);
