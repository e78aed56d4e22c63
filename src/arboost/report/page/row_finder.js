/* The control that chooses a row: by number, previous and next, search and order. */
((report) => {
  "use strict";

  const { h, format } = report;

  /** A test of rows from a query: `column > 3`, `column = text`, or text in any cell. */
  function matcher(query, model) {
    const { rows } = report.payload;
    const text = query.trim().toLowerCase();
    if (!text) return () => true;
    const comparison = /^(.+?)\s*(<=|>=|!=|=|<|>)\s*(.+)$/.exec(query.trim());
    const column =
      comparison &&
      Object.keys(rows.columns).find((name) => name.toLowerCase() === comparison[1].toLowerCase());
    if (column) {
      const [, , sign, right] = comparison;
      const values = rows.columns[column];
      const wanted = right.trim().toLowerCase();
      const limit = Number(right);
      const same = (value) =>
        value === null
          ? wanted === "missing"
          : String(value).toLowerCase() === wanted || (wanted !== "" && value === limit);
      const tests = {
        "=": (k) => same(values[k]),
        "!=": (k) => !same(values[k]),
        "<": (k) => typeof values[k] === "number" && values[k] < limit,
        ">": (k) => typeof values[k] === "number" && values[k] > limit,
        "<=": (k) => typeof values[k] === "number" && values[k] <= limit,
        ">=": (k) => typeof values[k] === "number" && values[k] >= limit,
      };
      return tests[sign];
    }
    const { label } = model.predictions || {};
    return (k) =>
      String(rows.index[k]) === text ||
      String(rows.truth ? rows.truth[k] : "")
        .toLowerCase()
        .includes(text) ||
      String(label ? label[k] : "")
        .toLowerCase()
        .includes(text) ||
      Object.values(rows.columns).some((values) =>
        String(values[k] === null ? "missing" : values[k])
          .toLowerCase()
          .includes(text),
      );
  }

  /** Orders of the rows that the model's predictions allow: [key, label, score of a row]. */
  function orders(model) {
    const { rows } = report.payload;
    const { correct, error, proba } = model.predictions || {};
    const list = [["index", "row number", (k) => rows.index[k]]];
    if (error) list.push(["error", "largest error first", (k) => -Math.abs(error[k] ?? 0)]);
    if (proba && report.payload.classes && rows.truth) {
      const classIndex = new Map(report.payload.classes.map((name, k) => [String(name), k]));
      list.push([
        "wrong",
        "worst mistakes first",
        (k) => proba[k][classIndex.get(String(rows.truth[k]))] ?? 0,
      ]);
    } else if (correct) list.push(["wrong", "mistakes first", (k) => (correct[k] ? 1 : 0)]);
    if (proba) list.push(["unsure", "least certain first", (k) => Math.max(...proba[k])]);
    return list;
  }

  /** The control. `onRow(k)` is called with the position of the row in the sample. */
  function rowFinder(model) {
    const { rows } = report.payload;
    const all = d3.range(rows.index.length);
    const kinds = orders(model);
    let order = kinds[0];
    let list = all;

    const status = h("p", { class: "note", role: "status" });
    const number = h("input", {
      type: "text",
      inputmode: "numeric",
      class: "short",
      "aria-label": "Row number",
      autocomplete: "off",
      on: { change: () => goTo(number.value), keydown: (event) => arrows(event) },
    });
    const search = h("input", {
      type: "search",
      placeholder: "text, or column > 3",
      "aria-label": "Search rows",
      autocomplete: "off",
      on: { input: () => refresh(true) },
    });
    const previous = report.button(
      ["‹", h("span", { class: "wide-only" }, " Previous")],
      () => step(-1),
      { "aria-label": "Previous row" },
    );
    const next = report.button([h("span", { class: "wide-only" }, "Next "), "›"], () => step(1), {
      "aria-label": "Next row",
    });

    function arrows(event) {
      const move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      step(move);
    }

    function goTo(text) {
      const wanted = Number(String(text).replace(/[,\s]/g, ""));
      if (!Number.isFinite(wanted) || String(text).trim() === "") return say();
      const nearest = d3.least(all, (k) => Math.abs(rows.index[k] - wanted));
      if (rows.index[nearest] !== wanted) {
        report.state.set("row", nearest);
        say(
          `Row ${format.count(wanted)} is not in the sample; the nearest is row ${format.count(rows.index[nearest])}.`,
        );
        return undefined;
      }
      report.state.set("row", nearest);
      return say();
    }

    function step(move) {
      if (!list.length) return;
      const position = list.indexOf(report.state.get("row"));
      const to = position < 0 ? 0 : (position + move + list.length) % list.length;
      report.state.set("row", list[to]);
      say();
    }

    function say(text) {
      const row = report.state.get("row");
      number.value = rows.index[row];
      const position = list.indexOf(row);
      previous.disabled = next.disabled = list.length < 2 && position >= 0;
      if (text) status.textContent = text;
      else if (!list.length) status.textContent = "No row matches.";
      else {
        const narrowed =
          list.length < all.length
            ? ` of ${format.plural(list.length, "matching row")}`
            : ` of ${format.plural(all.length, "sampled row")}`;
        status.textContent =
          position < 0
            ? `${format.plural(list.length, "row")} match; this row does not.`
            : `Row ${format.count(rows.index[row])}, ${format.count(position + 1)}${narrowed}.`;
      }
    }

    function refresh(jump) {
      const matches = matcher(search.value, model);
      const score = order[2];
      list = all
        .filter(matches)
        .map((k) => [score(k), k])
        .sort((a, b) => a[0] - b[0])
        .map((pair) => pair[1]);
      if (jump && list.length && !list.includes(report.state.get("row")))
        report.state.set("row", list[0]);
      say();
    }

    const whole = h(
      "div",
      { class: "card finder" },
      h(
        "div",
        { class: "controls" },
        h(
          "div",
          { class: "step-row" },
          previous,
          h("label", { class: "field" }, h("span", {}, "Row"), number),
          next,
        ),
        h("label", { class: "field grow" }, h("span", {}, "Search"), search),
        kinds.length > 1 &&
          report.select(
            "Order",
            kinds.map(([key, label]) => [key, label]),
            "index",
            (key) => {
              order = kinds.find(([name]) => name === key);
              refresh(false);
              if (list.length) {
                report.state.set("row", list[0]);
                say();
              }
            },
          ),
      ),
      status,
    );
    whole.follow = () => say();
    refresh(false);
    return whole;
  }

  report.rowFinder = rowFinder;
})(window.arboostReport);
