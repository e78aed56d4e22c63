// Order of the results of a search: objects and titles first, among them titles with all that was
// typed; then pages for users before those for developers. Replaces the scorer of Sphinx, whose
// other fields are kept.
const PARTS = [
  ["reference/compat", -8],
  ["reference/estimators", 3],
  ["reference/", 2],
  ["tutorial", 3],
  ["tasks/", 4],
  ["theory/", 2],
  ["developers/", -4],
  ["benchmarks/", -4],
  ["changelog", -5],
];

const WHOLE = 8;
const TYPED = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();

var Scorer = {
  score: ([docName, title, , , score, , kind]) => {
    const part = PARTS.find(([prefix]) => docName.startsWith(prefix));
    const isWhole = kind !== "object" && TYPED && title.toLowerCase().includes(TYPED);
    return score + (part ? part[1] : 0) + (isWhole ? WHOLE : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
