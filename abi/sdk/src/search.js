// Ranking texts by words, as the host's own search does (BM25, k1 1.2, b 0.75).

const K1 = 1.2;
const B = 0.75;
const CJK_RUN = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+/gu;

/** @param {string} word */
function foldWord(word) {
  const base = word.replace(/['’]s$/, "");
  if (base.length > 4 && base.endsWith("ies")) return `${base.slice(0, -3)}y`;
  return base.length > 3 && base.endsWith("s") && !base.endsWith("ss") ? base.slice(0, -1) : base;
}
/** @type {typeof import("./search.js").searchTerms} */
export function searchTerms(text) {
  const folded = String(text).normalize("NFKC").toLowerCase();
  const terms = [];
  for (const run of folded.match(CJK_RUN) ?? []) {
    if (run.length === 1) terms.push(run);
    for (let i = 0; i + 1 < run.length; i++) terms.push(run.slice(i, i + 2));
  }
  for (const word of folded.replace(CJK_RUN, " ").match(/[\p{L}\p{N}]+(?:['’]s)?/gu) ?? []) {
    const term = foldWord(word);
    if (term.length >= 2) terms.push(term);
  }
  return terms;
}
/** @type {typeof import("./search.js").rankTexts} */
export function rankTexts(query, texts) {
  const wanted = [...new Set(searchTerms(query))];
  const documents = texts.map(searchTerms);
  const average = documents.reduce((sum, terms) => sum + terms.length, 0) / Math.max(documents.length, 1);
  const counts = documents.map((terms) => {
    const count = new Map();
    for (const term of terms) count.set(term, (count.get(term) ?? 0) + 1);
    return count;
  });
  const idf = new Map(wanted.map((term) => {
    const having = counts.filter((count) => count.has(term)).length;
    return [term, Math.log(1 + (documents.length - having + 0.5) / (having + 0.5))];
  }));
  return counts
    .map((count, index) => {
      const matched = wanted.filter((term) => count.has(term));
      const score = matched.reduce((sum, term) => {
        const tf = count.get(term);
        return sum + (idf.get(term) ?? 0) * ((tf * (K1 + 1)) / (tf + K1 * (1 - B + (B * documents[index].length) / Math.max(average, 1))));
      }, 0);
      return { index, score, coverage: wanted.length === 0 ? 0 : matched.length / wanted.length, matched };
    })
    .filter(({ matched }) => matched.length > 0)
    .sort((a, b) => b.score - a.score || a.index - b.index);
}
/** @type {typeof import("./search.js").searchExcerpt} */
export function searchExcerpt(text, terms, { before = 120, max = 500 } = {}) {
  const folded = text.toLowerCase();
  const hits = terms.map((term) => folded.indexOf(term)).filter((at) => at >= 0);
  const start = hits.length === 0 ? 0 : Math.max(0, Math.min(...hits) - before);
  const piece = text.slice(start, start + max);
  return `${start > 0 ? "…" : ""}${piece}${start + max < text.length ? "…" : ""}`;
}
/** @type {typeof import("./search.js").appendSummaryEntries} */
export const appendSummaryEntries = (previous, entries) => [...(previous ?? []), ...entries].slice(0, 16);
