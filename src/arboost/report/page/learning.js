/* Section "Learning curves": metrics by round, of one model or two. */
((report) => {
  "use strict";

  const { format, charts } = report;

  /** All learning curves: colour by series, or with two models colour by model and dashes by series. */
  function curves() {
    const several = report.models.length > 1;
    return report.models.flatMap((model, m) =>
      model.learning
        ? model.learning.series.map((series, k) => ({
            label: several ? `${model.name}: ${series.name}` : series.name,
            colour: report.colour(several ? m : k),
            dashed: several && k > 0,
            points: charts.points(series.x, series.y).filter((point) => !format.absent(point.y)),
            best: model.learning.best,
          }))
        : [],
    );
  }

  /** The range of the curves; a start that would flatten all the rest is cut off. */
  function settled(lines) {
    const [lowest, highest] = d3.extent(lines.flatMap((line) => line.points.map(({ y }) => y)));
    const late = lines.flatMap((line) =>
      line.points.filter(({ x }) => x > 0.1 * line.points.at(-1).x).map(({ y }) => y),
    );
    const [low, high] = d3.extent(late);
    const range = high - low;
    if (!(range > 0) || highest - lowest < 8 * range) {
      return { domain: [lowest, highest], clipped: false };
    }
    return {
      domain: [Math.max(lowest, low - 2 * range), Math.min(highest, high + 2 * range)],
      clipped: true,
    };
  }

  report.sections.add({
    id: "learning",
    title: "Learning curves",
    applies: () => report.models.some((model) => model.learning),
    lede: () =>
      report.models.map((model) => model.learning && model.learning.note).filter(Boolean)[0],
    build(body) {
      const first = report.models.find((model) => model.learning).learning;
      const lines = curves().filter((line) => line.points.length);
      const { domain, clipped } = settled(lines);
      const marks = [
        ...new Map(
          lines.filter((line) => !format.absent(line.best)).map((line) => [line.best, line]),
        ).values(),
      ];
      body.append(
        charts.chart({
          title: `${first.y} by ${first.x}`,
          note: clipped ? "The steep start is cut off; the table has all points." : null,
          wide: true,
          height: 300,
          label: `Learning curves of ${first.y} by ${first.x}: ${lines.map((line) => `${line.label} ends at ${format.number((line.points.at(-1) || {}).y)}`).join("; ")}${marks.length ? `; best at ${marks.map((mark) => format.count(mark.best)).join(" and ")}` : ""}`,
          legend: lines.map((line) => [line.label, line.colour, line.dashed ? "dash" : "line"]),
          table: () => ({
            columns: ["series", first.x, first.y],
            rows: lines.flatMap((line) =>
              line.points.map((point) => [line.label, point.x, point.y]),
            ),
          }),
          draw: (width) =>
            charts.plot(width, {
              height: 300,
              marginLeft: 56,
              x: { label: first.x },
              y: { label: first.y, nice: true, domain, tickFormat: charts.tick },
              marks: [
                charts.grid("y"),
                marks.map((mark) =>
                  Plot.ruleX([mark.best], { stroke: "var(--muted)", strokeDasharray: "3 3" }),
                ),
                marks.map((mark) =>
                  Plot.text([`best: ${format.count(mark.best)}`], {
                    x: mark.best,
                    frameAnchor: "top",
                    dy: -14,
                    fill: "var(--muted)",
                    fontSize: 12,
                  }),
                ),
                lines.map((line) =>
                  Plot.line(line.points, {
                    x: "x",
                    y: "y",
                    stroke: line.colour,
                    strokeWidth: 2,
                    strokeDasharray: line.dashed ? "5 4" : null,
                    clip: clipped,
                  }),
                ),
                charts.tip(
                  lines.flatMap((line) =>
                    line.points.map((point) => ({ ...point, label: line.label })),
                  ),
                  Plot.pointer({
                    x: "x",
                    y: "y",
                    title: (d) =>
                      `${d.label}\n${first.x} ${format.count(d.x)}: ${format.number(d.y)}`,
                  }),
                ),
              ],
            }),
        }),
      );
    },
  });
})(window.arboostReport);
