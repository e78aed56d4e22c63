/* The page: header, navigation, sections in order; or a few sections alone, for notebooks. */
((report) => {
  "use strict";

  const { h, format, payload, models } = report;
  const GROUPS = [
    ["Overview", ["comparison", "scores", "data"]],
    [
      "Quality",
      [
        "learning",
        "ranking",
        "calibration",
        "threshold",
        "confusion",
        "regression",
        "coverage",
        "classes",
        "segments",
      ],
    ],
    ["Explanation", ["importances", "shap", "dependence", "rows", "trees"]],
    ["Theory", ["theory", "forest"]],
    ["Record", ["about", "repeat"]],
  ];
  const TASKS = {
    binary: "binary classification",
    multiclass: "multiclass classification",
    regression: "regression",
  };

  const applies = (id) => {
    const section = report.sections.get(id);
    return Boolean(section && section.applies());
  };

  /** The switch between two models, in each section that shows one of them. */
  function modelSwitch() {
    const options = models.map((model, index) => [index, model.name]);
    const control = report.choice("Model", options, report.state.get("model"), (key) =>
      report.state.set("model", Number(key)),
    );
    report.state.watch("model", (value) => {
      control
        .querySelectorAll("input")
        .forEach((input) => (input.checked = Number(input.value) === value));
    });
    return control;
  }

  function element(id) {
    const section = report.sections.get(id);
    const body = h("div", { class: "body" });
    const lede = h("p", { class: "lede" });
    const several = section.perModel && models.length > 1;
    const build = () => {
      const text = typeof section.lede === "function" ? section.lede(report.model()) : section.lede;
      const hint = text && section.hint && section.hint();
      report.replace(lede, text || "", hint && h("span", { class: "print-hide" }, ` ${hint}`));
      lede.hidden = !text;
      report.replace(body);
      try {
        section.build(body, report.model());
      } catch (error) {
        // One section with parts that it cannot read must not take the others with it.
        console.error(error);
        report.replace(body, h("p", { class: "note" }, "This section could not be drawn."));
      }
      if (!body.hasChildNodes())
        body.append(
          h("p", { class: "note" }, `${format.short(report.model().name, 48)} has no such section.`),
        );
    };
    build();
    if (several) report.state.watch("model", build);
    return h(
      "section",
      { id, "aria-labelledby": `${id}-title` },
      h(
        "div",
        { class: "head" },
        h("h2", { id: `${id}-title` }, section.title),
        several && modelSwitch(),
      ),
      lede,
      body,
    );
  }

  function headline() {
    const tiles = (models[0].scores || []).slice(0, 3).map((score) => {
      const second =
        models[1] && (models[1].scores || []).find((entry) => entry.name === score.name);
      return h(
        "div",
        { class: "headline" },
        h("dt", {}, score.name),
        h(
          "dd",
          {},
          h("span", { class: "value" }, format.score(score.value)),
          second && h("span", { class: "against" }, ` / ${format.score(second.value)}`),
          h(
            "span",
            { class: "range" },
            format.absent(score.low)
              ? ""
              : `${format.score(score.low)} to ${format.score(score.high)}`,
          ),
          h(
            "span",
            { class: "baseline" },
            format.absent(score.baseline) ? "" : `baseline ${format.score(score.baseline)}`,
          ),
        ),
      );
    });
    return tiles.length
      ? h("dl", { class: "headlines", "aria-label": "Headline scores" }, tiles)
      : null;
  }

  function header() {
    const facts = [
      models
        .map((model) => format.short(model.name === model.kind ? model.kind : model.name, 48))
        .join(" and "),
      TASKS[payload.task] + (payload.target ? ` of ${format.short(payload.target, 40)}` : ""),
      payload.data ? format.plural(payload.data.n_rows, "row") : null,
      payload.created ? payload.created.slice(0, 10) : null,
    ];
    return h(
      "header",
      { class: "masthead" },
      h(
        "div",
        { class: "masthead-text" },
        h(
          "div",
          { class: "brand-line" },
          h("p", { class: "brand" }, "arboost report"),
          themeButton(),
        ),
        h("h1", { title: payload.title }, format.short(payload.title || "Report", 90)),
        h(
          "p",
          { class: "facts-line" },
          facts.filter(Boolean).map((fact) => h("bdi", {}, fact)),
        ),
      ),
      headline(),
    );
  }

  function themeButton() {
    const button = report.button("", () => show(report.theme.toggle()), { class: "theme" });
    const show = (theme) => {
      button.textContent = theme === "dark" ? "Light mode" : "Dark mode";
    };
    show(report.theme.show());
    return button;
  }

  function navigation(groups) {
    const links = new Map();
    const wide = window.matchMedia("(min-width: 68rem)");
    const menu = h(
      "details",
      { class: "menu" },
      h("summary", {}, h("span", {}, "Sections")),
      groups.map(([title, ids]) =>
        h(
          "div",
          { class: "nav-group" },
          h("p", {}, title),
          h(
            "ul",
            {},
            ids.map((id) => {
              const link = h("a", { href: `#${id}` }, report.sections.get(id).title);
              link.addEventListener("click", () => (menu.open = wide.matches));
              links.set(id, link);
              return h("li", {}, link);
            }),
          ),
        ),
      ),
    );
    const settle = () => (menu.open = wide.matches);
    wide.addEventListener("change", settle);
    settle();
    const seen = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          for (const [id, link] of links) {
            if (id === entry.target.id) link.setAttribute("aria-current", "true");
            else link.removeAttribute("aria-current");
          }
        }
      },
      { rootMargin: "-20% 0px -70% 0px" },
    );
    const nav = h("nav", { "aria-label": "Sections" }, menu);
    nav.follow = (sections) => sections.forEach((section) => seen.observe(section));
    return nav;
  }

  function whole() {
    const groups = GROUPS.map(([title, ids]) => [title, ids.filter(applies)]).filter(
      ([, ids]) => ids.length,
    );
    const nav = navigation(groups);
    const sections = groups.flatMap(([, ids]) => ids.map(element));
    const main = h("main", { id: "content", tabindex: "-1" }, sections);
    const footer = h(
      "footer",
      {},
      h(
        "p",
        {},
        `Written by arboost ${payload.arboost || ""}${payload.created ? ` on ${payload.created.slice(0, 16).replace("T", " ")} UTC` : ""}. ` +
          "This page is one file and makes no network request.",
      ),
    );
    document
      .getElementById("page")
      .append(header(), h("div", { class: "columns" }, nav, h("div", {}, main, footer)));
    nav.follow(sections);
    if (window.location.hash) {
      const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
      if (target) target.scrollIntoView();
    }
  }

  /** A few sections without header and navigation; a frame of the same origin gets their height. */
  function compact(ids) {
    document.documentElement.classList.add("compact");
    const shown = ids.filter(applies);
    const main = h(
      "main",
      { id: "content", tabindex: "-1" },
      shown.length
        ? shown.map(element)
        : h("p", { class: "lede" }, "This model has no such section."),
    );
    document.getElementById("page").append(main);
    report.charts.drawAll(); // a notebook may be printed or exported before it is scrolled
    const fit = () => {
      try {
        if (window.frameElement)
          window.frameElement.style.height = `${Math.ceil(document.body.scrollHeight) + 2}px`;
      } catch {
        // A frame of another origin keeps the height that it has.
      }
    };
    new ResizeObserver(fit).observe(main);
  }

  if (payload.only) compact(payload.only);
  else whole();
})(window.arboostReport);
