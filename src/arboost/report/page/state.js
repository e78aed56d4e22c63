/* The reader's choices that several sections share (model, row, tree), and the list of sections. */
((report) => {
  "use strict";

  const values = { model: 0, row: 0, tree: 0 };
  const listeners = { model: [], row: [], tree: [] };

  report.state = {
    get: (key) => values[key],
    /** Change a choice and tell the sections. */
    set(key, value) {
      if (values[key] === value) return;
      values[key] = value;
      for (const listener of listeners[key]) listener(value);
    },
    watch(key, listener) {
      listeners[key].push(listener);
    },
  };

  /** The model that the explorers show. */
  report.model = () => report.models[values.model];

  const known = new Map();
  report.sections = {
    /** Register a section: { id, title, applies(), lede, hint(), perModel, build(body, model) }. */
    add: (section) => known.set(section.id, section),
    get: (id) => known.get(id),
  };

  const columns = new Map(
    ((report.payload.data || {}).columns || []).map((column) => [column.name, column]),
  );
  /** The kind of a column: number, category, time or bool. */
  report.kindOf = (name) => (columns.get(name) || {}).kind;

  /** Number of series colours; further series take the same ones again, with dashes. */
  report.COLOURS = 8;

  /** Colour of a series: of the n-th model, class or output. */
  report.colour = (index) => `var(--c${(index % report.COLOURS) + 1})`;

  /** Whether this page has a section: the whole report, or a choice of sections. */
  report.shows = (id) => !report.payload.only || report.payload.only.includes(id);
})(window.arboostReport);
