/* Sections "Comparison" and "Scores". */
((report) => {
  "use strict";

  const { h, format, tables, charts } = report;
  const { strip, stripAxis, STRIP } = report.strips;

  const interval = (entry) =>
    format.absent(entry.low)
      ? null
      : h(
          "span",
          { class: "interval-text" },
          `${format.score(entry.low)} to ${format.score(entry.high)}`,
        );

  function scoreRows() {
    const rows = new Map();
    report.models.forEach((model, index) => {
      for (const score of model.scores || []) {
        if (!rows.has(score.name))
          rows.set(score.name, {
            name: score.name,
            text: score.text,
            up: score.higher_is_better,
            baseline: score.baseline,
            entries: [],
          });
        rows.get(score.name).entries.push({ ...score, model: index, colour: report.colour(index) });
      }
    });
    return [...rows.values()];
  }

  function scoreTable() {
    const rows = scoreRows();
    const entry = (row, index) => row.entries.find((item) => item.model === index) || {};
    const columns = [
      {
        label: "Score",
        head: true,
        value: (row) => row.name,
        cell: (row) => [
          h("span", { class: "score-name" }, row.name),
          h("span", { class: "explain" }, row.text || ""),
        ],
      },
      ...report.models.map((model, index) => ({
        label: report.models.length > 1 ? report.name(model.name, 30) : "Value",
        numeric: true,
        value: (row) => entry(row, index).value,
        cell: (row) => [
          h("span", { class: "big" }, format.score(entry(row, index).value)),
          interval(entry(row, index)),
        ],
      })),
      {
        label: "Baseline",
        numeric: true,
        value: (row) => row.baseline,
        cell: (row) => format.score(row.baseline),
      },
      {
        label: "Interval against baseline",
        sortable: false,
        value: () => 0,
        cell: (row) =>
          strip(row.entries, {
            at: stripAxis(
              [row.baseline, ...row.entries.flatMap(({ value, low, high }) => [value, low, high])],
              0.08,
            ),
            baseline: row.baseline,
            label: `${row.name}: ${row.entries.map(({ value, low, high }) => `${format.score(value)}, 95% interval ${format.score(low)} to ${format.score(high)}`).join("; ")}; baseline ${format.score(row.baseline)}`,
          }),
      },
      {
        label: "Better is",
        value: (row) => (row.up ? "higher" : "lower"),
        cell: (row) => h("span", { class: "direction" }, row.up ? "↑ higher" : "↓ lower"),
      },
    ];
    return tables.table(columns, rows, {
      caption: "Scores with 95% confidence intervals beside the baseline",
    });
  }

  report.sections.add({
    id: "scores",
    title: "Scores",
    applies: () => report.models.some((model) => model.scores && model.scores.length),
    lede: () => {
      const text = report.models[0].baseline_text;
      return `Dot and bar: score and 95% confidence interval.${text ? ` Vertical line: the baseline, which ${text}.` : ""}`;
    },
    build: (body) =>
      body.append(
        report.models.length > 1
          ? charts.legend(
              report.models.map((model, index) => [model.name, report.colour(index), "dot"]),
            )
          : "",
        scoreTable(),
      ),
  });

  /** The difference of two models with its interval around zero. */
  function differenceStrip(row) {
    const reach =
      Math.max(
        0,
        ...[row.difference, row.low, row.high]
          .filter((value) => !format.absent(value))
          .map(Math.abs),
      ) * 1.15 || 1;
    const at = (value) => STRIP / 2 + (value / reach) * (STRIP / 2 - 6);
    const colour = format.absent(row.better) ? "var(--muted)" : report.colour(row.better);
    return strip([{ value: row.difference, low: row.low, high: row.high, colour }], {
      at,
      baseline: 0,
      label: `Difference ${format.signed(row.difference)}, 95% interval ${format.signed(row.low)} to ${format.signed(row.high)}`,
    });
  }

  report.sections.add({
    id: "comparison",
    title: "Comparison",
    applies: () => Boolean(report.payload.comparison),
    lede: () => report.payload.comparison.text,
    build(body) {
      const { names, scores, agreement } = report.payload.comparison;
      const verdict = (row) =>
        format.absent(row.better)
          ? h("span", { class: "muted" }, "no clear difference")
          : h(
              "span",
              { class: "winner", style: { "--key": report.colour(row.better) } },
              report.name(names[row.better], 32),
            );
      body.append(
        charts.legend(names.map((name, index) => [name, report.colour(index), "dot"])),
        tables.table(
          [
            {
              label: "Score",
              head: true,
              value: (row) => row.name,
              cell: (row) => [
                row.name,
                h(
                  "span",
                  { class: "explain" },
                  row.higher_is_better ? "higher is better" : "lower is better",
                ),
              ],
            },
            {
              label: report.name(names[0], 28),
              numeric: true,
              value: (row) => row.a,
              cell: (row) => format.score(row.a),
            },
            {
              label: report.name(names[1], 28),
              numeric: true,
              value: (row) => row.b,
              cell: (row) => format.score(row.b),
            },
            {
              label: "Difference",
              numeric: true,
              value: (row) => row.difference,
              cell: (row) => [
                h("span", {}, format.signed(row.difference)),
                format.absent(row.low)
                  ? null
                  : h(
                      "span",
                      { class: "interval-text" },
                      `${format.signed(row.low)} to ${format.signed(row.high)}`,
                    ),
              ],
            },
            {
              label: "Interval around zero",
              sortable: false,
              value: () => 0,
              cell: differenceStrip,
            },
            { label: "Better", value: (row) => row.better, cell: verdict },
          ],
          scores,
          { caption: "Scores of both models and their paired differences" },
        ),
      );
      if (!format.absent(agreement)) {
        body.append(
          h(
            "p",
            { class: "note" },
            report.payload.task === "regression"
              ? `Correlation of the predictions of both models: ${format.number(agreement)}.`
              : `Both models predict the same class for ${format.share(agreement)} of the rows.`,
          ),
        );
      }
    },
  });
})(window.arboostReport);
