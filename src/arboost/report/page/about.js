/* Sections "Model" (facts, parameters, timings, hash) and "Reproduce" (commands and code). */
((report) => {
  "use strict";

  const { h, format, tables } = report;

  const write = (value) =>
    value === null || value === undefined
      ? "None"
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);

  function parameters(model) {
    const changed = ([, value, standard]) =>
      standard !== null && standard !== undefined && write(value) !== write(standard);
    const rows = [...model.params.filter(changed), ...model.params.filter((row) => !changed(row))];
    return tables.table(
      [
        {
          label: "Parameter",
          head: true,
          value: (row) => row[0],
          cell: (row) => h("code", {}, report.name(row[0], 40)),
        },
        {
          label: "Value",
          value: (row) => row[1],
          cell: (row) =>
            h("code", { class: changed(row) ? "changed" : null }, report.name(write(row[1]), 60)),
        },
        {
          label: "Default",
          value: (row) => row[2],
          cell: (row) =>
            row[2] === null || row[2] === undefined
              ? format.DASH
              : h("code", { class: "muted" }, report.name(write(row[2]), 40)),
        },
      ],
      rows,
      { caption: "Parameters and their defaults", sortable: true, limit: 14 },
    );
  }

  function hash(model) {
    if (!model.hash) return null;
    const code = h("code", { class: "hash" }, model.hash);
    return h(
      "div",
      { class: "card hash-card" },
      h("h3", {}, "Model file, SHA-256"),
      h("div", { class: "code-line" }, code, report.copyButton(model.hash, code)),
    );
  }

  report.sections.add({
    id: "about",
    title: "Model",
    perModel: true,
    applies: () => report.models.some((model) => model.facts || model.params || model.timings),
    build(body, model) {
      const card = (title, pairs) =>
        pairs && pairs.length
          ? h("div", { class: "card" }, h("h3", {}, title), tables.facts(pairs))
          : null;
      const notes =
        model.notes && model.notes.length
          ? h(
              "div",
              { class: "card" },
              h("h3", {}, "Notes"),
              h(
                "ul",
                { class: "notes" },
                model.notes.map((note) => h("li", {}, note)),
              ),
            )
          : null;
      const right = [card("Timings", model.timings), hash(model), notes].filter(Boolean);
      body.append(
        h(
          "div",
          { class: "pair start" },
          card("Facts", model.facts) || "",
          h("div", { class: "stack" }, right),
        ),
      );
      if (model.params && model.params.length) body.append(parameters(model));
    },
  });

  report.sections.add({
    id: "repeat",
    title: "Reproduce",
    perModel: true,
    applies: () => report.models.some((model) => (model.repeat || []).length),
    lede: "Commands and code that make this report again.",
    build(body, model) {
      for (const [label, text] of model.repeat || []) {
        const code = h(
          "pre",
          { tabindex: "0", role: "region", "aria-label": label },
          h("code", {}, text),
        );
        body.append(
          h(
            "div",
            { class: "card" },
            h("div", { class: "code-head" }, h("h3", {}, label), report.copyButton(text, code)),
            code,
          ),
        );
      }
    },
  });
})(window.arboostReport);
