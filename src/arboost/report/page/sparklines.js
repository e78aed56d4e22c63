/* Pictures inside table cells: distributions of columns, and scores with their intervals. */
((report) => {
  "use strict";

  const { s, format } = report;
  const WIDTH = 132;
  const HEIGHT = 34;

  const total = (counts) => counts.reduce((sum, value) => sum + value, 0) || 1;
  const shares = (counts) => {
    const sum = total(counts);
    return counts.map((value) => value / sum);
  };

  /** Test and training shares with the text of each bar. */
  function bars(column) {
    if (column.bins) {
      const { edges, test, train } = column.bins;
      const write =
        column.kind === "time" ? (value) => format.time(value, column.unit) : format.number;
      return {
        test: shares(test),
        train: train ? shares(train) : null,
        labels: test.map((_, index) => `${write(edges[index])} to ${write(edges[index + 1])}`),
      };
    }
    const { names, test, train, other_test: otherTest, other_train: otherTrain } = column.levels;
    const other = (otherTest || 0) + (otherTrain || 0) > 0;
    return {
      test: shares(other ? [...test, otherTest || 0] : test),
      train: train ? shares(other ? [...train, otherTrain || 0] : train) : null,
      labels: other ? [...names, "all other levels"] : names,
    };
  }

  function describe(column, parts) {
    if (!parts.test.length) return `${column.name}: no values`;
    const highest = parts.test.indexOf(Math.max(...parts.test));
    return `Distribution of ${column.name}: most frequent ${parts.labels[highest]}, ${format.share(parts.test[highest])}`;
  }

  /** The distribution of a column: bars of the test rows, dashes of the training rows; or null. */
  function sparkline(column) {
    if (!column.bins && !column.levels) return null;
    const parts = bars(column);
    const n = parts.test.length;
    const highest = Math.max(...parts.test, ...(parts.train || []), 1e-12);
    const step = Math.min(WIDTH / Math.max(n, 1), column.bins ? Infinity : 24);
    const gap = column.bins ? Math.min(1, step / 6) : Math.min(3, step / 4);
    const top = (share) => HEIGHT - 2 - (HEIGHT - 4) * (share / highest);
    const text = describe(column, parts);
    const picture = s(
      "svg",
      {
        class: "spark",
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        width: WIDTH,
        height: HEIGHT,
        role: "img",
        "aria-label": text,
      },
      s("line", { class: "floor", x1: 0, x2: WIDTH, y1: HEIGHT - 1.5, y2: HEIGHT - 1.5 }),
      parts.test.map((share, index) =>
        s(
          "rect",
          {
            class: "spark-bar",
            x: index * step,
            width: Math.max(step - gap, 0.6),
            y: top(share),
            height: HEIGHT - 2 - top(share),
          },
          s(
            "title",
            {},
            `${format.short(parts.labels[index], 60)}: ${format.share(share)}` +
              (parts.train ? ` (training ${format.share(parts.train[index])})` : ""),
          ),
        ),
      ),
    );
    if (parts.train) {
      const line = parts.train.map(
        (share, index) => `M${index * step},${top(share)}h${Math.max(step - gap, 0.6)}`,
      );
      picture.append(s("path", { class: "train", d: line.join("") }));
    }
    return picture;
  }

  const STRIP = 150;

  /** Values with their intervals on a line, and a baseline as a bar across.
   *
   * entries: [{ value, low, high, colour }]; options: at(value) -> place, baseline, label
   */
  function strip(entries, { at, baseline, label }) {
    const height = 12 + 10 * entries.length;
    const known = (value) => !format.absent(value);
    return s(
      "svg",
      {
        class: "strip",
        viewBox: `0 0 ${STRIP} ${height}`,
        width: STRIP,
        height,
        role: "img",
        "aria-label": label,
      },
      s("line", { class: "track", x1: 0, x2: STRIP, y1: height / 2, y2: height / 2 }),
      known(baseline) &&
        s("line", { class: "baseline", x1: at(baseline), x2: at(baseline), y1: 2, y2: height - 2 }),
      entries.map(({ value, low, high, colour }, index) => {
        const y = 11 + 10 * index;
        return s(
          "g",
          { style: { color: colour } },
          known(low) &&
            known(high) &&
            s("line", { class: "interval", x1: at(low), x2: at(high), y1: y, y2: y }),
          known(value) && s("circle", { class: "value", cx: at(value), cy: y, r: 4.5 }),
        );
      }),
    );
  }

  /** Places of values on a strip, with a share of their range as a margin at both ends. */
  function stripAxis(values, share = 0) {
    const [low, high] = d3.extent(values.filter((value) => !format.absent(value)));
    const margin = (high - low || Math.abs(high) || 1) * share;
    const range = high - low + 2 * margin || 1;
    return (value) => 6 + ((value - low + margin) / range) * (STRIP - 12);
  }

  report.sparkline = sparkline;
  report.strips = { strip, stripAxis, STRIP };
})(window.arboostReport);
