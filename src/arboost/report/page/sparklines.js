/* Small distributions inside table cells: bars of the test rows, a line of the training rows. */
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

  /** The distribution of a column as a picture of one line's height, or null without one. */
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

  report.sparkline = sparkline;
})(window.arboostReport);
