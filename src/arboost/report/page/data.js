/* Section "Data": kinds, missing values, levels, distributions and drift of the columns. */
((report) => {
  "use strict";

  const { h, format, tables } = report;
  const KINDS = { number: "number", category: "category", time: "time", bool: "yes / no" };
  // Usual limits of the population stability index.
  const MODERATE = 0.1;
  const LARGE = 0.25;

  function drift(value) {
    if (format.absent(value)) return format.DASH;
    const level = value >= LARGE ? "large" : value >= MODERATE ? "moderate" : "small";
    return h(
      "span",
      { class: `drift ${level}` },
      h("span", {}, format.number(Math.round(value * 1000) / 1000)),
      level === "small" ? null : h("span", { class: "badge" }, level),
    );
  }

  function columnTable(data) {
    const trained = data.columns.some((column) => !format.absent(column.drift));
    const missingTrain = data.columns.some((column) => !format.absent(column.missing_train));
    const columns = [
      { label: "Column", head: true, value: (c) => c.name, cell: (c) => report.name(c.name, 30) },
      {
        label: "Kind",
        value: (c) => c.kind,
        cell: (c) => h("span", { class: "kind" }, KINDS[c.kind] || c.kind),
      },
      {
        label: "Distribution",
        sortable: false,
        value: () => 0,
        cell: (c) => report.sparkline(c) || format.DASH,
      },
      {
        label: "Values",
        sortable: false,
        value: (c) => c.summary,
        cell: (c) =>
          h(
            "span",
            { class: "summary" },
            report.name(format.signs(c.summary || format.DASH), 64),
          ),
      },
      {
        label: "Distinct",
        numeric: true,
        value: (c) => c.n_distinct,
        cell: (c) => format.count(c.n_distinct),
      },
      {
        label: "Missing",
        numeric: true,
        value: (c) => c.missing,
        cell: (c) => [
          tables.bar(c.missing, format.share(c.missing), "var(--c2)"),
          missingTrain && (c.missing || c.missing_train)
            ? h("span", { class: "interval-text" }, `training ${format.share(c.missing_train)}`)
            : null,
        ],
      },
    ];
    if (trained) {
      columns.push({
        label: "Drift",
        numeric: true,
        value: (c) => c.drift,
        cell: (c) => drift(c.drift),
      });
    }
    const rows = data.target ? [{ ...data.target, target: true }, ...data.columns] : data.columns;
    const caption = "Columns of the table: kind, distribution, missing values and drift";
    return tables.table(columns, rows, {
      caption,
      sortable: true,
      limit: 24,
      rowAttributes: (row) => ({ class: row.target ? "target" : null }),
    });
  }

  function sentences(data) {
    const kinds = new Map();
    for (const column of data.columns) kinds.set(column.kind, (kinds.get(column.kind) || 0) + 1);
    const missing = data.columns.filter((column) => column.missing > 0).length;
    const drifted = data.columns.filter((column) => column.drift >= LARGE).length;
    const tiles = [
      ["Rows of this report", format.count(data.n_rows)],
      data.n_train_rows ? ["Training rows", format.count(data.n_train_rows)] : null,
      ["Columns", format.count(data.columns.length)],
      ["With missing values", format.count(missing)],
      data.columns.some((column) => !format.absent(column.drift))
        ? ["With large drift", format.count(drifted)]
        : null,
    ];
    return h(
      "dl",
      { class: "tiles" },
      tiles
        .filter(Boolean)
        .map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
    );
  }

  report.sections.add({
    id: "data",
    title: "Data",
    applies: () => Boolean(report.payload.data),
    lede: () =>
      report.payload.data.columns.some((column) =>
        column.bins ? column.bins.train : column.levels && column.levels.train,
      )
        ? "Bars are the rows of this report, dashes the training rows. Drift is the population stability index: below 0.1 small, from 0.25 large."
        : "The columns that the model reads, and the distribution of each in the rows of this report.",
    build(body) {
      const { data } = report.payload;
      body.append(sentences(data), columnTable(data));
      if (data.notes && data.notes.length) {
        body.append(
          h(
            "ul",
            { class: "notes" },
            data.notes.map((note) => h("li", {}, note)),
          ),
        );
      }
    },
  });
})(window.arboostReport);
