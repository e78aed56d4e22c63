/* Section "Confusion matrix": a table of truth against prediction, shaded by the share of its row. */
((report) => {
  "use strict";

  const { h, format } = report;

  function matrix(model, mode) {
    const { matrix: counts, names } = model.confusion;
    const letters = counts.length > 8 ? 10 : 20;
    const sums = counts.map((row) => d3.sum(row));
    return h(
      "div",
      { class: "table-box", tabindex: "0", role: "region", "aria-label": "Confusion matrix" },
      h(
        "table",
        { class: `confusion${counts.length > 8 ? " dense" : ""}` },
        h("caption", { class: "visually-hidden" }, "Rows: true class. Columns: predicted class."),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("td", {}),
            h(
              "th",
              { scope: "colgroup", colspan: counts.length, class: "axis" },
              "Predicted class",
            ),
            h("td", {}),
          ),
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "True class"),
            names.map((text) =>
              h("th", { scope: "col", class: "numeric" }, report.name(text, letters)),
            ),
            h("th", { scope: "col", class: "numeric" }, "Rows"),
          ),
        ),
        h(
          "tbody",
          {},
          counts.map((row, i) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, report.name(names[i], 26)),
              row.map((n, j) => {
                const part = sums[i] ? n / sums[i] : 0;
                return h(
                  "td",
                  {
                    class: `numeric ${i === j ? "right" : "wrong"}`,
                    style: { "--share": part.toFixed(4) },
                    title: `${format.count(n)} rows of ${names[i]} predicted as ${names[j]}: ${format.share(part)}`,
                  },
                  mode === "share" ? format.share(part) : format.count(n),
                );
              }),
              h("td", { class: "numeric muted" }, format.count(sums[i])),
            ),
          ),
        ),
      ),
    );
  }

  /** The most frequent mistakes as sentences. */
  function mistakes(model) {
    const { matrix: counts, names } = model.confusion;
    const cells = counts.flatMap((row, i) =>
      row.map((n, j) => ({ i, j, n, share: n / (d3.sum(row) || 1) })),
    );
    const top = cells
      .filter((cell) => cell.i !== cell.j && cell.n > 0)
      .sort((a, b) => b.n - a.n)
      .slice(0, 3);
    const label = (k) => report.name(names[k], 30);
    return top.length
      ? h(
          "p",
          { class: "note" },
          "Most frequent mistakes: ",
          top.flatMap((cell, k) => [
            k ? "; " : "",
            label(cell.i),
            " predicted as ",
            label(cell.j),
            ` ${format.plural(cell.n, "time")} (${format.share(cell.share)})`,
          ]),
          ".",
        )
      : null;
  }

  report.sections.add({
    id: "confusion",
    title: "Confusion matrix",
    perModel: true,
    applies: () => report.models.some((model) => model.confusion),
    lede: "Rows are true classes, columns are predicted classes. Shading: share of the row.",
    build(body, model) {
      if (!model.confusion) return;
      const container = h("div", { class: "table-whole" });
      const show = (mode) => report.replace(container, matrix(model, mode));
      show("count");
      const note = mistakes(model);
      body.append(
        report.choice(
          "Show",
          [
            ["count", "rows"],
            ["share", "share of the true class"],
          ],
          "count",
          show,
        ),
        container,
        note || "",
      );
    },
  });
})(window.arboostReport);
