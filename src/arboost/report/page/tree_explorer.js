/* Section "Trees": a picker of trees, the drawing of one, details of the node in focus. */
((report) => {
  "use strict";

  const { h, format, forest } = report;
  const OPEN = 3; // levels that are open at first

  /** Number field, slider and buttons that choose a tree; shared with the row explorer. */
  function treePicker(trees) {
    const n = forest.count(trees);
    const clamp = (k) => Math.min(n - 1, Math.max(0, k));
    const move = (k) => report.state.set("tree", clamp(k));
    const field = h("input", {
      type: "number",
      min: 1,
      max: n,
      class: "short",
      on: { change: () => move(Number(field.value || 1) - 1) },
    });
    const slider = h("input", {
      type: "range",
      min: 1,
      max: n,
      step: 1,
      "aria-label": "Tree",
      on: { input: () => move(Number(slider.value) - 1) },
    });
    const previous = report.button("‹", () => move(report.state.get("tree") - 1), {
      "aria-label": "Previous tree",
    });
    const next = report.button("›", () => move(report.state.get("tree") + 1), {
      "aria-label": "Next tree",
    });
    const show = () => {
      const k = clamp(report.state.get("tree"));
      field.value = k + 1;
      slider.value = k + 1;
      slider.setAttribute("aria-valuetext", `tree ${k + 1} of ${n}`);
      previous.disabled = k === 0;
      next.disabled = k === n - 1;
    };
    const whole = h(
      "div",
      { class: "controls tree-picker" },
      previous,
      h(
        "label",
        { class: "field" },
        h("span", {}, "Tree"),
        field,
        h("span", {}, `of ${format.count(n)}`),
      ),
      next,
      n > 2 && slider,
    );
    whole.follow = show;
    show();
    return whole;
  }

  /** Facts of a node, for the box beside the drawing. */
  function details(data, trees) {
    const outputs = forest.outputs;
    const pairs = [["Node", data.leaf ? `leaf ${data.index}` : `split ${data.index}`]];
    if (!data.leaf) {
      pairs.push(
        ["Feature", report.name(data.feature, 40)],
        ["Condition", report.name(forest.conditionText(data.condition), 120)],
      );
      if (data.missing)
        pairs.push(["Missing values go", data.missing === "left" ? "to yes" : "to no"]);
      if (!format.absent(data.gain)) pairs.push(["Gain", format.number(data.gain)]);
    }
    if (!format.absent(data.cover)) pairs.push(["Cover", format.number(data.cover)]);
    if (Array.isArray(data.value) && data.value.length > 1) {
      data.value
        .slice(0, 12)
        .forEach((value, k) =>
          pairs.push([format.short(outputs[k] ?? `value ${k}`, 24), format.number(value)]),
        );
    } else if (!format.absent(data.value))
      pairs.push([
        trees.unit ? `Value (${trees.unit})` : "Value",
        forest.valueText(data.value, outputs),
      ]);
    return report.tables.facts(pairs);
  }

  function explorer(model) {
    const { trees } = model;
    const clamp = () => Math.min(forest.count(trees) - 1, report.state.get("tree"));
    const outputs = forest.outputs;
    const flipped = new Set(); // nodes whose state differs from what the depth says
    let depth = OPEN;
    let focused = 0;

    const scroll = h("div", { class: "tree-box", tabindex: "-1" });
    const facts = h("div", { class: "node-details", "aria-live": "polite" });
    const about = h("p", { class: "note", role: "status" });
    const picker = treePicker(trees);
    const levels = report.select(
      "Open to depth",
      [1, 2, 3, 4, 5, 6, 8, 99].map((level) => [level, level === 99 ? "all" : level]),
      depth,
      (value) => {
        depth = Number(value);
        flipped.clear();
        show();
      },
    );

    function show(keepFocus = false) {
      const tree = clamp();
      const trail = report.payload.rows ? forest.path(trees, tree, report.state.get("row")) : [];
      const onPath = new Set(trail.map((node) => node.index));
      // The path of the row stays open, whatever the depth.
      const closed = (node) =>
        (node.depth >= depth && !onPath.has(node.index)) !== flipped.has(node.index);
      const root = forest.nested(trees, tree, closed);
      const drawing = report.treeDrawing({
        root,
        onPath,
        outputs,
        focused,
        label: `Tree ${tree + 1}. Arrow keys move between nodes, Enter opens and closes a node.`,
        focus(data) {
          for (const item of drawing.querySelectorAll("[data-node]")) {
            const here = Number(item.dataset.node) === data.index;
            item.setAttribute("tabindex", here ? "0" : "-1");
            item.setAttribute("aria-selected", String(here));
          }
          focused = data.index;
          report.replace(facts, details(data, trees));
        },
        toggle(data) {
          focused = data.index;
          if (!data.leaf) {
            if (flipped.has(data.index)) flipped.delete(data.index);
            else flipped.add(data.index);
            show(true);
          } else drawing.querySelector(`[data-node="${data.index}"]`).focus();
        },
      });
      report.replace(scroll, drawing);
      if (keepFocus)
        drawing.querySelector(`[data-node="${focused}"]`).focus({ preventScroll: true });
      const size =
        (tree + 1 < trees.start.length ? trees.start[tree + 1] : trees.feature.length) -
        trees.start[tree];
      const label =
        new Set(trees.output || []).size > 1
          ? ` It adds to ${format.short(outputs[trees.output[tree]] ?? trees.output[tree], 30)}.`
          : "";
      const row = trail.length
        ? ` The path of row ${format.count(report.payload.rows.index[report.state.get("row")])} is in colour.`
        : "";
      about.textContent = `Tree ${tree + 1}: ${format.plural((size + 1) / 2, "leaf", "leaves")}.${label}${row}`;
      if (!drawing.querySelector(`[data-node="${focused}"]`)) focused = 0;
    }

    const reset = () => {
      flipped.clear();
      focused = 0;
      picker.follow();
      show();
      report.replace(facts, details(forest.node(trees, clamp(), 0), trees));
    };
    reset();
    const whole = h(
      "div",
      { class: "card tree-explorer" },
      h("div", { class: "controls" }, picker, levels),
      about,
      h("div", { class: "tree-columns" }, scroll, facts),
    );
    whole.reset = reset;
    return whole;
  }

  let current = null;
  const refresh = () => current && current.isConnected && current.reset();
  report.state.watch("tree", refresh);
  report.state.watch("row", refresh);

  report.treePicker = treePicker;
  report.sections.add({
    id: "trees",
    title: "Tree explorer",
    perModel: true,
    applies: () => report.models.some((model) => model.trees && model.trees.start.length),
    lede: (model) => {
      const { trees } = model;
      if (!trees || !trees.start.length)
        return (trees && trees.reason) || "This model has no trees to show.";
      const reason = trees.reason ? `${trees.reason} ` : "";
      return `${reason}A line's width shows the cover of a node: the weight of its training rows. Rows for which a condition holds go up.`;
    },
    build(body, model) {
      if (!model.trees || !model.trees.start.length) return;
      current = explorer(model);
      body.append(current);
    },
  });
})(window.arboostReport);
