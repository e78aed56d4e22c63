/* Sections "Residuals" and "Interval coverage" of regression models. */
((report) => {
  "use strict";

  const { h, format, charts } = report;
  const target = () => format.short(report.payload.target || "target", 24);

  /** Ticks of long numbers take less room. */
  const axis = (label) => ({
    label,
    tickFormat: charts.tick,
    ticks: 5,
  });

  function scatter({ points }) {
    const rows = charts
      .points(points.truth, points.predicted)
      .map(({ x, y }) => ({ truth: x, predicted: y }));
    const [low, high] = d3.extent([...points.truth, ...points.predicted]);
    return charts.chart({
      title: "Prediction against truth",
      note: `${format.plural(rows.length, "row")}; on the diagonal, predictions are exact.`,
      label: `Scatter plot of ${format.count(rows.length)} predictions against true values, correlation ${format.number(correlation(points.truth, points.predicted))}`,
      height: 340,
      table: () => ({
        columns: ["truth", "predicted"],
        rows: rows.map((row) => [row.truth, row.predicted]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: charts.square(width, 360),
          marginLeft: 56,
          x: { ...axis(`true ${target()}`), domain: [low, high], nice: true },
          y: { ...axis(`predicted ${target()}`), domain: [low, high], nice: true },
          marks: [
            charts.grid("x", { ticks: 5 }),
            charts.grid("y", { ticks: 5 }),
            charts.diagonal(low, high),
            Plot.dot(rows, {
              x: "truth",
              y: "predicted",
              r: 2.5,
              fill: "var(--c1)",
              fillOpacity: rows.length > 600 ? 0.35 : 0.55,
            }),
            charts.tip(
              rows,
              Plot.pointer({
                x: "truth",
                y: "predicted",
                title: (d) =>
                  `truth ${format.number(d.truth)}\npredicted ${format.number(d.predicted)}`,
              }),
            ),
          ],
        }),
    });
  }

  function correlation(a, b) {
    const [ma, mb] = [d3.mean(a), d3.mean(b)];
    let [ab, aa, bb] = [0, 0, 0];
    a.forEach((value, k) => {
      ab += (value - ma) * (b[k] - mb);
      aa += (value - ma) ** 2;
      bb += (b[k] - mb) ** 2;
    });
    return aa && bb ? ab / Math.sqrt(aa * bb) : null;
  }

  function residualHistogram({ residuals }) {
    const { edges, counts } = residuals;
    const rows = counts.map((n, k) => ({ x1: edges[k], x2: edges[k + 1], n }));
    const top = d3.greatest(rows, (row) => row.n);
    return charts.chart({
      title: "Residuals",
      note: "True value less prediction.",
      label: `Histogram of residuals from ${format.number(edges[0])} to ${format.number(edges.at(-1))}, most of them from ${format.number(top.x1)} to ${format.number(top.x2)}`,
      height: 340,
      table: () => ({
        columns: ["from", "to", "rows"],
        rows: rows.map((row) => [row.x1, row.x2, row.n]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: charts.square(width, 360),
          marginLeft: 52,
          x: axis("residual"),
          y: { label: "rows", tickFormat: format.count, ticks: 5 },
          marks: [
            charts.grid("y", { ticks: 5 }),
            Plot.rectY(rows, {
              x1: "x1",
              x2: "x2",
              y: "n",
              inset: 0.5,
              fill: "var(--c1)",
              title: (d) =>
                `${format.number(d.x1)} to ${format.number(d.x2)}: ${format.plural(d.n, "row")}`,
            }),
            Plot.ruleX([0], { stroke: "var(--ink)", strokeDasharray: "3 3" }),
            Plot.ruleY([0], { stroke: "var(--axis)" }),
          ],
        }),
    });
  }

  function byPrediction({ by_prediction: bins }) {
    return charts.chart({
      title: "Mean residual by prediction",
      note: "Groups of equal size; bars are 95% confidence intervals. Away from zero, the model is wrong on average there.",
      label: `Mean residual in ${bins.length} groups of predictions: from ${format.number(d3.min(bins, (bin) => bin.mean_residual))} to ${format.number(d3.max(bins, (bin) => bin.mean_residual))}`,
      height: 280,
      table: () => ({
        columns: ["mean prediction", "mean residual", "low", "high", "rows"],
        rows: bins.map((bin) => [bin.predicted, bin.mean_residual, bin.low, bin.high, bin.n]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: 280,
          marginLeft: 56,
          x: axis(`predicted ${target()}`),
          y: { ...axis("mean residual"), nice: true },
          marks: [
            charts.grid("y", { ticks: 5 }),
            Plot.ruleY([0], { stroke: "var(--axis)" }),
            Plot.ruleX(bins, {
              x: "predicted",
              y1: "low",
              y2: "high",
              stroke: "var(--c1)",
              strokeWidth: 2.5,
              strokeOpacity: 0.5,
            }),
            Plot.dot(bins, {
              x: "predicted",
              y: "mean_residual",
              r: 4,
              fill: "var(--c1)",
              stroke: "var(--card)",
            }),
            charts.tip(
              bins,
              Plot.pointer({
                x: "predicted",
                y: "mean_residual",
                title: (d) =>
                  `predicted ${format.number(d.predicted)}\nmean residual ${format.number(d.mean_residual)} (${format.number(d.low)} to ${format.number(d.high)})\n${format.plural(d.n, "row")}`,
              }),
            ),
          ],
        }),
    });
  }

  function quantiles({ quantiles: rows }) {
    return charts.chart({
      title: "Quantiles of the residuals",
      note: "The share of the rows whose residual is at most the value.",
      label: `Quantiles of the residuals: ${rows.map((row) => `${format.share(row.probability)} ${format.number(row.residual)}`).join(", ")}`,
      height: 280,
      table: () => ({
        columns: ["probability", "residual"],
        rows: rows.map((row) => [row.probability, row.residual]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: 280,
          marginLeft: 56,
          x: {
            label: "share of rows",
            domain: [0, 1],
            tickFormat: (value) => format.share(value),
            ticks: 5,
          },
          y: { ...axis("residual"), nice: true },
          marks: [
            charts.grid("y", { ticks: 5 }),
            Plot.ruleY([0], { stroke: "var(--axis)" }),
            Plot.line(rows, {
              x: "probability",
              y: "residual",
              stroke: "var(--c1)",
              strokeWidth: 1.5,
            }),
            Plot.dot(rows, {
              x: "probability",
              y: "residual",
              r: 3.5,
              fill: "var(--c1)",
              stroke: "var(--card)",
            }),
            charts.tip(
              rows,
              Plot.pointer({
                x: "probability",
                y: "residual",
                title: (d) =>
                  `${format.share(d.probability)} of the rows: at most ${format.number(d.residual)}`,
              }),
            ),
          ],
        }),
    });
  }

  report.sections.add({
    id: "regression",
    title: "Residuals",
    perModel: true,
    applies: () => report.models.some((model) => model.regression),
    build(body, model) {
      const parts = model.regression;
      if (!parts) return;
      body.append(h("div", { class: "pair" }, scatter(parts), residualHistogram(parts)));
      const lower = [
        parts.by_prediction && parts.by_prediction.length ? byPrediction(parts) : null,
        parts.quantiles && parts.quantiles.length ? quantiles(parts) : null,
      ].filter(Boolean);
      if (lower.length) body.append(h("div", { class: "pair" }, lower));
    },
  });

  report.sections.add({
    id: "coverage",
    title: "Interval coverage",
    perModel: true,
    applies: () => report.models.some((model) => model.regression && model.regression.coverage),
    lede: "Share of true values inside the prediction intervals, next to their nominal coverage.",
    build(body, model) {
      const rows = (model.regression || {}).coverage;
      if (!rows) return;
      body.append(
        h(
          "div",
          { class: "pair" },
          charts.chart({
            title: "Nominal and observed coverage",
            note: "Above the diagonal, intervals are too wide; below it, they are too narrow.",
            label: `Interval coverage: ${rows.map((row) => `${format.share(row.nominal)} nominal, ${format.share(row.observed)} observed`).join("; ")}`,
            height: 320,
            draw: (width) =>
              charts.plot(width, {
                height: charts.square(width),
                x: { label: "nominal", domain: [0, 1], ticks: 5, tickFormat: format.share },
                y: { label: "observed", domain: [0, 1], ticks: 5, tickFormat: format.share },
                marks: [
                  charts.grid("x", { ticks: 5 }),
                  charts.grid("y", { ticks: 5 }),
                  charts.diagonal(),
                  Plot.line(rows, { x: "nominal", y: "observed", stroke: "var(--c1)" }),
                  Plot.dot(rows, {
                    x: "nominal",
                    y: "observed",
                    r: 4.5,
                    fill: "var(--c1)",
                    stroke: "var(--card)",
                  }),
                  charts.tip(
                    rows,
                    Plot.pointer({
                      x: "nominal",
                      y: "observed",
                      title: (d) =>
                        `nominal ${format.share(d.nominal)}\nobserved ${format.share(d.observed)}\nmean width ${format.number(d.width)}`,
                    }),
                  ),
                ],
              }),
          }),
          report.tables.table(
            [
              {
                label: "Nominal",
                head: true,
                value: (row) => row.nominal,
                cell: (row) => format.share(row.nominal),
              },
              {
                label: "Observed",
                numeric: true,
                value: (row) => row.observed,
                cell: (row) => format.share(row.observed),
              },
              {
                label: "Mean width",
                numeric: true,
                value: (row) => row.width,
                cell: (row) => format.number(row.width),
              },
              {
                label: "Rows",
                numeric: true,
                value: (row) => row.n,
                cell: (row) => format.count(row.n),
              },
            ],
            rows,
            { caption: "Coverage and width of prediction intervals" },
          ),
        ),
      );
    },
  });
})(window.arboostReport);
