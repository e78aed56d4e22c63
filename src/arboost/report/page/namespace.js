/* The only global name of the page, the payload, and the theme, which is set before the first paint. */
window.arboostReport = {};

((report) => {
  "use strict";

  const source = document.getElementById("report-data");
  report.payload = JSON.parse(source.textContent);
  source.remove(); // megabytes of text that nothing reads again
  report.models = report.payload.models;

  const stored = () => {
    try {
      return window.localStorage.getItem("arboost-theme");
    } catch {
      return null; // no storage in a sandboxed frame
    }
  };
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = stored();

  const show = () => {
    const theme = chosen || (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    return theme;
  };

  report.theme = {
    show,
    toggle() {
      chosen = show() === "dark" ? "light" : "dark";
      try {
        window.localStorage.setItem("arboost-theme", chosen);
      } catch {
        // The choice lasts as long as the page.
      }
      return show();
    },
  };
  system.addEventListener("change", show);
  show();
})(window.arboostReport);
