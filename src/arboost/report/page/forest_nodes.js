/* Trees of the payload: nodes of a tree, the leaf of a row, the path from root to leaf. */
((report) => {
  "use strict";

  const { format } = report;
  const packed = new WeakMap(); // trees -> leaf of each row in each tree

  function leaves(trees) {
    if (!packed.has(trees)) {
      const bytes = Uint8Array.from(window.atob(trees.leaves || ""), (char) => char.charCodeAt(0));
      const view = new DataView(bytes.buffer);
      packed.set(
        trees,
        Uint16Array.from({ length: bytes.length / 2 }, (_, k) => view.getUint16(2 * k, true)),
      );
    }
    return packed.get(trees);
  }

  const count = (trees) => trees.start.length;

  /** The node of a row's leaf within its tree, or null where the payload has no leaves. */
  function leafOf(trees, tree, row) {
    return leaves(trees)[row * count(trees) + tree] ?? null;
  }

  /** One node as an object, by its index within the tree. */
  function node(trees, tree, index) {
    const position = trees.start[tree] + index;
    const leaf = trees.left[position] < 0;
    return {
      index,
      leaf,
      feature: leaf ? null : trees.names[trees.feature[position]],
      condition: leaf ? "" : trees.condition[position],
      left: trees.left[position],
      right: trees.right[position],
      value: trees.value[position],
      cover: trees.cover ? trees.cover[position] : null,
      gain: trees.gain ? trees.gain[position] : null,
      missing: trees.missing && !leaf ? (trees.missing[position] ? "right" : "left") : null,
    };
  }

  /** Nodes from the root to the leaf of a row, each with `holds`: whether its condition holds. */
  function path(trees, tree, row) {
    const target = leafOf(trees, tree, row);
    if (target === null) return [];
    const trail = [];
    const visit = (index) => {
      const here = node(trees, tree, index);
      if (index === target) {
        trail.push(here);
        return true;
      }
      if (here.leaf) return false;
      for (const side of ["left", "right"]) {
        if (visit(here[side])) {
          trail.push({ ...here, holds: side === "left" });
          return true;
        }
      }
      return false;
    };
    visit(0);
    return trail.reverse();
  }

  /** The tree as nested nodes for a layout; nodes in `closed` have no children. */
  function nested(trees, tree, closed) {
    const visit = (index, depth) => {
      const here = { ...node(trees, tree, index), depth };
      if (!here.leaf && !closed(here))
        here.children = [visit(here.left, depth + 1), visit(here.right, depth + 1)];
      return here;
    };
    return visit(0, 0);
  }

  /** The value of a leaf as text: a number, or the largest of several with its label. */
  function valueText(value, outputs) {
    if (!Array.isArray(value)) return format.number(value);
    if (value.length === 1) return format.number(value[0]);
    const best = value.indexOf(Math.max(...value));
    return `${format.short((outputs || [])[best] ?? best, 14)} ${format.number(value[best])}`;
  }

  const signs = { "<=": "≤", ">=": "≥", "!=": "≠" };
  /** A condition with the signs of print. */
  const conditionText = (text) =>
    format.signs(String(text).replace(/^(<=|>=|!=)/, (sign) => signs[sign]));

  /** The labels of a tree's values. */
  const outputs = report.payload.classes || [];

  report.forest = { count, leafOf, node, path, nested, valueText, conditionText, outputs };
})(window.arboostReport);
