/* Elements. Every text of the payload becomes a text node here; nothing is parsed as markup. */
((report) => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const { short } = report.format;
  let last = 0;

  /** Children of an element: lists are flat, and what is not there is left out. */
  const present = (children) =>
    children
      .flat()
      .filter((child) => child !== null && child !== undefined && child !== false);

  function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (key === "on") {
        for (const [event, listener] of Object.entries(value)) {
          element.addEventListener(event, listener);
        }
      } else if (key === "style") {
        for (const [property, setting] of Object.entries(value)) {
          element.style.setProperty(property, setting);
        }
      } else {
        element.setAttribute(key, value === true ? "" : value);
      }
    }
    element.append(...present(children));
    return element;
  }

  /** An HTML element; attributes `on` (listeners) and `style` (properties) are objects. */
  const h = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);

  /** An SVG element. */
  const s = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);

  // Where a long name may be broken: before a capital letter inside a word, after _ . / and -, but
  // not inside a number.
  const BREAKS = /(?<=[a-z0-9])(?=[A-Z])|(?<=[_/])|(?<=[.-])(?!\d)/u;

  /** A name from the data: shortened, the whole of it in the title, isolated from the text around. */
  const name = (text, limit = 32) => {
    const whole = String(text);
    const shown = short(whole, limit);
    const parts = shown.length > 12 ? shown.split(BREAKS) : [shown];
    return h(
      "bdi",
      { class: "name", title: shown === whole ? null : whole },
      shown === "" ? "(empty)" : parts.flatMap((part, k) => (k ? [h("wbr"), part] : [part])),
    );
  };

  const identifier = (prefix) => `${prefix}-${(last += 1)}`;

  /** A row of radio buttons that looks like one control; `options` are [value, label] pairs. */
  function choice(label, options, value, onChange) {
    const group = identifier("choice");
    return h(
      "fieldset",
      { class: "choice" },
      h("legend", {}, label),
      options.map(([key, text]) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: group,
            value: key,
            checked: String(key) === String(value),
            on: { change: () => onChange(key) },
          }),
          h("span", {}, name(text, 30)),
        ),
      ),
    );
  }

  /** A drop-down list with its label; `options` are [value, label] pairs. */
  function select(label, options, value, onChange) {
    const box = h(
      "select",
      { on: { change: () => onChange(box.value) } },
      options.map(([key, text]) =>
        h("option", { value: key, selected: String(key) === String(value) }, short(text, 40)),
      ),
    );
    return h("label", { class: "field" }, h("span", {}, label), box);
  }

  const button = (label, onClick, attributes = {}) =>
    h("button", { type: "button", ...attributes, on: { click: onClick } }, label);

  /** A button that copies a text; where the clipboard is closed, the text is selected instead. */
  function copyButton(text, target) {
    const status = h("span", { class: "visually-hidden", role: "status" });
    const selectText = () => {
      const range = document.createRange();
      range.selectNodeContents(target);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      return document.execCommand("copy");
    };
    const done = (copied) => {
      face.textContent = copied ? "Copied" : "Selected";
      status.textContent = copied
        ? "Copied to the clipboard"
        : "Text selected: copy it by the keyboard";
      window.setTimeout(() => (face.textContent = "Copy"), 1600);
    };
    const face = button(
      "Copy",
      async () => {
        try {
          await navigator.clipboard.writeText(text);
          done(true);
        } catch {
          done(selectText());
        }
      },
      { class: "copy" },
    );
    return h("span", { class: "copy-box" }, face, status);
  }

  const replace = (element, ...children) => {
    element.replaceChildren(...present(children));
    return element;
  };

  Object.assign(report, { h, s, name, identifier, choice, select, button, copyButton, replace });
})(window.arboostReport);
