/* Section "SHAP summary": a dot for each row in the line of each feature; a dot opens its row. */
((report) => {
  "use strict";

  const { h, s, format, charts } = report;
  const LINE = 34; // height of a feature's line
  const RADIUS = 2.6;
  const SHADES = 9;

  /** A value with an order: numbers, times as text, truth values; others as they are. */
  function ordered(value, kind) {
    if (kind === "time" && typeof value === "string") {
      const time = Date.parse(value);
      return Number.isNaN(time) ? value : time;
    }
    if (kind === "bool") return { True: 1, true: 1, False: 0, false: 0 }[value] ?? value;
    return value;
  }

  /** The shade of each row by the rank of its value among the values of the feature, or null. */
  function shades(feature) {
    const kind = report.kindOf(feature);
    const values = (report.payload.rows.columns[feature] || []).map((value) =>
      ordered(value, kind),
    );
    const numbers = values.filter((value) => typeof value === "number").sort(d3.ascending);
    if (numbers.length < 2) return () => null;
    const last = numbers.length - 1;
    return (row) => {
      const value = values[row];
      if (typeof value !== "number") return null;
      const rank = (d3.bisectLeft(numbers, value) + d3.bisectRight(numbers, value) - 1) / 2 / last;
      return Math.round(Math.max(0, Math.min(1, rank)) * (SHADES - 1));
    };
  }

  /** Dots of one line, stacked in columns of their own width around its middle. */
  function stack(values, x, middle) {
    const width = RADIUS * 1.7;
    const columns = new Map();
    values.forEach((value, row) => {
      if (format.absent(value)) return;
      const column = Math.round(x(value) / width);
      if (!columns.has(column)) columns.set(column, []);
      columns.get(column).push(row);
    });
    const dots = [];
    for (const rows of columns.values()) {
      const step = Math.min(RADIUS * 1.7, (LINE - 6) / rows.length);
      rows.forEach((row, k) => {
        const side = k % 2 ? 1 : -1;
        dots.push({ row, x: x(values[row]), y: middle + side * Math.ceil(k / 2) * step });
      });
    }
    return dots;
  }

  function drawing(model, output, pick) {
    return (width) => {
      const { features, values } = model.shap;
      const narrow = width < 520;
      const letters = narrow ? 14 : 28;
      const left = charts.labelRoom(
        features.map((feature) => format.short(feature, letters)),
        width,
      );
      const lines = values[output];
      const top = 6;
      const bottom = top + LINE * features.length;
      const [low, high] = d3.extent(lines.flat());
      const x = d3
        .scaleLinear([Math.min(low, 0), Math.max(high, 0)], [left + 10, width - 14])
        .nice();
      const dots = lines.flatMap((line, f) => {
        const shade = shades(features[f]);
        return stack(line, x, top + LINE * (f + 0.5)).map((dot) => ({
          ...dot,
          f,
          shade: shade(dot.row),
          value: line[dot.row],
        }));
      });
      const svg = s(
        "svg",
        {
          class: "plot swarm",
          viewBox: `0 0 ${width} ${bottom + 40}`,
          width,
          height: bottom + 40,
          tabindex: "0",
          role: "application",
          "aria-roledescription": "chart with a dot for each row",
          "aria-label": `SHAP values of ${features.length} features. Arrow keys move between dots, Enter opens the row of a dot.`,
        },
        features.map((_, f) =>
          s("line", {
            class: "guide",
            x1: left,
            x2: width - 6,
            y1: top + LINE * (f + 0.5),
            y2: top + LINE * (f + 0.5),
          }),
        ),
        s("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: bottom }),
        features.map((feature, f) =>
          s(
            "text",
            {
              class: "label",
              x: left - 4,
              y: top + LINE * (f + 0.5),
              dy: "0.32em",
              "text-anchor": "end",
            },
            format.short(feature, letters),
            s("title", {}, feature),
          ),
        ),
        x
          .ticks(narrow ? 4 : 7)
          .map((tick) =>
            s(
              "g",
              { class: "tick" },
              s("line", { x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 5 }),
              s(
                "text",
                { x: x(tick), y: bottom + 17, "text-anchor": "middle" },
                format.number(tick),
              ),
            ),
          ),
        s(
          "text",
          { class: "axis-label", x: (left + width) / 2, y: bottom + 34, "text-anchor": "middle" },
          `SHAP value (${format.short(model.shap.unit, 24)})`,
        ),
        s(
          "g",
          { class: "dots" },
          dots.map((dot) =>
            s("circle", {
              cx: dot.x.toFixed(1),
              cy: dot.y.toFixed(1),
              r: RADIUS,
              fill: dot.shade === null ? "var(--vnone)" : `var(--v${dot.shade})`,
            }),
          ),
        ),
        s("g", { class: "chosen" }),
      );
      report.handleDotEvents(svg, dots, { width, features, pick });
      return svg;
    };
  }

  const scale = () =>
    h(
      "p",
      { class: "shade-key" },
      h("span", {}, "low value"),
      h(
        "span",
        { class: "shades", "aria-hidden": "true" },
        d3.range(SHADES).map((k) => h("span", { style: { background: `var(--v${k})` } })),
      ),
      h("span", {}, "high value"),
      h(
        "span",
        { class: "none-key" },
        h("span", { class: "key dot", style: { "--key": "var(--vnone)" }, "aria-hidden": "true" }),
        "category or missing",
      ),
    );

  report.sections.add({
    id: "shap",
    title: "SHAP summary",
    perModel: true,
    applies: () => Boolean(report.payload.rows) && report.models.some((model) => model.shap),
    lede: "One dot for each row of a sample: how far the feature moved its prediction.",
    hint: () => report.shows("rows") && "Choose a dot to open its row in the row explorer.",
    build(body, model) {
      if (!model.shap) return;
      const { features, values, outputs } = model.shap;
      let output = 0;
      const pick = (row) => {
        report.state.set("row", row);
        const target = document.getElementById("rows");
        if (target) {
          target.scrollIntoView();
          const title = document.getElementById("rows-title");
          title.setAttribute("tabindex", "-1");
          title.focus({ preventScroll: true });
        }
      };
      const container = h("div");
      const show = () =>
        report.replace(
          container,
          charts.chart({
            title:
              outputs.length > 1
                ? `SHAP values of ${format.short(outputs[output], 40)}`
                : "SHAP values",
            controls: scale(),
            wide: true,
            interactive: true,
            height: 46 + LINE * features.length,
            table: () => ({
              columns: ["feature", "mean |SHAP|", "lowest", "median", "highest"],
              rows: features.map((feature, f) => [
                feature,
                d3.mean(values[output][f], Math.abs),
                d3.min(values[output][f]),
                d3.median(values[output][f]),
                d3.max(values[output][f]),
              ]),
            }),
            draw: (width) => {
              const svg = drawing(model, output, pick)(width);
              return [svg, svg.spoken];
            },
          }),
        );
      if (outputs.length > 1) {
        body.append(
          report.select(
            "Output",
            outputs.map((label, k) => [k, label]),
            output,
            (key) => {
              output = Number(key);
              show();
            },
          ),
        );
      }
      body.append(container);
      show();
    },
  });

  report.state.watch("row", (row) => {
    for (const svg of document.querySelectorAll("svg.swarm")) svg.mark(row);
  });
})(window.arboostReport);
