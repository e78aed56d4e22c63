/* Section "Partial dependence": the mean prediction by each top feature, its distribution below. */
((report) => {
  "use strict";

  const { h, format, charts } = report;
  const LEFT = 52;

  const writer = (part) =>
    part.kind === "time" ? (value) => format.time(value, part.unit) : format.number;

  /** Ticks of a feature's axis: few, and short. */
  function xAxis(part, width) {
    if (part.kind === "time" && (part.unit === "duration" || part.unit === "time"))
      return { ticks: Math.max(2, Math.floor(width / 110)), tickFormat: writer(part) };
    if (part.kind === "time") {
      const scale = d3.scaleUtc([part.grid[0] * 1000, part.grid.at(-1) * 1000], [0, 1]);
      const write = scale.tickFormat();
      return {
        ticks: scale.ticks(width / 110).map((tick) => tick / 1000),
        tickFormat: (seconds) => write(new Date(seconds * 1000)),
      };
    }
    return {
      ticks: Math.max(2, Math.min(5, Math.floor(width / 75))),
      tickFormat: charts.tick,
    };
  }

  /** Points of the outputs as objects { value, k, label, y, low, high }. */
  const pointsOf = (part, outputs) =>
    outputs.flatMap(({ index, label }) =>
      part.grid.map((value, k) => ({
        value,
        k: index,
        label,
        y: part.mean[index][k],
        low: part.low ? part.low[index][k] : null,
        high: part.high ? part.high[index][k] : null,
      })),
    );

  function numberChart(part, outputs, domain, width) {
    const [low, high] = d3.extent(part.grid);
    const write = writer(part);
    const rows = pointsOf(part, outputs);
    const x = { domain: [low, high], ...xAxis(part, width) };
    const upper = charts.plot(width, {
      height: 170,
      marginLeft: LEFT,
      marginBottom: part.bins ? 8 : 24,
      marginTop: 10,
      x: { ...x, label: null, axis: part.bins ? null : "bottom" },
      y: { label: null, ticks: 4, domain, nice: true, tickFormat: charts.tick },
      marks: [
        charts.grid("y", { ticks: 4 }),
        outputs.length === 1 && part.low
          ? Plot.areaY(rows, {
              x: "value",
              y1: "low",
              y2: "high",
              fill: report.colour(0),
              fillOpacity: 0.16,
            })
          : null,
        outputs.map((output) =>
          Plot.line(
            rows.filter((row) => row.k === output.index),
            { x: "value", y: "y", stroke: report.colour(output.index), strokeWidth: 2 },
          ),
        ),
        charts.tip(
          rows,
          Plot.pointerX({
            x: "value",
            y: "y",
            title: (d) =>
              `${outputs.length > 1 ? `${format.short(d.label, 30)}\n` : ""}${format.short(part.feature, 30)} ${write(d.value)}\nprediction ${format.number(d.y)}`,
          }),
        ),
      ],
    });
    if (!part.bins) return upper;
    const bins = part.bins.test
      .map((n, k) => ({
        x1: Math.max(low, part.bins.edges[k]),
        x2: Math.min(high, part.bins.edges[k + 1]),
        n,
      }))
      .filter((bin) => bin.x2 > bin.x1);
    const lower = charts.plot(width, {
      height: 62,
      marginLeft: LEFT,
      marginTop: 2,
      marginBottom: 22,
      x: { ...x, label: null },
      y: { axis: null },
      marks: [
        Plot.rectY(bins, {
          x1: "x1",
          x2: "x2",
          y: "n",
          fill: "var(--axis)",
          fillOpacity: 0.65,
          insetLeft: 0.5,
          insetRight: 0.5,
          title: (d) => `${write(d.x1)} to ${write(d.x2)}: ${format.plural(d.n, "row")}`,
        }),
      ],
    });
    return [upper, lower];
  }

  /** Levels as lines: interval and point of the prediction at the left, bars of the rows at the right. */
  function levelChart(part, outputs, domain, width) {
    const letters = width < 300 ? 12 : 16;
    const counts = new Map(
      part.levels ? part.levels.names.map((name, k) => [String(name), part.levels.test[k]]) : [],
    );
    const rows = pointsOf({ ...part, grid: part.grid.map(String) }, outputs);
    const height = Math.max(232, 34 + 13.5 * part.grid.length);
    const bars = part.levels ? Math.min(60, width * 0.18) : 0;
    const y = {
      domain: part.grid.map(String),
      label: null,
      tickSize: 0,
      tickFormat: (text) => format.short(text, letters),
    };
    // In a narrow chart, as on paper, there is room for the two ends of the axis.
    const ticks = width < 230 ? d3.scaleLinear().domain(domain).nice().domain() : 3;
    const plot = charts.plot(width, {
      height,
      marginLeft: charts.labelRoom(
        part.grid.map((level) => format.short(level, letters)),
        width,
      ),
      marginTop: 10,
      marginBottom: 22,
      marginRight: bars + 20,
      x: { label: null, domain, nice: true, ticks, tickFormat: charts.tick },
      y: { ...y, type: "point", padding: 0.6 },
      marks: [
        charts.grid("x", { ticks }),
        outputs.length === 1 && part.low
          ? Plot.ruleY(rows, {
              y: "value",
              x1: "low",
              x2: "high",
              stroke: report.colour(0),
              strokeWidth: 3,
              strokeOpacity: 0.35,
            })
          : null,
        Plot.dot(rows, {
          y: "value",
          x: "y",
          r: 4,
          fill: (d) => report.colour(d.k),
          stroke: "var(--card)",
        }),
        charts.tip(
          rows,
          Plot.pointerY({
            y: "value",
            x: "y",
            title: (d) =>
              `${outputs.length > 1 ? `${format.short(d.label, 30)}\n` : ""}${format.short(d.value, 40)}\nprediction ${format.number(d.y)}${counts.has(d.value) ? `\n${format.plural(counts.get(d.value), "row")}` : ""}`,
          }),
        ),
      ],
      color: { type: "identity" },
    });
    if (bars) {
      const scale = plot.scale("y");
      const most = Math.max(1, ...counts.values());
      plot.append(
        report.s(
          "g",
          {},
          [...counts]
            .filter(([level]) => part.grid.map(String).includes(level))
            .map(([level, n]) =>
              report.s(
                "rect",
                {
                  x: width - bars - 8,
                  width: Math.max(1, (n / most) * bars),
                  y: scale.apply(level) - 5,
                  height: 10,
                  fill: "var(--axis)",
                  "fill-opacity": 0.65,
                },
                report.s("title", {}, `${format.short(level, 60)}: ${format.plural(n, "row")}`),
              ),
            ),
        ),
      );
    }
    return plot;
  }

  function figure(part, outputs, domain) {
    const numeric =
      part.kind !== "category" && part.kind !== "bool" && typeof part.grid[0] === "number";
    const first = outputs[0].index;
    const [low, high] = d3.extent(part.mean[first]);
    const best = part.grid[part.mean[first].indexOf(high)];
    const write = numeric ? writer(part) : String;
    return charts.chart({
      title: report.name(part.feature, 36),
      level: 3,
      height: 232,
      label: `Partial dependence on ${part.feature}: mean prediction from ${format.number(low)} to ${format.number(high)}, highest at ${write(best)}`,
      table: () => ({
        columns: [
          format.short(part.feature, 40),
          ...outputs.map(
            (output) => `mean prediction${outputs.length > 1 ? ` of ${output.label}` : ""}`,
          ),
        ],
        rows: part.grid.map((x, k) => [
          numeric ? write(x) : String(x),
          ...outputs.map((output) => part.mean[output.index][k]),
        ]),
      }),
      draw: (width) => (numeric ? numberChart : levelChart)(part, outputs, domain, width),
    });
  }

  report.sections.add({
    id: "dependence",
    title: "Partial dependence",
    perModel: true,
    applies: () => report.models.some((model) => (model.dependence || []).length),
    lede: (model) =>
      "The mean prediction when one feature is set to each value in all rows, on one scale for all features. " +
      `${(model.dependence || []).some((part) => part.low) ? "Band: 10th to 90th percentile over single rows. " : ""}Grey bars: the rows that have such values.`,
    build(body, model) {
      const parts = model.dependence || [];
      const labels = (model.outputs || []).map((label, index) => ({ label, index }));
      const outputs = labels.length ? labels : [{ label: "prediction", index: 0 }];
      const container = h("div", { class: "trio" });
      const show = (chosen) => {
        const domain = d3.extent(
          parts.flatMap((part) =>
            chosen.flatMap((output) => [
              ...part.mean[output.index],
              ...(chosen.length === 1 && part.low
                ? [...part.low[output.index], ...part.high[output.index]]
                : []),
            ]),
          ),
        );
        report.replace(
          container,
          parts.map((part) => figure(part, chosen, domain)),
        );
      };
      if (outputs.length > 1) {
        const few = outputs.slice(0, 8);
        body.append(
          report.select(
            "Output",
            [
              ["all", outputs.length > 8 ? "first 8 classes" : "all classes"],
              ...outputs.map((output) => [output.index, output.label]),
            ],
            "all",
            (key) => show(key === "all" ? few : [outputs[Number(key)]]),
          ),
          charts.legend(few.map((output) => [output.label, report.colour(output.index), "line"])),
        );
        show(few);
      } else show(outputs);
      body.append(container);
    },
  });
})(window.arboostReport);
