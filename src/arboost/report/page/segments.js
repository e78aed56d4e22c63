/* Sections "Classes" and "Segments": scores of parts of the rows, the worst first. */
((report) => {
  "use strict";

  const { h, format, tables, strips } = report;

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
      const { metric, overall, list } = model.segments;
      const rows = list.map((row) => ({ ...row, worse: row.score > overall }));
      const at = strips.stripAxis([
        overall,
        ...rows.flatMap((row) => [row.score, row.low, row.high]),
      ]);
      /** The score of a segment with its interval, and the score of all rows as a line. */
      const strip = (row) =>
        strips.strip(
          [
            {
              value: row.score,
              low: row.low,
              high: row.high,
              colour: row.worse ? "var(--c2)" : "var(--c1)",
            },
          ],
          {
            at,
            baseline: overall,
            label: `${metric} ${format.score(row.score)}${format.absent(row.low) ? "" : `, 95% interval ${format.score(row.low)} to ${format.score(row.high)}`}; all rows ${format.score(overall)}`,
          },
        );
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
              cell: (row) => report.name(format.signs(row.segment), 36),
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
              cell: strip,
            },
          ],
          rows,
          { caption: `${metric} of segments, worst first`, sortable: true, limit: 12 },
        ),
      );
    },
  });
})(window.arboostReport);
