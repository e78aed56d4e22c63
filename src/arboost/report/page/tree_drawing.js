/* The drawing of one tree, from left to right: nodes as boxes, the path of a row in colour. */
((report) => {
  "use strict";

  const { s, format, forest } = report;
  const BOX = { width: 148, height: 40 };
  const STEP = { x: 188, y: 50 };

  function caption(data, outputs) {
    if (data.leaf)
      return [
        forest.valueText(data.value, outputs),
        format.absent(data.cover) ? "" : `cover ${format.number(data.cover)}`,
      ];
    const letters = data.children ? [18, 21] : [16, 16]; // a closed node has its plus at the right
    return [
      format.short(data.feature, letters[0]),
      format.short(forest.conditionText(data.condition), letters[1]),
    ];
  }

  function words(data, outputs) {
    const cover = format.absent(data.cover) ? "" : `, cover ${format.number(data.cover)}`;
    return data.leaf
      ? `leaf, value ${forest.valueText(data.value, outputs)}${cover}`
      : `${data.feature} ${data.condition}${cover}`;
  }

  /**
   * An SVG tree.
   *
   * options: root (nested nodes), onPath: Set of node indices, outputs, toggle(index), focus(data),
   * focused: index of the node that holds the tab stop
   */
  function treeDrawing(options) {
    const { root, onPath, outputs } = options;
    const layout = d3
      .tree()
      .nodeSize([STEP.y, STEP.x])
      .separation((a, b) => (a.parent === b.parent ? 1 : 1.15));
    const top = layout(d3.hierarchy(root));
    const nodes = top.descendants();
    const [low, high] = d3.extent(nodes, (node) => node.x);
    const depth = d3.max(nodes, (node) => node.depth);
    const width = depth * STEP.x + BOX.width + 8;
    const height = high - low + BOX.height + 12;
    const place = (node) => ({ x: node.y + 4, y: node.x - low + BOX.height / 2 + 6 });
    const most = root.cover || 1;
    const thick = (data) =>
      format.absent(data.cover) ? 1.5 : 1 + 5 * Math.sqrt(data.cover / most);
    const spread =
      d3.max(nodes, (node) =>
        node.data.leaf && !Array.isArray(node.data.value) ? Math.abs(node.data.value) : 0,
      ) || 1;

    const links = top.links().map(({ source, target }) => {
      const [a, b] = [place(source), place(target)];
      const start = a.x + BOX.width;
      const bend = (start + b.x) / 2;
      const yes = target === source.children[0];
      const used = onPath.has(target.data.index) && onPath.has(source.data.index);
      return s(
        "g",
        { class: `edge${used ? " on-path" : ""}` },
        s("path", {
          d: `M${start},${a.y}C${bend},${a.y} ${bend},${b.y} ${b.x},${b.y}`,
          "stroke-width": thick(target.data).toFixed(1),
        }),
        s(
          "text",
          { x: b.x - 7, y: b.y + (yes ? -6 : 15), "text-anchor": "end" },
          yes ? "yes" : "no",
        ),
      );
    });

    const boxes = nodes.map((item) => {
      const { data } = item;
      const at = place(item);
      const [first, second] = caption(data, outputs);
      const closed = !data.leaf && !data.children;
      const tint =
        data.leaf && !Array.isArray(data.value) ? Math.min(1, Math.abs(data.value) / spread) : 0;
      const box = s(
        "g",
        {
          class: `node${data.leaf ? " leaf" : ""}${onPath.has(data.index) ? " on-path" : ""}${closed ? " closed" : ""}`,
          transform: `translate(${at.x},${at.y - BOX.height / 2})`,
          role: "treeitem",
          "aria-level": item.depth + 1,
          "aria-expanded": data.leaf ? null : String(!closed),
          "aria-label": `${words(data, outputs)}${onPath.has(data.index) ? ", on the path of the row" : ""}`,
          "aria-selected": "false",
          tabindex: data.index === options.focused ? "0" : "-1",
          "data-node": data.index,
        },
        s("title", {}, words(data, outputs)),
        s("rect", { class: "face", width: BOX.width, height: BOX.height, rx: 7 }),
        data.leaf &&
          s("rect", {
            class: "sign",
            width: 6,
            height: BOX.height - 14,
            x: 7,
            y: 7,
            rx: 2,
            fill: data.value < 0 ? "var(--down)" : "var(--up)",
            "fill-opacity": (0.15 + 0.85 * tint).toFixed(2),
          }),
        s("text", { class: "first", x: data.leaf ? 21 : 11, y: 17 }, first),
        s("text", { class: "second", x: data.leaf ? 21 : 11, y: 32 }, second),
        closed &&
          s("text", { class: "plus", x: BOX.width - 11, y: 25, "text-anchor": "middle" }, "+"),
      );
      box.addEventListener("click", () => options.toggle(data));
      box.addEventListener("focus", () => options.focus(data));
      return box;
    });

    const svg = s(
      "svg",
      {
        class: "tree",
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        role: "tree",
        "aria-label": options.label,
      },
      s("g", {}, links),
      boxes,
    );
    svg.addEventListener("keydown", (event) => keys(event, svg, top, options));
    return svg;
  }

  /** Keys of a tree: right opens or enters, left closes or leaves, up and down walk the drawn nodes. */
  function keys(event, svg, top, options) {
    const here = event.target.closest("[data-node]");
    if (!here) return;
    const order = [];
    top.eachBefore((node) => order.push(node));
    const at = order.findIndex((node) => node.data.index === Number(here.dataset.node));
    const item = order[at];
    const go = (node) => node && svg.querySelector(`[data-node="${node.data.index}"]`).focus();
    const { data } = item;
    const actions = {
      ArrowDown: () => go(order[at + 1]),
      ArrowUp: () => go(order[at - 1]),
      ArrowRight: () =>
        data.leaf ? null : data.children ? go(item.children[0]) : options.toggle(data),
      ArrowLeft: () =>
        data.children && !data.leaf && event.shiftKey ? options.toggle(data) : go(item.parent),
      Home: () => go(order[0]),
      End: () => go(order.at(-1)),
      Enter: () => options.toggle(data),
      " ": () => options.toggle(data),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  report.treeDrawing = treeDrawing;
})(window.arboostReport);
