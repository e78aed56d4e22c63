/* Sections "AdaBoost's error bound" and "Out-of-bag curve". */
((report) => {
  "use strict";

  const { h, format, charts } = report;

  function bound(theory) {
    const series = [
      ["training error", theory.train_error, "var(--c1)"],
      ["bound", theory.bound, "var(--c2)"],
      ["bound by the edges", theory.edge_bound || [], "var(--c3)"],
    ].filter(([, y]) => y.some((value) => !format.absent(value)));
    const rows = series.flatMap(([label, y]) =>
      charts
        .points(theory.rounds, y)
        .filter((point) => !format.absent(point.y))
        .map((point) => ({ ...point, label })),
    );
    return charts.chart({
      title: "Training error and its bound",
      label: `Training error ${format.number(theory.train_error.at(-1))} and its bound ${format.number(theory.bound.at(-1))} after ${format.count(theory.rounds.at(-1))} rounds`,
      height: 300,
      legend: series.map(([label, , colour], k) => [label, colour, k ? "dash" : "line"]),
      table: () => ({
        columns: ["round", ...series.map(([label]) => label)],
        rows: theory.rounds.map((round, k) => [round, ...series.map(([, y]) => y[k])]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: 300,
          x: { label: "rounds" },
          y: { label: "share of rows", zero: true, nice: true },
          marks: [
            charts.grid("y"),
            series.map(([label, , colour], k) =>
              Plot.line(
                rows.filter((row) => row.label === label),
                {
                  x: "x",
                  y: "y",
                  stroke: colour,
                  strokeWidth: 2,
                  strokeDasharray: k ? "5 4" : null,
                },
              ),
            ),
            charts.tip(
              rows,
              Plot.pointer({
                x: "x",
                y: "y",
                title: (d) => `${d.label}\nround ${format.count(d.x)}: ${format.number(d.y)}`,
              }),
            ),
          ],
        }),
    });
  }

  function margins({ margins: { x, cumulative } }) {
    const rows = charts.points(x, cumulative);
    const wrong = rows.filter((row) => row.x <= 0).at(-1);
    return charts.chart({
      title: "Margins",
      note: "Left of zero: misclassified rows. A larger margin is a more confident vote.",
      label: `Cumulative distribution of margins: ${format.share(wrong ? wrong.y : 0)} of the rows at or below zero`,
      height: 300,
      table: () => ({
        columns: ["margin", "share of rows at or below"],
        rows: rows.map((row) => [row.x, row.y]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: 300,
          x: {
            label: "margin",
            domain: [Math.min(-1, d3.min(x)), Math.max(1, d3.max(x))],
            ticks: 5,
          },
          y: { label: "share of rows at or below", domain: [0, 1], ticks: 5 },
          marks: [
            charts.grid("y", { ticks: 5 }),
            Plot.ruleX([0], { stroke: "var(--axis)", strokeDasharray: "3 3" }),
            Plot.line(rows, {
              x: "x",
              y: "y",
              stroke: "var(--c1)",
              strokeWidth: 2,
              curve: "step-after",
            }),
            charts.tip(
              rows,
              Plot.pointerX({
                x: "x",
                y: "y",
                title: (d) =>
                  `margin ${format.number(d.x)}\n${format.share(d.y)} of the rows at or below`,
              }),
            ),
          ],
        }),
    });
  }

  report.sections.add({
    id: "theory",
    title: "Error bound and margins",
    applies: () => report.models.some((model) => model.theory),
    lede: () => report.models.find((model) => model.theory).theory.note,
    build(body) {
      for (const model of report.models) {
        if (!model.theory) continue;
        if (report.models.length > 1) body.append(h("h3", {}, report.name(model.name, 60)));
        const parts = [
          model.theory.bound && model.theory.bound.length ? bound(model.theory) : null,
          model.theory.margins ? margins(model.theory) : null,
        ];
        body.append(h("div", { class: "pair" }, parts.filter(Boolean)));
      }
    },
  });

  report.sections.add({
    id: "forest",
    title: "Out-of-bag curve",
    applies: () => report.models.some((model) => model.forest && model.forest.oob),
    lede: () => report.models.find((model) => model.forest).forest.note,
    build(body) {
      const curves = report.models
        .map((model, index) => ({ model, index }))
        .filter(({ model }) => model.forest && model.forest.oob)
        .map(({ model, index }) => ({
          label: model.name,
          colour: report.colour(index),
          metric: model.forest.oob.metric,
          points: charts
            .points(model.forest.oob.x, model.forest.oob.y)
            .filter((point) => !format.absent(point.y)),
        }));
      const { metric } = curves[0];
      body.append(
        charts.chart({
          title: `Out-of-bag ${metric} by number of trees`,
          wide: true,
          label: `Out-of-bag ${metric}: ${curves.map((curve) => `${curves.length > 1 ? `${curve.label} ` : ""}${format.number(curve.points.at(-1).y)} with ${format.count(curve.points.at(-1).x)} trees`).join("; ")}`,
          height: 280,
          legend:
            curves.length > 1 ? curves.map((curve) => [curve.label, curve.colour, "line"]) : null,
          table: () => ({
            columns: ["model", "trees", metric],
            rows: curves.flatMap((curve) =>
              curve.points.map((point) => [curve.label, point.x, point.y]),
            ),
          }),
          draw: (width) =>
            charts.plot(width, {
              height: 280,
              marginLeft: 56,
              x: { label: "trees" },
              y: { label: metric, nice: true, tickFormat: charts.tick },
              marks: [
                charts.grid("y"),
                curves.map((curve) =>
                  Plot.line(curve.points, { x: "x", y: "y", stroke: curve.colour, strokeWidth: 2 }),
                ),
                charts.tip(
                  curves.flatMap((curve) => curve.points),
                  Plot.pointerX({
                    x: "x",
                    y: "y",
                    title: (d) => `${format.count(d.x)} trees: ${format.number(d.y)}`,
                  }),
                ),
              ],
            }),
        }),
      );
    },
  });
})(window.arboostReport);
