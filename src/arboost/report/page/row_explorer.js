/* Section "Row explorer": one row's prediction, contributions, values, paths and nearest flip. */
((report) => {
  "use strict";

  const { h, format, forest, tables } = report;

  function answer(model, row) {
    const { rows, classes, task } = report.payload;
    const { label, value, proba, correct, error } = model.predictions || {};
    const tile = (title, content, kind) =>
      h("div", { class: kind || null }, h("dt", {}, title), h("dd", {}, content));
    const tiles = [tile("Row", format.count(rows.index[row]))];
    if (label || value)
      tiles.push(
        tile(
          "Prediction",
          report.name(
            task === "regression" ? format.number((value || label)[row]) : label[row],
            28,
          ),
        ),
      );
    if (rows.truth && !format.absent(rows.truth[row]))
      tiles.push(
        tile(
          "Truth",
          report.name(task === "regression" ? format.number(rows.truth[row]) : rows.truth[row], 28),
        ),
      );
    if (proba && classes && classes.length === 2)
      tiles.push(
        tile(["Probability of ", report.name(classes[1], 14)], format.probability(proba[row][1])),
      );
    if (error && !format.absent(error[row])) tiles.push(tile("Error", format.signed(error[row])));
    if (correct && !format.absent(correct[row]))
      tiles.push(
        tile("Result", correct[row] ? "✓ right" : "✗ wrong", correct[row] ? "right" : "wrong"),
      );
    return h("dl", { class: "tiles answer" }, tiles);
  }

  /** Probabilities of all classes as bars, the likeliest first. */
  function probabilities(model, row) {
    const { proba } = model.predictions || {};
    const { classes, rows } = report.payload;
    if (!proba || !classes || classes.length < 3) return null;
    const list = classes
      .map((name, k) => ({ name, p: proba[row][k] ?? 0 }))
      .sort((a, b) => b.p - a.p)
      .slice(0, 10);
    return h(
      "div",
      { class: "card" },
      h("h3", {}, "Probabilities"),
      h(
        "ul",
        { class: "bars" },
        list.map(({ name, p }) =>
          h(
            "li",
            {},
            h(
              "span",
              {},
              report.name(name, 26),
              rows.truth && String(rows.truth[row]) === String(name)
                ? h("span", { class: "badge truth" }, "truth")
                : null,
            ),
            h(
              "span",
              { class: "bar", "aria-hidden": "true" },
              h("span", { style: { width: `${p * 100}%`, background: "var(--c1)" } }),
            ),
            h("span", { class: "numeric" }, format.probability(p)),
          ),
        ),
      ),
    );
  }

  /** The texts of both values of a change; numbers with as many digits as tell them apart. */
  function changed({ feature, from, to }) {
    const texts =
      typeof from === "number" && typeof to === "number" && report.kindOf(feature) !== "time"
        ? format.apart(from, to)
        : [from, to].map((value) => format.cell(value, report.kindOf(feature)));
    return texts.map((text) => report.name(text, 30));
  }

  function flip(model, row) {
    if (!model.flips) return null;
    const nearest = model.flips[row];
    const text = nearest
      ? [
          h(
            "p",
            {},
            "With ",
            nearest.changes.flatMap((change, k) => [
              k ? " and " : "",
              h("strong", {}, report.name(change.feature, 30)),
              " ",
              changed(change)[1],
              " instead of ",
              changed(change)[0],
            ]),
            ", the prediction is ",
            h(
              "strong",
              {},
              report.name(
                typeof nearest.label === "number"
                  ? format.number(nearest.label)
                  : (nearest.label ?? "another"),
                30,
              ),
            ),
            format.absent(nearest.value) || nearest.value === nearest.label
              ? ""
              : ` (${report.payload.task === "regression" ? format.number(nearest.value) : `probability ${format.probability(nearest.value)}`})`,
            ".",
          ),
        ]
      : h("p", { class: "muted" }, "No change of one or two of its values gives another prediction.");
    return h(
      "div",
      { class: "card flip" },
      h(
        "h3",
        {},
        report.payload.task === "regression"
          ? "Smallest change that moves the prediction by one residual standard deviation"
          : "Smallest change that flips the prediction",
      ),
      text,
      model.flip_rule && h("p", { class: "note" }, model.flip_rule),
    );
  }

  const shortValue = (text) =>
    h("span", { class: text.length <= 16 ? "nowrap" : null }, report.name(text, 24));

  function valueTable(model, row, output) {
    const { columns } = report.payload.rows;
    const contributions = new Map();
    if (model.shap)
      model.shap.features.forEach((feature, f) =>
        contributions.set(feature, model.shap.values[output][f][row]),
      );
    const rows = Object.keys(columns).map((name) => ({
      name,
      value: columns[name][row],
      kind: report.kindOf(name),
      part: contributions.has(name) ? contributions.get(name) : null,
    }));
    rows.sort((a, b) => Math.abs(b.part ?? 0) - Math.abs(a.part ?? 0));
    const shown = [
      { label: "Column", head: true, value: (r) => r.name, cell: (r) => report.name(r.name, 22) },
      {
        label: "Value",
        value: (r) => r.value,
        cell: (r) =>
          format.absent(r.value)
            ? h("span", { class: "muted" }, "missing")
            : shortValue(format.cell(r.value, r.kind)),
      },
    ];
    if (model.shap) {
      shown.push({
        label: "Contribution",
        numeric: true,
        value: (r) => r.part,
        cell: (r) =>
          format.absent(r.part)
            ? format.DASH
            : h("span", { class: r.part > 0 ? "raises" : "lowers" }, format.signed(r.part)),
      });
    }
    return tables.table(shown, rows, { caption: "Values of the row", sortable: true, limit: 14 });
  }

  /** The path of a row in the chosen tree as a list of conditions and their outcomes. */
  function pathList(model, row) {
    const { trees } = model;
    const tree = Math.min(forest.count(trees) - 1, report.state.get("tree"));
    const trail = forest.path(trees, tree, row);
    const outputs = forest.outputs;
    const { columns } = report.payload.rows;
    return h(
      "ol",
      { class: "path" },
      trail.map((node) =>
        node.leaf
          ? h(
              "li",
              { class: "leaf" },
              h("strong", {}, "leaf value ", forest.valueText(node.value, outputs)),
              format.absent(node.cover) ? "" : ` · cover ${format.number(node.cover)}`,
            )
          : h(
              "li",
              {},
              h("span", { class: node.holds ? "yes" : "no" }, node.holds ? "yes" : "no"),
              h(
                "span",
                {},
                report.name(node.feature, 30),
                " ",
                report.name(forest.conditionText(node.condition), 60),
                node.feature in columns
                  ? h(
                      "span",
                      { class: "muted" },
                      " — here ",
                      report.name(
                        format.cell(columns[node.feature][row], report.kindOf(node.feature)),
                        24,
                      ),
                    )
                  : null,
              ),
            ),
      ),
    );
  }

  function paths(model) {
    const picker = report.treePicker(model.trees);
    const container = h("div", { "aria-live": "polite" });
    const whole = h(
      "div",
      { class: "card" },
      h("h3", {}, "Path in each tree"),
      picker,
      container,
      report.shows("trees") &&
        h(
          "p",
          { class: "note print-hide" },
          h("a", { href: "#trees" }, "Show this path in the tree explorer"),
        ),
    );
    whole.show = (row) => {
      picker.follow();
      report.replace(container, pathList(model, row));
    };
    return whole;
  }

  /** The output that a row's contributions explain at first: the predicted class. */
  function firstOutput(model, row) {
    const { outputs } = model.shap || { outputs: [] };
    const label =
      model.predictions && model.predictions.label ? String(model.predictions.label[row]) : null;
    return Math.max(0, outputs.map(String).indexOf(label));
  }

  function explorer(model) {
    const finder = report.rowFinder(model);
    const spoken = h("p", { class: "visually-hidden", "aria-live": "polite" });
    const upper = h("div", { class: "stack" });
    const left = h("div", { class: "stack" });
    const right = h("div", { class: "stack" });
    const tracks =
      model.trees && model.trees.start.length && model.trees.leaves ? paths(model) : null;
    let output = null;

    function show(row) {
      const chosen = output ?? firstOutput(model, row);
      const several = model.shap && model.shap.outputs.length > 1;
      report.replace(upper, answer(model, row), flip(model, row));
      report.replace(
        left,
        several &&
          report.select(
            "Contributions to",
            model.shap.outputs.map((label, k) => [k, label]),
            chosen,
            (key) => {
              output = Number(key);
              show(report.state.get("row"));
            },
          ),
        model.shap ? report.waterfall(model, row, chosen) : null,
        tracks,
      );
      report.replace(right, probabilities(model, row), valueTable(model, row, chosen));
      if (tracks) tracks.show(row);
      finder.follow();
    }

    const whole = h(
      "div",
      { class: "explorer stack" },
      finder,
      spoken,
      upper,
      h("div", { class: "explorer-columns" }, left, right),
    );
    whole.show = (row) => {
      output = null;
      show(row);
      const { label } = model.predictions || {};
      spoken.textContent = `Row ${format.count(report.payload.rows.index[row])}${label ? `, prediction ${typeof label[row] === "number" ? format.number(label[row]) : label[row]}` : ""}`;
    };
    whole.tracks = () => tracks && tracks.show(report.state.get("row"));
    show(report.state.get("row"));
    return whole;
  }

  let current = null;
  report.state.watch("row", (row) => current && current.isConnected && current.show(row));
  report.state.watch("tree", () => current && current.isConnected && current.tracks());

  report.sections.add({
    id: "rows",
    title: "Row explorer",
    perModel: true,
    applies: () => Boolean(report.payload.rows && report.payload.rows.index.length),
    lede: () =>
      `One row at a time, from a sample of ${format.count(report.payload.rows.index.length)}: the prediction, the reasons for it, and the smallest change that would alter it.`,
    build(body, model) {
      current = explorer(model);
      body.append(current);
    },
  });
})(window.arboostReport);
