/* Sections "Ranking" (ROC and precision-recall curves) and "Calibration". */
((report) => {
  "use strict";

  const { h, format, charts } = report;
  const SHARE = { domain: [0, 1], ticks: 5 };

  /** The area below a curve by the trapezoid rule; x may rise or fall. */
  function area(x, y) {
    let sum = 0;
    for (let k = 1; k < x.length; k += 1) sum += ((x[k] - x[k - 1]) * (y[k] + y[k - 1])) / 2;
    return Math.abs(sum);
  }

  /** Curves in a unit square. curves: [{ label, colour, points, text }] */
  function square(options) {
    const { curves, x, y } = options;
    const all = curves.flatMap((curve) =>
      curve.points.map((point) => ({ ...point, label: curve.label })),
    );
    return charts.chart({
      title: options.title,
      note: options.note,
      label: `${options.title}: ${curves.map((curve) => curve.text).join("; ")}`,
      height: 320,
      legend:
        curves.length > 1
          ? curves.map((curve) => [
              `${curve.label} (${curve.value})`,
              curve.colour,
              curve.dashed ? "dash" : "line",
            ])
          : null,
      table: () => ({
        columns: ["curve", x, y],
        rows: all.map((point) => [point.label, point.x, point.y]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: charts.square(width),
          x: { label: x, ...SHARE },
          y: { label: y, ...SHARE },
          marks: [
            charts.grid("x", { ticks: 5 }),
            charts.grid("y", { ticks: 5 }),
            options.reference,
            curves.map((curve) =>
              Plot.line(curve.points, {
                x: "x",
                y: "y",
                stroke: curve.colour,
                strokeWidth: 2.25,
                strokeDasharray: curve.dashed ? "5 4" : null,
              }),
            ),
            charts.tip(
              all,
              Plot.pointer({
                x: "x",
                y: "y",
                title: (d) =>
                  `${curves.length > 1 ? `${format.short(d.label, 40)}\n` : ""}${x} ${format.number(d.x)}\n${y} ${format.number(d.y)}`,
              }),
            ),
          ],
        }),
    });
  }

  /** The value of a model's score whose name matches, or else the area below the curve. */
  function named(model, pattern, x, y) {
    const reported = (model.scores || []).find((score) => pattern.test(score.name));
    return format.score(reported ? reported.value : area(x, y));
  }

  /** A curve for each model that has it: `part` gives its two columns. */
  function modelCurves(part, pattern, word) {
    const several = report.models.length > 1;
    return report.models.flatMap((model, m) => {
      const columns = part(model.binary || {});
      if (!columns) return [];
      const value = named(model, pattern, ...columns);
      const text = `${several ? `${model.name}, ` : ""}${word} ${value}`;
      const points = charts.points(...columns);
      return [{ label: model.name, colour: report.colour(m), points, value, text }];
    });
  }

  function rocChart() {
    const curves = modelCurves(({ roc }) => roc && [roc.fpr, roc.tpr], /^ROC AUC$/i, "area");
    if (!curves.length) return null;
    return square({
      title: "ROC curve",
      note: curves.length > 1 ? null : `Area below the curve: ${curves[0].value}.`,
      curves,
      x: "false positive rate",
      y: "true positive rate",
      reference: charts.diagonal(),
    });
  }

  function prChart() {
    const word = "average precision";
    const curves = modelCurves(
      ({ pr }) => pr && [pr.recall, pr.precision],
      /^average precision$/i,
      word,
    );
    if (!curves.length) return null;
    const { prevalence } = report.models.find((model) => (model.binary || {}).pr).binary.pr;
    return square({
      title: "Precision-recall curve",
      note: `${curves.length > 1 ? "" : `Average precision: ${curves[0].value}. `}Dashed: ${format.share(prevalence)}, the share of positive rows.`,
      curves,
      x: "recall",
      y: "precision",
      reference: Plot.ruleY([prevalence], { stroke: "var(--axis)", strokeDasharray: "3 4" }),
    });
  }

  function classRocChart(model) {
    const curves = model.multiclass.roc.map((curve, index) => ({
      label: curve.class,
      colour: report.colour(index),
      dashed: index >= report.COLOURS,
      points: charts.points(curve.fpr, curve.tpr),
      value: format.score(curve.auc),
      text: `${curve.class}, area ${format.score(curve.auc)}`,
    }));
    return square({
      title: "ROC curve of each class against the others",
      curves,
      x: "false positive rate",
      y: "true positive rate",
      reference: charts.diagonal(),
    });
  }

  const hasRoc = ({ binary, multiclass }) =>
    Boolean((binary && binary.roc) || (multiclass && multiclass.roc));

  report.sections.add({
    id: "ranking",
    title: "Ranking",
    perModel: report.models.some((model) => model.multiclass),
    applies: () => report.models.some(hasRoc),
    lede: () =>
      report.payload.task === "binary"
        ? `How well scores separate ${format.short(report.payload.classes[1], 30)}, the positive class, from ${format.short(report.payload.classes[0], 30)}.`
        : "How well the scores of each class separate its rows from all others.",
    build(body, model) {
      if (report.payload.task === "binary")
        body.append(h("div", { class: "pair" }, [rocChart(), prChart()]));
      else if (hasRoc(model)) body.append(h("div", { class: "solo" }, classRocChart(model)));
    },
  });

  const calibrationOf = (model) => (model.binary || model.multiclass || {}).calibration;

  function reliability(entries) {
    const rows = entries.flatMap((entry) =>
      entry.bins.map((bin) => ({ ...bin, label: entry.label })),
    );
    const worst = (entry) =>
      Math.max(...entry.bins.map((bin) => Math.abs(bin.predicted - bin.observed)));
    return charts.chart({
      title: "Predicted probability and observed share",
      note: "On the diagonal, predictions are right on average. Vertical bars: 95% confidence intervals.",
      label: `Calibration: ${entries.map((entry) => `${entries.length > 1 ? `${entry.label}, ` : ""}largest distance between predicted and observed ${format.number(worst(entry))}`).join("; ")}`,
      height: 320,
      legend:
        entries.length > 1 ? entries.map((entry) => [entry.label, entry.colour, "dot"]) : null,
      table: () => ({
        columns:
          entries.length > 1
            ? ["model", "predicted", "observed", "low", "high", "rows"]
            : ["predicted", "observed", "low", "high", "rows"],
        rows: rows.map((row) => [
          ...(entries.length > 1 ? [row.label] : []),
          row.predicted,
          row.observed,
          row.low,
          row.high,
          row.n,
        ]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: charts.square(width),
          x: { label: "mean predicted probability", ...SHARE },
          y: { label: "observed share", ...SHARE },
          marks: [
            charts.grid("x", { ticks: 5 }),
            charts.grid("y", { ticks: 5 }),
            charts.diagonal(),
            entries.map((entry) => [
              Plot.ruleX(entry.bins, {
                x: "predicted",
                y1: "low",
                y2: "high",
                stroke: entry.colour,
                strokeWidth: 2,
                strokeOpacity: 0.55,
              }),
              Plot.line(entry.bins, {
                x: "predicted",
                y: "observed",
                stroke: entry.colour,
                strokeWidth: 1.5,
              }),
              Plot.dot(entry.bins, {
                x: "predicted",
                y: "observed",
                fill: entry.colour,
                r: 4,
                stroke: "var(--card)",
              }),
            ]),
            charts.tip(
              rows,
              Plot.pointer({
                x: "predicted",
                y: "observed",
                title: (d) =>
                  `${entries.length > 1 ? `${format.short(d.label, 40)}\n` : ""}predicted ${format.number(d.predicted)}\nobserved ${format.number(d.observed)} (${format.number(d.low)} to ${format.number(d.high)})\n${format.plural(d.n, "row")}`,
              }),
            ),
          ],
        }),
    });
  }

  /** Rows by predicted probability: one picture for each true class. */
  function histogram(model, index) {
    const { edges, positive, negative } = model.binary.histogram;
    const bins = (counts, side) =>
      counts.map((n, k) => ({ x1: edges[k], x2: edges[k + 1], n, side }));
    const [no, yes] = report.payload.classes;
    const rows = [...bins(positive, yes), ...bins(negative, no)];
    return charts.chart({
      title:
        report.models.length > 1
          ? `Predictions of ${format.short(model.name, 36)}`
          : "Predictions of each class",
      note: "Rows by predicted probability; the upper bars are the positive class.",
      label: `Histogram of predicted probabilities: ${format.count(d3.sum(positive))} rows of ${yes} above, ${format.count(d3.sum(negative))} rows of ${no} below`,
      height: 320,
      legend: [
        [yes, "var(--c1)", "box"],
        [no, "var(--c2)", "box"],
      ],
      table: () => ({
        columns: ["from", "to", `rows of ${yes}`, `rows of ${no}`],
        rows: positive.map((n, k) => [edges[k], edges[k + 1], n, negative[k]]),
      }),
      draw: (width) =>
        charts.plot(width, {
          height: charts.square(width),
          marginLeft: 52,
          x: { label: "predicted probability", domain: [0, 1], ticks: 5 },
          y: { label: "rows", tickFormat: (n) => format.count(Math.abs(n)), ticks: 6 },
          marks: [
            charts.grid("y", { ticks: 6 }),
            Plot.rect(rows, {
              x1: "x1",
              x2: "x2",
              y1: 0,
              y2: (d) => (d.side === yes ? d.n : -d.n),
              inset: 0.5,
              fill: (d) => (d.side === yes ? "var(--c1)" : "var(--c2)"),
              title: (d) =>
                `${format.short(d.side, 40)}\n${format.number(d.x1)} to ${format.number(d.x2)}: ${format.plural(d.n, "row")}`,
            }),
            Plot.ruleY([0], { stroke: "var(--axis)" }),
          ],
          color: { type: "identity" },
        }),
      id: `histogram-${index}`,
    });
  }

  report.sections.add({
    id: "calibration",
    title: "Calibration",
    applies: () => report.models.some((model) => (calibrationOf(model) || []).length),
    lede: () =>
      report.payload.task === "multiclass"
        ? "Rows are grouped by the probability of the predicted class."
        : null,
    build(body) {
      const entries = report.models
        .map((model, index) => ({
          label: model.name,
          colour: report.colour(index),
          bins: calibrationOf(model) || [],
        }))
        .filter((entry) => entry.bins.length);
      const spread = report.models
        .map((model, index) =>
          model.binary && model.binary.histogram ? histogram(model, index) : null,
        )
        .filter(Boolean);
      const shape = spread.length > 1 ? "trio level" : spread.length ? "pair" : "solo";
      body.append(h("div", { class: shape }, reliability(entries), spread));
    },
  });
})(window.arboostReport);
