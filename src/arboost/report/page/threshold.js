/* Section "Threshold": a slider over the payload's thresholds, with counts and rates of each. */
((report) => {
  "use strict";

  const { h, format, charts } = report;

  const ratio = (part, whole) => (whole ? part / whole : null);

  /** Rates of one threshold from its counts. A missed positive costs `miss`, a false alarm 1. */
  function rates({ tp, fp, fn, tn }, miss) {
    return {
      precision: ratio(tp, tp + fp),
      recall: ratio(tp, tp + fn),
      f1: ratio(2 * tp, 2 * tp + fp + fn),
      accuracy: ratio(tp + tn, tp + fp + fn + tn),
      positive: ratio(tp + fp, tp + fp + fn + tn),
      cost: fp + miss * fn,
    };
  }

  function explorer(model) {
    const table = model.binary.thresholds;
    const n = table.t.length;
    const [negative, positive] = report.payload.classes;
    const counts = (k) => ({ tp: table.tp[k], fp: table.fp[k], fn: table.fn[k], tn: table.tn[k] });
    const nearest = (value) => Math.min(n - 1, Math.max(0, d3.bisectCenter(table.t, value)));
    let miss = 1;
    let at = nearest(model.binary.default_threshold ?? 0.5);

    const best = (key, sign) => {
      let top = 0;
      for (let k = 1; k < n; k += 1) {
        const [a, b] = [rates(counts(k), miss)[key], rates(counts(top), miss)[key]];
        if (sign * (a ?? -Infinity * sign) > sign * (b ?? -Infinity * sign)) top = k;
      }
      return top;
    };

    // The slider's place is the threshold itself; the keys step through the payload's thresholds.
    const slider = h("input", {
      type: "range",
      min: 0,
      max: 1,
      step: "any",
      "aria-label": "Threshold",
      on: { input: () => show(nearest(Number(slider.value))), keydown: (event) => key(event) },
    });
    const field = h("input", {
      type: "number",
      min: 0,
      max: 1,
      step: 0.01,
      inputmode: "decimal",
      class: "short",
      on: { change: () => show(nearest(Number(field.value))) },
    });
    const page = Math.max(1, Math.round(n / 10));
    const steps = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: page,
      PageDown: -page,
      Home: -n,
      End: n,
    };
    function key(event) {
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      show(Math.min(n - 1, Math.max(0, at + step)));
    }
    const cost = h("input", {
      type: "number",
      min: 0,
      step: "any",
      value: miss,
      class: "short",
      on: {
        input: () => {
          const value = Number(cost.value);
          if (cost.value === "" || !(value >= 0)) return;
          miss = value;
          show(at);
          figure.redraw();
        },
      },
    });

    const cells = Object.fromEntries(
      ["tp", "fp", "fn", "tn"].map((name) => [
        name,
        h("td", { class: "numeric", "data-count": name }),
      ]),
    );
    const values = Object.fromEntries(
      ["precision", "recall", "f1", "accuracy", "positive", "cost"].map((name) => [
        name,
        h("dd", { "data-rate": name }),
      ]),
    );
    const spoken = h("p", { class: "visually-hidden", "aria-live": "polite" });
    let line = null;
    let timer = 0;

    function show(index) {
      at = index;
      const t = table.t[at];
      const rate = rates(counts(at), miss);
      slider.value = t;
      slider.setAttribute("aria-valuetext", `threshold ${format.number(t)}`);
      field.value = Number(t.toPrecision(4));
      for (const [name, cell] of Object.entries(cells))
        cell.textContent = format.count(table[name][at]);
      for (const name of ["precision", "recall", "f1", "accuracy"])
        values[name].textContent = format.absent(rate[name])
          ? format.DASH
          : rate[name].toFixed(3);
      values.positive.textContent = format.share(rate.positive);
      values.cost.textContent = format.number(rate.cost);
      if (line) line(t);
      window.clearTimeout(timer);
      timer = window.setTimeout(() => {
        spoken.textContent = `Threshold ${format.number(t)}: precision ${format.number(rate.precision)}, recall ${format.number(rate.recall)}, F1 ${format.number(rate.f1)}, cost ${format.number(rate.cost)}`;
      }, 400);
    }

    const series = [
      ["precision", "precision", "var(--c1)"],
      ["recall", "recall", "var(--c2)"],
      ["f1", "F1", "var(--c3)"],
      ["cost", "relative cost", "var(--c5)"],
    ];
    const figure = charts.chart({
      title: "Rates by threshold",
      note: [
        "Cost is relative to its highest value.",
        h("span", { class: "print-hide" }, " Click in the chart to move the threshold."),
      ],
      label: () =>
        `Precision, recall, F1 and relative cost by threshold; highest F1 at threshold ${format.number(table.t[best("f1", 1)])}`,
      height: 280,
      legend: series.map(([, label, colour], k) => [label, colour, k === 3 ? "dash" : "line"]),
      table: () => ({
        columns: [
          "threshold",
          "true positives",
          "false positives",
          "false negatives",
          "true negatives",
          "precision",
          "recall",
          "F1",
        ],
        rows: table.t.map((t, k) => {
          const rate = rates(counts(k), miss);
          return [
            t,
            table.tp[k],
            table.fp[k],
            table.fn[k],
            table.tn[k],
            rate.precision,
            rate.recall,
            rate.f1,
          ];
        }),
      }),
      draw(width) {
        const all = table.t.map((t, k) => ({ t, ...rates(counts(k), miss) }));
        const highest = Math.max(...all.map((row) => row.cost)) || 1;
        const plot = charts.plot(width, {
          height: 280,
          x: { label: "threshold", domain: [0, 1], ticks: 5 },
          y: { label: null, domain: [0, 1], ticks: 5 },
          marks: [
            charts.grid("y", { ticks: 5 }),
            series.map(([name, , colour]) =>
              Plot.line(all, {
                x: "t",
                y: (d) => (name === "cost" ? d.cost / highest : d[name]),
                stroke: colour,
                strokeWidth: 2,
                strokeDasharray: name === "cost" ? "5 4" : null,
              }),
            ),
          ],
        });
        const x = plot.scale("x");
        const rule = report.s("line", { class: "cursor", y1: 18, y2: 280 - 38 });
        plot.append(rule);
        line = (t) => {
          rule.setAttribute("x1", x.apply(t));
          rule.setAttribute("x2", x.apply(t));
        };
        line(table.t[at]);
        plot.addEventListener("click", (event) => {
          const box = plot.getBoundingClientRect();
          show(nearest(x.invert(((event.clientX - box.left) * width) / box.width)));
        });
        return plot;
      },
    });
    figure.classList.add("clickable");

    show(at);
    const head = (text) => h("th", { scope: "col", class: "numeric" }, text);
    const label = (text) => report.name(text, 18);
    const jump = (text, pick) => report.button(text, () => show(pick()));
    const pair = (text, name) => h("div", {}, h("dt", {}, text), values[name]);
    return h(
      "div",
      { class: "threshold" },
      h(
        "div",
        { class: "card" },
        h(
          "div",
          { class: "controls slider-line" },
          slider,
          h("label", { class: "field" }, h("span", {}, "Threshold"), field),
        ),
        h(
          "div",
          { class: "controls" },
          jump("Default", () => nearest(model.binary.default_threshold ?? 0.5)),
          jump("Highest F1", () => best("f1", 1)),
          jump("Lowest cost", () => best("cost", -1)),
          h(
            "label",
            { class: "field" },
            h("span", {}, "Cost of a missed positive, in false alarms"),
            cost,
          ),
        ),
        h(
          "div",
          { class: "threshold-numbers" },
          h(
            "table",
            { class: "counts" },
            h("caption", { class: "visually-hidden" }, "Confusion matrix at the threshold"),
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                h("td", {}),
                head(["predicted ", label(positive)]),
                head(["predicted ", label(negative)]),
              ),
            ),
            h(
              "tbody",
              {},
              h("tr", {}, h("th", { scope: "row" }, label(positive)), cells.tp, cells.fn),
              h("tr", {}, h("th", { scope: "row" }, label(negative)), cells.fp, cells.tn),
            ),
          ),
          h(
            "dl",
            { class: "rates" },
            pair("Precision", "precision"),
            pair("Recall", "recall"),
            pair("F1", "f1"),
            pair("Accuracy", "accuracy"),
            pair("Predicted positive", "positive"),
            pair("Cost", "cost"),
          ),
        ),
        spoken,
      ),
      figure,
    );
  }

  report.sections.add({
    id: "threshold",
    title: "Threshold",
    perModel: true,
    applies: () => report.models.some((model) => model.binary && model.binary.thresholds),
    lede: () =>
      `Rows whose probability reaches the threshold are predicted as ${format.short(report.payload.classes[1], 40)}.`,
    hint: () => "Move it to weigh false alarms against missed positives.",
    build(body, model) {
      if (model.binary && model.binary.thresholds) body.append(explorer(model));
    },
  });
})(window.arboostReport);
