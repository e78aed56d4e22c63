/* Pointer and keys in the SHAP summary: ring, tip, spoken text, the row of a dot. */
((report) => {
  "use strict";

  const { h, s, format } = report;

  /** Pointer and keys: the nearest dot gets the ring and the tip; click or Enter opens its row. */
  function handleDotEvents(svg, dots, { width, features, pick }) {
    const tree = d3.quadtree(
      dots,
      (dot) => dot.x,
      (dot) => dot.y,
    );
    const ring = s("circle", { class: "ring", r: 5.5, visibility: "hidden" });
    const tip = s(
      "g",
      { class: "swarm-tip", visibility: "hidden", "aria-hidden": "true" },
      s("rect", { rx: 5 }),
      s("text"),
    );
    svg.append(ring, tip);
    let current = null;

    function show(dot) {
      current = dot;
      for (const part of [ring, tip]) part.setAttribute("visibility", dot ? "visible" : "hidden");
      if (!dot) return;
      ring.setAttribute("cx", dot.x);
      ring.setAttribute("cy", dot.y);
      const texts = words(dot, features[dot.f]);
      const text = tip.lastChild;
      report.replace(
        text,
        texts.map((line, k) => s("tspan", { x: 8, y: 17 + 16 * k }, line)),
      );
      const wide = Math.max(...texts.map((line) => line.length)) * 6.6 + 16;
      const shape = tip.firstChild;
      shape.setAttribute("width", wide);
      shape.setAttribute("height", 10 + 16 * texts.length);
      const at = Math.max(2, Math.min(dot.x + 10, width - wide - 2));
      const above = dot.y > 90 ? dot.y - 20 - 16 * texts.length : dot.y + 12;
      tip.setAttribute("transform", `translate(${at},${above})`);
    }

    const nearest = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = width / box.width;
      return tree.find((event.clientX - box.left) * scale, (event.clientY - box.top) * scale, 14);
    };
    svg.addEventListener("pointermove", (event) => show(nearest(event) || null));
    svg.addEventListener("pointerleave", () => document.activeElement !== svg && show(null));
    svg.addEventListener("click", (event) => {
      const dot = nearest(event);
      if (dot) pick(dot.row);
    });

    const lines = d3
      .groups(dots, (dot) => dot.f)
      .map(([, line]) => line.sort((a, b) => a.value - b.value));
    const first = () => lines[0].find((dot) => dot.row === report.state.get("row")) || lines[0][0];
    svg.addEventListener("focus", () => {
      if (!current && svg.matches(":focus-visible")) say(first());
    });
    svg.addEventListener("blur", () => show(null));
    const spoken = h("p", { class: "visually-hidden", "aria-live": "polite" });
    svg.spoken = spoken;
    function say(dot) {
      show(dot);
      spoken.textContent = words(dot, features[dot.f]).join(", ");
    }
    svg.addEventListener("keydown", (event) => {
      if (!lines.length) return;
      const dot = current || first();
      const line = lines[dot.f];
      const k = line.indexOf(dot);
      const sameRow = (f) => lines[f].find((item) => item.row === dot.row) || lines[f][0];
      const moves = {
        ArrowRight: () => line[Math.min(line.length - 1, k + 1)],
        ArrowLeft: () => line[Math.max(0, k - 1)],
        ArrowDown: () => sameRow(Math.min(lines.length - 1, dot.f + 1)),
        ArrowUp: () => sameRow(Math.max(0, dot.f - 1)),
        Home: () => line[0],
        End: () => line.at(-1),
      };
      if (event.key === "Enter" || event.key === " ") pick(dot.row);
      else if (event.key === "Escape") show(null);
      else if (moves[event.key]) say(moves[event.key]());
      else return;
      event.preventDefault();
    });

    svg.mark = (row) =>
      report.replace(
        svg.querySelector(".chosen"),
        dots
          .filter((dot) => dot.row === row)
          .map((dot) => s("circle", { class: "chosen-dot", cx: dot.x, cy: dot.y, r: 4.5 })),
      );
    svg.mark(report.state.get("row"));
  }

  function words(dot, feature) {
    const { rows } = report.payload;
    const kind = report.kindOf(feature);
    return [
      `row ${format.count(rows.index[dot.row])}`,
      `${format.short(feature, 24)} = ${format.short(format.cell((rows.columns[feature] || [])[dot.row], kind), 24)}`,
      `SHAP ${format.signed(dot.value)}`,
    ];
  }

  report.handleDotEvents = handleDotEvents;
})(window.arboostReport);
