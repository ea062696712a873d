import { Fragment, type ReactNode } from "react";

/** Longest text that is laid out; what follows is cut. Characters. */
const MAX_PROSE = 400_000;

type Block =
  | { kind: "paragraph" | "quote"; lines: string[] }
  | { kind: "heading"; level: number; text: string }
  | { kind: "list"; items: string[] }
  | { kind: "rule" };

/** Splits text into paragraphs, headings, lists, quotes and rules. Everything else is plain text; there is no HTML. */
export function blocks(text: string): Block[] {
  const out: Block[] = [];
  let open: Block | undefined;
  for (const line of text.slice(0, MAX_PROSE).split(/\r\n?|\n/)) {
    const trimmed = line.trim();
    const heading = /^(#{1,4})\s+(.+)$/.exec(trimmed);
    const item = /^[-*•]\s+(.+)$/.exec(trimmed);
    const quote = /^>\s?(.*)$/.exec(trimmed);
    if (trimmed === "") {
      open = undefined;
    } else if (/^([-*_])(\s*\1){2,}$/.test(trimmed)) {
      out.push({ kind: "rule" });
      open = undefined;
    } else if (heading) {
      out.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
      open = undefined;
    } else if (item) {
      if (open?.kind !== "list") out.push((open = { kind: "list", items: [] }));
      open.items.push(item[1] ?? "");
    } else if (quote) {
      if (open?.kind !== "quote") out.push((open = { kind: "quote", lines: [] }));
      open.lines.push(quote[1] ?? "");
    } else if (open?.kind === "list" && /^\s/.test(line)) {
      open.items[open.items.length - 1] += ` ${trimmed}`;
    } else {
      if (open?.kind !== "paragraph") out.push((open = { kind: "paragraph", lines: [] }));
      open.lines.push(trimmed);
    }
  }
  return out;
}

/** `**strong**`, `*emphasis*` and `` `code` `` inside a line. */
export function inline(text: string): ReactNode[] {
  const out: ReactNode[] = [];
  const pattern = /\*\*([^*\n]+)\*\*|\*([^*\s][^*\n]*)\*|`([^`\n]+)`/g;
  let from = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > from) out.push(text.slice(from, match.index));
    const [, strong, emphasis, code] = match;
    const key = match.index;
    if (strong !== undefined) out.push(<strong key={key}>{strong}</strong>);
    else if (emphasis !== undefined) out.push(<em key={key}>{emphasis}</em>);
    else out.push(<code key={key}>{code}</code>);
    from = match.index + match[0].length;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

function lines(texts: string[]): ReactNode {
  return texts.map((line, index) => (
    <Fragment key={index}>
      {index > 0 && <br />}
      {inline(line)}
    </Fragment>
  ));
}

/** Story and description text. */
export function Prose({ text, className }: { text: string; className?: string }) {
  return (
    <div className={`prose${className ? ` ${className}` : ""}`}>
      {blocks(text).map((block, index) => {
        switch (block.kind) {
          case "paragraph":
            return <p key={index}>{lines(block.lines)}</p>;
          case "quote":
            return <blockquote key={index}>{lines(block.lines)}</blockquote>;
          case "heading":
            // Not real headings: text from data must not break the outline of the page.
            return (
              <p key={index} className={`prose-heading prose-heading-${block.level}`}>
                <strong>{inline(block.text)}</strong>
              </p>
            );
          case "list":
            return (
              <ul key={index}>
                {block.items.map((item, at) => (
                  <li key={at}>{inline(item)}</li>
                ))}
              </ul>
            );
          case "rule":
            return <hr key={index} />;
        }
      })}
    </div>
  );
}
