/* Tables: headers with scope, sorting by click or key, a scroll box of their own, bars in cells. */
((report) => {
  "use strict";

  const { h, button, format } = report;

  function compare(left, right) {
    const missing = Number(report.format.absent(left)) - Number(report.format.absent(right));
    if (missing) return missing * Infinity; // at the end in both directions
    return typeof left === "number" && typeof right === "number"
      ? left - right
      : String(left).localeCompare(String(right), "en", { numeric: true });
  }

  /** A share of a cell's width as a bar behind or beside the text. */
  const bar = (share, text, colour = "var(--c1)") =>
    h(
      "span",
      { class: "bar-cell" },
      h("span", { class: "bar-text" }, text),
      h(
        "span",
        { class: "bar", "aria-hidden": "true" },
        h("span", {
          style: { width: `${Math.max(0, Math.min(1, share || 0)) * 100}%`, background: colour },
        }),
      ),
    );

  /**
   * A table in a scroll box.
   *
   * columns: [{ label, value(row) -> sort key, cell(row) -> node or text, numeric, head, sortable }]
   * options: { caption, sortable, limit, empty, rowAttributes(row) }
   */
  function table(columns, rows, options = {}) {
    const order = { column: null, down: false };
    let all = !options.limit || rows.length <= options.limit;
    const body = h("tbody");
    const heads = columns.map((column, index) => {
      const sortable = options.sortable && column.sortable !== false;
      const inside = sortable
        ? button(column.label, () => sort(index), { class: "sort" })
        : column.label;
      return h(
        "th",
        {
          scope: "col",
          class: column.numeric ? "numeric" : null,
          "aria-sort": sortable ? "none" : null,
          "data-label": sortable ? column.label : null,
        },
        inside,
      );
    });

    function sorted() {
      if (order.column === null) return rows;
      const key = columns[order.column].value;
      const signum = order.down ? -1 : 1;
      return rows
        .map((row) => [key(row), row])
        .sort((a, b) => {
          const difference = compare(a[0], b[0]);
          return Number.isFinite(difference) ? signum * difference : difference;
        })
        .map((pair) => pair[1]);
    }

    function show() {
      const shown = all ? sorted() : sorted().slice(0, options.limit);
      report.replace(
        body,
        shown.map((row) =>
          h(
            "tr",
            options.rowAttributes ? options.rowAttributes(row) : {},
            columns.map((column) =>
              h(
                column.head ? "th" : "td",
                { scope: column.head ? "row" : null, class: column.numeric ? "numeric" : null },
                column.cell(row),
              ),
            ),
          ),
        ),
      );
    }

    function sort(index) {
      // Numbers start with the largest, texts with the first of the alphabet.
      order.down = order.column === index ? !order.down : Boolean(columns[index].numeric);
      order.column = index;
      heads.forEach((head, other) => {
        if (head.hasAttribute("aria-sort")) {
          head.setAttribute(
            "aria-sort",
            other !== index ? "none" : order.down ? "descending" : "ascending",
          );
        }
      });
      show();
    }

    show();
    const box = h(
      "div",
      { class: "table-box", tabindex: "0", role: "region", "aria-label": options.caption },
      h(
        "table",
        {},
        h("caption", { class: options.showCaption ? null : "visually-hidden" }, options.caption),
        h("thead", {}, h("tr", {}, heads)),
        body,
      ),
    );
    const parts = [box];
    if (!all) {
      const more = button(
        `Show all ${format.count(rows.length)}`,
        () => {
          all = true;
          more.remove();
          part.remove();
          show();
        },
        { class: "more" },
      );
      const part = h(
        "p",
        { class: "note print-only" },
        `The first ${options.limit} of ${format.count(rows.length)}; the page shows all of them.`,
      );
      parts.push(more, part);
    }
    return h("div", { class: "table-whole" }, parts);
  }

  /** The plain table behind a chart: { columns: [label], rows: [[value]] }. */
  const plain = (caption, data) =>
    table(
      data.columns.map((label, index) => ({
        label,
        numeric: data.rows.length > 0 && typeof data.rows[0][index] === "number",
        head: index === 0,
        value: (row) => row[index],
        cell: (row) =>
          typeof row[index] === "string" ? report.name(row[index], 48) : format.number(row[index]),
      })),
      data.rows,
      { caption, sortable: true, limit: 200 },
    );

  /** A list of label and value pairs. */
  const facts = (pairs) =>
    h(
      "dl",
      { class: "facts" },
      pairs.map(([label, value]) =>
        h(
          "div",
          {},
          h("dt", {}, label),
          h("dd", {}, value instanceof Node ? value : report.name(value, 120)),
        ),
      ),
    );

  report.tables = { table, plain, facts, bar };
})(window.arboostReport);
