// Reads JSON that a model wrote almost right. Each repair is tried alone and must then parse strictly.

const MAX_EXTRA_CLOSERS = 4;

/** @param {string} text @returns {{ ok: true, value: any } | { ok: false, error: any }} */
function strict(text) {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error };
  }
}

// Walks text outside strings: `visit(index, char)`; answers whether a string stayed open and which brackets did.
/**
 * @typedef {{ c: string, i: number }[]} Open
 * @param {string} text
 * @param {((index: number, char: string, fits: boolean, open: Open) => boolean)=} visit
 */
function scan(text, visit) {
  /** @type {Open} */
  const open = [];
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
      continue;
    }
    if (c === '"') inString = true;
    else if (c === "{" || c === "[") open.push({ c, i });
    else if (c === "}" || c === "]") {
      const top = open.at(-1);
      const fits = top !== undefined && (top.c === "{") === (c === "}");
      if (visit?.(i, c, fits, open) === false) break;
      if (fits) open.pop();
    }
  }
  return { inString, open };
}

// (1) up to four extra closers after a complete value
/** @param {string} text */
function dropExtraClosers(text) {
  let cut = text.trimEnd();
  for (let n = 0; n < MAX_EXTRA_CLOSERS && /[\]}]$/.test(cut); n++) {
    cut = cut.slice(0, -1).trimEnd();
    const read = strict(cut);
    if (read.ok) return cut;
  }
  return undefined;
}

// (2) unescaped quotes inside string values: a real closing quote stands before `,` `}` `]` `:` or the end
/** @param {string} text */
function escapeInnerQuotes(text) {
  let out = "";
  let inString = false;
  let changed = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (!inString) {
      inString = c === '"';
      out += c;
    } else if (c === "\\") {
      out += c + (text[++i] ?? "");
    } else if (c === '"') {
      if (/^\s*([,}\]:]|$)/.test(text.slice(i + 1, i + 64))) {
        inString = false;
        out += c;
      } else {
        out += '\\"';
        changed++;
      }
    } else {
      out += c;
    }
  }
  return changed > 0 && changed % 2 === 0 ? out : undefined;
}

// (3) the `}` missing before the next array element `{`
/** @param {string} text */
function closeBeforeNextElement(text) {
  const match = /,\s*\{/g;
  for (let found = match.exec(text); found !== null; found = match.exec(text)) {
    const candidate = `${text.slice(0, found.index)}}${text.slice(found.index)}`;
    if (strict(candidate).ok) return candidate;
  }
  return undefined;
}

// (4) a `}` with no open object, or a wrong final bracket
/** @param {string} text */
function dropStrayCloser(text) {
  /** @type {string | undefined} */
  let result;
  scan(text, (i, c, fits, open) => {
    if (fits) return true;
    const dropped = text.slice(0, i) + text.slice(i + 1);
    if (strict(dropped).ok) result = dropped;
    else if (open.length > 0) {
      const swapped = text.slice(0, i) + (open.at(-1)?.c === "{" ? "}" : "]") + text.slice(i + 1);
      if (strict(swapped).ok) result = swapped;
    }
    return false;
  });
  return result;
}

// (5) a doubled `{"`
/** @param {string} text */
function dropDoubledOpening(text) {
  for (let i = text.indexOf('{"{"'); i !== -1; i = text.indexOf('{"{"', i + 1)) {
    const candidate = text.slice(0, i) + text.slice(i + 2);
    if (strict(candidate).ok) return candidate;
  }
  const spaced = text.replace(/\{\s*\{\s*"/, '{"');
  return spaced !== text && strict(spaced).ok ? spaced : undefined;
}

/** @param {string} text */
function closeOpenBrackets(text) {
  const { inString, open } = scan(text);
  const closed = `${text}${inString ? '"' : ""}${open.reverse().map(({ c }) => (c === "{" ? "}" : "]")).join("")}`;
  return strict(closed).ok ? closed : undefined;
}

/** @type {typeof import("./json-text.js").parseJsonText} */
export function parseJsonText(text, { field = false } = {}) {
  const read = strict(text);
  if (read.ok) return read;
  const repairs = [dropExtraClosers, escapeInnerQuotes, closeBeforeNextElement, dropStrayCloser, dropDoubledOpening];
  if (field) repairs.push(closeOpenBrackets);
  for (const repair of repairs) {
    const repaired = repair(text);
    if (repaired === undefined) continue;
    const again = strict(repaired);
    if (again.ok) return again;
  }
  return { ok: false, reason: String(read.error.message).slice(0, 160), near: nearby(text, read.error) };
}

/** @param {string} text @param {any} error */
function nearby(text, error) {
  const at = Number(/position (\d+)/.exec(error.message)?.[1] ?? text.length);
  return text.slice(Math.max(0, at - 40), at + 20);
}
