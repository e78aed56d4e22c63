/* Section "Importances": bars of the features, by the measure that the reader chooses. */
((report) => {
  "use strict";

  const { h, format, charts } = report;
  const MEASURES = [
    [
      "shap",
      "mean |SHAP|",
      "Mean |SHAP value|",
      "Mean absolute SHAP value: how far the feature moves the prediction of a row, on average.",
    ],
    [
      "permutation",
      "permutation",
      "Permutation importance",
      "Permutation importance: increase of the loss when the column is shuffled. Bars with lines: one standard deviation.",
    ],
    [
      "gain",
      "gain",
      "Gain",
      "Gain: the share of the training loss that splits of the feature removed.",
    ],
  ];
  const MOST = 20;

  const known = (measure) =>
    report.models.some((model) =>
      (model.importances || []).some((row) => !format.absent(row[measure])),
    );

  /** Features by their largest value in any model, with an entry for each model. */
  function ranked(measure) {
    const features = new Map();
    report.models.forEach((model, index) => {
      for (const row of model.importances || []) {
        if (format.absent(row[measure])) continue;
        if (!features.has(row.feature)) features.set(row.feature, []);
        features.get(row.feature).push({
          feature: row.feature,
          model: index,
          value: row[measure],
          sd: row[`${measure}_sd`],
        });
      }
    });
    return [...features.entries()].sort(
      (a, b) => Math.max(...b[1].map((e) => e.value)) - Math.max(...a[1].map((e) => e.value)),
    );
  }

  function drawing(measure, label) {
    return (width) => {
      const list = ranked(measure).slice(0, MOST);
      const several = report.models.length > 1;
      const rows = list.flatMap((pair) => pair[1]);
      const letters = width < 480 ? 16 : 30;
      const left = charts.labelRoom(
        list.map((pair) => format.short(pair[0], letters)),
        width,
      );
      const size = several ? 36 : 24;
      return charts.plot(width, {
        height: 44 + list.length * size,
        marginLeft: left,
        marginTop: 4,
        marginRight: 56,
        x: { label, nice: true, ticks: 5, tickFormat: charts.tick },
        y: {
          label: null,
          domain: list.map((pair) => pair[0]),
          padding: 0.25,
          tickFormat: (text) => format.short(text, letters),
          tickSize: 0,
        },
        marks: [
          charts.grid("x", { ticks: 5 }),
          report.models.map((_, index) => {
            const modelRows = rows.filter((row) => row.model === index);
            const inset = several ? { insetTop: index ? 14 : 0, insetBottom: index ? 0 : 14 } : {};
            const move = several ? (index ? 7 : -7) : 0;
            return [
              Plot.barX(modelRows, {
                x: "value",
                y: "feature",
                fill: report.colour(index),
                rx: 2,
                ...inset,
                title: (d) => `${d.feature}: ${format.number(d.value)}`,
              }),
              Plot.ruleY(
                modelRows.filter((d) => !format.absent(d.sd)),
                {
                  x1: (d) => d.value - d.sd,
                  x2: (d) => d.value + d.sd,
                  y: "feature",
                  stroke: "var(--ink)",
                  strokeWidth: 1.25,
                  dy: move,
                },
              ),
              Plot.text(modelRows, {
                x: (d) => Math.max(0, d.value + (d.sd || 0)),
                y: "feature",
                text: (d) => format.number(d.value),
                textAnchor: "start",
                dx: 5,
                dy: move,
                fill: "var(--muted)",
              }),
            ];
          }),
          Plot.ruleX([0], { stroke: "var(--axis)" }),
        ],
      });
    };
  }

  report.sections.add({
    id: "importances",
    title: "Importances",
    applies: () => MEASURES.some(([measure]) => known(measure)),
    build(body) {
      const measures = MEASURES.filter(([measure]) => known(measure));
      const container = h("div");
      const show = (chosen) => {
        const [measure, label, title, text] = measures.find(([key]) => key === chosen);
        const all = ranked(measure);
        const list = all.slice(0, MOST);
        report.replace(
          container,
          charts.chart({
            title,
            note:
              text +
              (all.length > MOST
                ? ` The first ${MOST} of ${all.length} features; all of them in the table.`
                : ""),
            wide: true,
            height: 44 + list.length * (report.models.length > 1 ? 36 : 24),
            label: `Importances by ${label}: ${list
              .slice(0, 3)
              .map(([feature, entries]) => `${feature} ${format.number(entries[0].value)}`)
              .join(", ")}`,
            legend:
              report.models.length > 1
                ? report.models.map((model, index) => [model.name, report.colour(index), "box"])
                : null,
            table: () => ({
              columns: report.models.length > 1 ? ["feature", "model", label] : ["feature", label],
              rows: all.flatMap(([feature, entries]) =>
                entries.map((entry) =>
                  report.models.length > 1
                    ? [feature, report.models[entry.model].name, entry.value]
                    : [feature, entry.value],
                ),
              ),
            }),
            draw: drawing(measure, label),
          }),
        );
      };
      if (measures.length > 1) {
        body.append(
          report.choice(
            "Measure",
            measures.map(([key, label]) => [key, label]),
            measures[0][0],
            show,
          ),
        );
      }
      body.append(container);
      show(measures[0][0]);
    },
  });
})(window.arboostReport);
