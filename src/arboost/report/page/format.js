/* Numbers, shares, dates and names as text: 3 to 4 significant digits, thousands separators. */
((report) => {
  "use strict";

  const DASH = "–";
  const general = new Intl.NumberFormat("en-US", {
    maximumSignificantDigits: 4,
    useGrouping: "min2",
  });
  const padded = new Intl.NumberFormat("en-US", {
    minimumSignificantDigits: 4,
    maximumSignificantDigits: 4,
    useGrouping: "min2",
  });
  const rounded = new Intl.NumberFormat("en-US", {
    maximumSignificantDigits: 3,
    useGrouping: "min2",
  });
  const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

  const minus = (text) => text.replace(/^-/, "\u2212");
  const absent = (value) => value === null || value === undefined || Number.isNaN(value);

  function write(value, format) {
    if (absent(value)) return DASH;
    if (typeof value !== "number") return String(value);
    const size = Math.abs(value);
    if (size < 1e-12) return "0"; // the rounding error of a sum
    if (size < 1e-4 || size >= 1e12) {
      return minus(
        value
          .toExponential(2)
          .replace(/\.?0+e/, "e")
          .replace("e+", "e"),
      );
    }
    return minus((size >= 1e4 ? whole : format).format(value));
  }

  /** A number with at most 4 significant digits. */
  const number = (value) => write(value, general);

  /** A score with 4 significant digits, so that a column of scores lines up. */
  const score = (value) => (value === 0 ? "0" : write(value, padded));

  /** A number of 3 significant digits with its sign, for differences and contributions. */
  const signed = (value) => (!absent(value) && value > 0 ? "+" : "") + write(value, rounded);

  /** A probability; the ends are said in words that stay true. */
  function probability(value) {
    if (absent(value)) return DASH;
    if (value < 1e-4) return "< 0.0001";
    return value > 0.9999 ? "> 0.9999" : score(value);
  }

  const count = (value) => (absent(value) ? DASH : whole.format(value));

  /** A share of 1 as a percentage. */
  function share(value) {
    if (absent(value)) return DASH;
    const percent = value * 100;
    if (percent === 0) return "0%";
    if (percent < 0.1) return "< 0.1%";
    return `${number(Math.round(percent * 10) / 10)}%`;
  }

  /** Seconds since 1970 as a date, with the time of day where it is not midnight. */
  function date(seconds) {
    if (absent(seconds)) return DASH;
    const time = new Date(seconds * 1000);
    if (Number.isNaN(time.getTime())) return number(seconds);
    const text = time.toISOString();
    return text.endsWith("T00:00:00.000Z")
      ? text.slice(0, 10)
      : text.slice(0, 16).replace("T", " ");
  }

  const SPANS = [
    [86400, "d"],
    [3600, "h"],
    [60, "min"],
  ];

  /** Seconds of a time column as text, by its unit: datetime, duration or time (of day). */
  function time(seconds, unit) {
    if (absent(seconds)) return DASH;
    if (unit === "time") return new Date(seconds * 1000).toISOString().slice(11, 16);
    if (unit !== "duration") return date(seconds);
    const [step, name] = SPANS.find(([span]) => Math.abs(seconds) >= 2 * span) || [1, "s"];
    return `${number(seconds / step)} ${name}`;
  }

  /** Two numbers as texts that differ where the numbers do. */
  function apart(first, second) {
    if (typeof first !== "number" || typeof second !== "number" || first === second)
      return [number(first), number(second)];
    for (let digits = 4; digits < 17; digits += 1) {
      const texts = [first, second].map((value) => Number(value.toPrecision(digits)));
      if (texts[0] !== texts[1])
        return digits === 4
          ? [number(first), number(second)]
          : texts.map((text) => minus(String(text)));
    }
    return [String(first), String(second)];
  }

  /** A cell of the table as text, by the kind of its column. */
  function cell(value, kind) {
    if (absent(value)) return "missing";
    if (kind === "time" && typeof value === "number") return date(value);
    return typeof value === "number" ? number(value) : String(value);
  }

  /** Text of at most `limit` characters; its middle is left out, since names often differ at the end. */
  function short(text, limit = 28) {
    const characters = Array.from(String(text));
    if (characters.length <= limit) return String(text);
    const tail = Math.floor((limit - 1) / 3);
    return `${characters.slice(0, limit - 1 - tail).join("")}…${characters.slice(-tail).join("")}`;
  }

  /** A text of the payload with the sign of print before its negative numbers. */
  const signs = (text) => text.replace(/(?<=^|\s)-(?=\d)/g, "\u2212");

  const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

  report.format = {
    absent,
    apart,
    number,
    probability,
    score,
    signed,
    count,
    share,
    date,
    time,
    cell,
    short,
    signs,
    plural,
    DASH,
  };
})(window.arboostReport);
