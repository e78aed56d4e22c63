/* Sections "Classes" and "Segments": scores of parts of the rows, the worst first. */
((report) => {
  "use strict";

  const { h, s, format, tables } = report;

  report.sections.add({
    id: "classes",
    title: "Classes",
    perModel: true,
    applies: () => report.models.some((model) => (model.classes || []).length),
    lede: "Classes by F1 score, the lowest first.",
    hint: () => "Click a heading to sort.",
    build(body, model) {
      const rows = [...(model.classes || [])].sort((a, b) => (a.f1 ?? 2) - (b.f1 ?? 2));
      const column = (label, key) => ({
        label,
        numeric: true,
        value: (row) => row[key],
        cell: (row) => tables.bar(row[key], format.score(row[key])),
      });
      const columns = [
        {
          label: "Class",
          head: true,
          value: (row) => row.name,
          cell: (row) => report.name(row.name, 40),
        },
        { label: "Rows", numeric: true, value: (row) => row.n, cell: (row) => format.count(row.n) },
        column("Precision", "precision"),
        column("Recall", "recall"),
        column("F1", "f1"),
      ];
      if (rows.some((row) => !format.absent(row.auc))) columns.push(column("ROC AUC", "auc"));
      body.append(
        tables.table(columns, rows, { caption: "Scores of each class", sortable: true, limit: 30 }),
      );
    },
  });

  const WIDTH = 150;

  /** The score of a segment with its interval, and the score of all rows as a line. */
  function strip(row, at, overall, metric) {
    const known = !format.absent(row.low) && !format.absent(row.high);
    return s(
      "svg",
      {
        class: "strip",
        viewBox: `0 0 ${WIDTH} 20`,
        width: WIDTH,
        height: 20,
        role: "img",
        "aria-label": `${metric} ${format.score(row.score)}${known ? `, 95% interval ${format.score(row.low)} to ${format.score(row.high)}` : ""}; all rows ${format.score(overall)}`,
      },
      s("line", { class: "track", x1: 0, x2: WIDTH, y1: 10, y2: 10 }),
      !format.absent(overall) &&
        s("line", { class: "baseline", x1: at(overall), x2: at(overall), y1: 1, y2: 19 }),
      s(
        "g",
        { style: { color: row.worse ? "var(--c2)" : "var(--c1)" } },
        known &&
          s("line", { class: "interval", x1: at(row.low), x2: at(row.high), y1: 10, y2: 10 }),
        !format.absent(row.score) &&
          s("circle", { class: "value", cx: at(row.score), cy: 10, r: 4.5 }),
      ),
    );
  }

  const hasMeans = (rows) => rows.some((row) => !format.absent(row.observed));
  const mean = (label, key) => ({
    label,
    numeric: true,
    value: (row) => row[key],
    cell: (row) => format.score(row[key]),
  });

  report.sections.add({
    id: "segments",
    title: "Segments",
    perModel: true,
    applies: () => report.models.some((model) => model.segments && model.segments.list.length),
    lede: (model) =>
      model.segments
        ? `The ${model.segments.n_segments > model.segments.list.length ? `${model.segments.list.length} worst of ${format.count(model.segments.n_segments)}` : model.segments.list.length} single-column segments, by ${model.segments.metric}. Vertical line: all rows, ${format.score(model.segments.overall)}. Orange: worse than all rows.`
        : null,
    build(body, model) {
      if (!model.segments) return;
      const { metric, higher_is_better: up, overall, list } = model.segments;
      const rows = list.map((row) => ({
        ...row,
        worse: up ? row.score < overall : row.score > overall,
      }));
      const known = [overall, ...rows.flatMap((row) => [row.score, row.low, row.high])].filter(
        (value) => !format.absent(value),
      );
      const [low, high] = d3.extent(known);
      const at = (value) => 6 + ((value - low) / (high - low || 1)) * (WIDTH - 12);
      body.append(
        tables.table(
          [
            {
              label: "Column",
              head: true,
              value: (row) => row.feature,
              cell: (row) => report.name(row.feature, 28),
            },
            {
              label: "Segment",
              value: (row) => row.segment,
              cell: (row) => report.name(row.segment, 36),
            },
            {
              label: "Rows",
              numeric: true,
              value: (row) => row.n,
              cell: (row) => format.count(row.n),
            },
            {
              label: metric,
              numeric: true,
              value: (row) => row.score,
              cell: (row) => format.score(row.score),
            },
            {
              label: "Difference",
              numeric: true,
              value: (row) => row.difference,
              cell: (row) =>
                h("span", { class: row.worse ? "worse" : "better" }, format.signed(row.difference)),
            },
            ...(hasMeans(rows)
              ? [mean("Mean truth", "observed"), mean("Mean prediction", "predicted")]
              : []),
            {
              label: "95% interval",
              sortable: false,
              value: () => 0,
              cell: (row) => strip(row, at, overall, metric),
            },
          ],
          rows,
          { caption: `${metric} of segments, worst first`, sortable: true, limit: 12 },
        ),
      );
    },
  });
})(window.arboostReport);
