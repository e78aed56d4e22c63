/* Waterfall of one row: from the base value to the prediction, a step for each feature. */
((report) => {
  "use strict";

  const { s, format, charts } = report;
  const LINE = 27;

  /** Steps of a row's output: base value, features by size, the rest, and the sum. */
  function steps(model, row, output) {
    const { features, values, base, rest } = model.shap;
    const list = features
      .map((feature, f) => ({ feature, value: values[output][f][row] ?? 0 }))
      .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const shown = list.slice(0, 12);
    const left = d3.sum(list.slice(12), (step) => step.value) + (rest ? rest[output][row] || 0 : 0);
    const others = list.length - shown.length;
    if (others > 0 || Math.abs(left) > 1e-9) shown.push({ feature: null, value: left });
    let total = base[output];
    for (const step of shown) {
      step.from = total;
      total += step.value;
      step.to = total;
    }
    return { start: base[output], steps: shown, end: total };
  }

  function drawing(model, row, output, breakdown) {
    const { rows } = report.payload;
    return (width) => {
      const narrow = width < 480;
      const ends = [
        breakdown.start,
        breakdown.end,
        ...breakdown.steps.flatMap((step) => [step.from, step.to]),
      ];
      const height = LINE * (breakdown.steps.length + 2) + 30;
      const middle = (k) => LINE * (k + 0.5) + 4;
      const label = (step) => {
        if (!step.feature) return "all other features";
        const value = format.cell(
          (rows.columns[step.feature] || [])[row],
          report.kindOf(step.feature),
        );
        return narrow
          ? format.short(step.feature, 17)
          : `${format.short(step.feature, 22)} = ${format.short(value, 13)}`;
      };
      const left = charts.labelRoom(["mean prediction", ...breakdown.steps.map(label)], width);
      const x = d3.scaleLinear(d3.extent(ends), [left + 12, width - 58]);
      const end = (k, text, value) =>
        s(
          "g",
          { class: "end" },
          s(
            "text",
            { class: "label strong", x: left, y: middle(k), dy: "0.32em", "text-anchor": "end" },
            text,
          ),
          s("line", {
            class: "mark",
            x1: x(value),
            x2: x(value),
            y1: middle(k) - 9,
            y2: middle(k) + 9,
          }),
          s(
            "text",
            { class: "number strong", x: x(value) + 7, y: middle(k), dy: "0.32em" },
            format.number(value),
          ),
        );
      return s(
        "svg",
        { class: "plot waterfall", viewBox: `0 0 ${width} ${height}`, width, height },
        s("line", {
          class: "guide",
          x1: x(breakdown.start),
          x2: x(breakdown.start),
          y1: middle(0),
          y2: middle(breakdown.steps.length + 1),
        }),
        end(0, "mean prediction", breakdown.start),
        breakdown.steps.map((step, k) => {
          const up = step.value >= 0;
          const [a, b] = [Math.min(x(step.from), x(step.to)), Math.max(x(step.from), x(step.to))];
          return s(
            "g",
            {},
            s("title", {}, `${step.feature || "all other features"}: ${format.signed(step.value)}`),
            s(
              "text",
              { class: "label", x: left, y: middle(k + 1), dy: "0.32em", "text-anchor": "end" },
              label(step),
            ),
            s("line", {
              class: "link",
              x1: x(step.from),
              x2: x(step.from),
              y1: middle(k) + 8,
              y2: middle(k + 1) - 8,
            }),
            s("rect", {
              class: "step",
              x: a,
              width: Math.max(1.5, b - a),
              y: middle(k + 1) - 8,
              height: 16,
              rx: 2,
              fill: up ? "var(--up)" : "var(--down)",
            }),
            s(
              "text",
              { class: "number", x: b + 5, y: middle(k + 1), dy: "0.32em" },
              format.signed(step.value),
            ),
          );
        }),
        end(breakdown.steps.length + 1, "this row", breakdown.end),
        s(
          "text",
          { class: "axis-label", x: (left + width) / 2, y: height - 6, "text-anchor": "middle" },
          format.short(model.shap.unit, 40),
        ),
      );
    };
  }

  /** The waterfall chart of a row's output. */
  function waterfall(model, row, output) {
    const breakdown = steps(model, row, output);
    const names = breakdown.steps
      .slice(0, 3)
      .map((step) => `${step.feature || "all others"} ${format.signed(step.value)}`);
    return charts.chart({
      title: "Contributions",
      note: "SHAP values add up from the mean prediction to this row's. Orange raises, blue lowers.",
      label: `Contributions from ${format.number(breakdown.start)} to ${format.number(breakdown.end)}: ${names.join(", ")}`,
      height: LINE * (breakdown.steps.length + 2) + 30,
      table: () => ({
        columns: ["feature", "contribution"],
        rows: breakdown.steps.map((step) => [step.feature || "all other features", step.value]),
      }),
      draw: drawing(model, row, output, breakdown),
    });
  }

  report.waterfall = waterfall;
})(window.arboostReport);
