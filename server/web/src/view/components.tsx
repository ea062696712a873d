import * as RadixSwitch from "@radix-ui/react-switch";
import * as RadixTabs from "@radix-ui/react-tabs";
import { CircleAlert, CircleCheck, CircleHelp, CircleX, Info, TriangleAlert, type LucideIcon } from "lucide-react";
import { useId, useState, type ComponentType, type CSSProperties, type ReactNode } from "react";
import { textIn } from "../i18n";
import { iconNamed } from "../ui/icons";
import { Prose as ProseText } from "../ui/Prose";
import { useViewHost } from "./context";
import type { ViewNode } from "./expand";
import { asText, number } from "./expression";
import { MAX_ITEMS } from "./limits";
import { field, isDict } from "./pointer";

export interface ComponentProps {
  node: ViewNode;
  /** The node's children, already drawn. */
  children: ReactNode;
  /** Draws the nodes of a slot. */
  slot(name: string): ReactNode;
}

const COLORS = new Set(["red", "amber", "blue", "green", "purple", "cyan"]);
const RARITIES = new Set(["legendary", "rare", "uncommon", "common"]);

/** One of the allowed words, else the first. Values from data never become class names on their own. */
function oneOf<const T extends string>(value: unknown, allowed: readonly [T, ...T[]]): T {
  return allowed.find((word) => word === value) ?? allowed[0];
}

function useText(): (value: unknown) => string {
  const { locale } = useViewHost();
  return (value) => (isDict(value) ? textIn(value, locale) : asText(value));
}

function Stack({ node, children }: ComponentProps) {
  return <div className={`v-stack v-gap-${gap(node.props["gap"])}`}>{children}</div>;
}

function Row({ node, children }: ComponentProps) {
  const align = oneOf(node.props["align"], ["center", "start", "end"]);
  return <div className={`v-row v-gap-${gap(node.props["gap"])} v-align-${align}`}>{children}</div>;
}

function gap(value: unknown): "none" | "xs" | "sm" | "md" | "lg" {
  const n = number(value);
  if (n !== undefined) return n <= 0 ? "none" : n <= 1 ? "xs" : n <= 2 ? "sm" : n <= 4 ? "md" : "lg";
  return oneOf(value, ["sm", "none", "xs", "md", "lg"]);
}

function Grid({ node, children }: ComponentProps) {
  const cols = Math.min(6, Math.max(1, Math.round(number(node.props["cols"]) ?? 2)));
  return (
    <div className="v-grid" style={{ "--v-cols": cols } as CSSProperties}>
      {children}
    </div>
  );
}

function Separator() {
  return <hr className="v-separator" />;
}

function Text({ node }: ComponentProps) {
  const text = useText();
  const { variant, weight, size, align } = node.props;
  const classes = [
    "v-text",
    variant === "muted" && "v-muted",
    weight === "bold" && "v-bold",
    `v-size-${oneOf(size, ["md", "xs", "sm", "lg"])}`,
    align === "center" && "v-center",
  ];
  return <p className={classes.filter(Boolean).join(" ")}>{text(node.props["content"])}</p>;
}

function Badge({ node }: ComponentProps) {
  const text = useText();
  return <BadgeLabel label={text(node.props["label"])} color={node.props["color"]} />;
}

function BadgeLabel({ label, color }: { label: string; color?: unknown }) {
  if (!label) return null;
  const tone = typeof color === "string" && COLORS.has(color) ? color : "plain";
  return <span className={`v-badge v-tone-${tone}`}>{label}</span>;
}

function NamedIcon({ name, size = "sm" }: { name: unknown; size?: string }) {
  const Found = iconNamed(name);
  return Found ? <Found className={`v-icon v-icon-${size}`} aria-hidden="true" /> : null;
}

function Icon({ node }: ComponentProps) {
  return <NamedIcon name={node.props["name"]} size={oneOf(node.props["size"], ["md", "xs", "sm", "lg"])} />;
}

function Tags({ tags }: { tags: unknown }) {
  const text = useText();
  if (!Array.isArray(tags) || tags.length === 0) return null;
  return (
    <ul className="v-tags">
      {tags.slice(0, MAX_ITEMS).map((tag, index) => (
        <li key={index}>{text(tag)}</li>
      ))}
    </ul>
  );
}

function TagList({ node }: ComponentProps) {
  return <Tags tags={node.props["tags"]} />;
}

function Prose({ node }: ComponentProps) {
  const text = useText();
  return <ProseText text={text(node.props["content"])} className="v-prose" />;
}

function Source({ node }: ComponentProps) {
  const text = useText();
  return <p className="v-text v-muted v-size-xs">{text(node.props["label"])}</p>;
}

function Card({ node, children }: ComponentProps) {
  return <div className={`v-card v-card-${oneOf(node.props["variant"], ["plain", "glow", "subtle"])}`}>{children}</div>;
}

function CardList({ children }: ComponentProps) {
  return <div className="v-card-list">{children}</div>;
}

function EntryCard({ node, children }: ComponentProps) {
  const text = useText();
  const { props } = node;
  const title = text(props["title"]);
  const rarity = typeof props["rarity"] === "string" && RARITIES.has(props["rarity"]) ? props["rarity"] : undefined;
  const color = typeof props["color"] === "string" && COLORS.has(props["color"]) ? props["color"] : "plain";
  const head = (
    <>
      <NamedIcon name={props["icon"]} />
      <span className="v-entry-title">{title}</span>
      {props["isNew"] === true && <span className="v-new" aria-hidden="true" />}
      <BadgeLabel label={text(props["category"])} color={color} />
      {rarity && <BadgeLabel label={rarity} color={RARITY_COLOR[rarity]} />}
    </>
  );
  const content = text(props["content"]);
  const body = (
    <div className="v-entry-body">
      {content && <ProseText text={content} className="v-prose" />}
      {children}
      <Tags tags={props["tags"]} />
    </div>
  );
  const className = `v-card v-entry v-edge-${color}`;
  if (props["collapsible"] === true) {
    return (
      <details className={className} open={props["defaultExpanded"] === true}>
        <summary className="v-entry-head">{head}</summary>
        {body}
      </details>
    );
  }
  return (
    <div className={className}>
      <div className="v-entry-head">{head}</div>
      {body}
    </div>
  );
}

const RARITY_COLOR: Record<string, string> = { legendary: "amber", rare: "purple", uncommon: "green", common: "plain" };

/** Items of a list component: a list, or a record whose values gain their `key`. */
function listItems(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS);
  if (!isDict(value)) return [];
  return Object.entries(value)
    .slice(0, MAX_ITEMS)
    .map(([key, item]) => (isDict(item) ? { ...item, key } : { key, value: item }));
}

function paths(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((path) => typeof path === "string").slice(0, 20) : [];
}

/** A list of plain values reads as its values, one a paragraph; an empty list is nothing, not `[]`. */
function listed(value: unknown, text: (value: unknown) => string): string {
  const plain = Array.isArray(value) && value.every((entry) => typeof entry !== "object" || entry === null);
  return plain ? value.slice(0, MAX_ITEMS).map(text).filter(Boolean).join("\n\n") : text(value);
}

function EntryList({ node }: ComponentProps) {
  const text = useText();
  const { props } = node;
  const fields = Array.isArray(props["fields"]) ? props["fields"].filter(isDict).slice(0, 20) : [];
  return (
    <ul className="v-entry-list">
      {listItems(props["items"]).map((item, index) => {
        const shown = (path: unknown) => listed(field(item, path), text);
        const badges = paths(props["badgeFields"]).map(shown).filter(Boolean);
        const facts = fields.filter((entry) => shown(entry["path"]) !== "");
        return (
          <li key={index} className="v-card v-entry v-edge-plain">
            <div className="v-entry-head">
              <span className="v-entry-title">{shown(props["titleField"])}</span>
              {badges.map((badge, at) => (
                <BadgeLabel key={at} label={badge} />
              ))}
              {shown(props["dateField"]) && <span className="v-date">{shown(props["dateField"])}</span>}
            </div>
            {paths(props["descriptionFields"]).map((path) => {
              const description = shown(path);
              return description ? <ProseText key={path} text={description} className="v-prose" /> : null;
            })}
            {facts.length > 0 && (
              <dl className="v-facts">
                {facts.map((entry, at) => (
                  <div key={at}>
                    <dt>{text(entry["label"]) || text(entry["path"])}</dt>
                    <dd>{shown(entry["path"])}</dd>
                  </div>
                ))}
              </dl>
            )}
            {shown(props["footerField"]) && <p className="v-text v-muted v-size-xs">{shown(props["footerField"])}</p>}
          </li>
        );
      })}
    </ul>
  );
}

function Bar({ node, role }: { node: ViewNode; role: "meter" | "progressbar" }) {
  const text = useText();
  const { locale } = useViewHost();
  const label = text(node.props["label"]);
  const max = Math.max(number(node.props["max"]) ?? 100, 0);
  const value = number(node.props["value"]) ?? 0;
  const part = max > 0 ? Math.min(1, Math.max(0, value / max)) : 0;
  const show = (n: number) => n.toLocaleString(locale, { maximumFractionDigits: 2 });
  return (
    <div className="v-bar">
      <div className="v-bar-head" aria-hidden="true">
        <span>{label}</span>
        <span className="v-bar-value">
          {show(value)}
          <span className="v-muted"> / {show(max)}</span>
        </span>
      </div>
      <div
        className="v-bar-track"
        role={role}
        aria-label={label || undefined}
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(max, Math.max(0, value))}
        aria-valuetext={`${show(value)} / ${show(max)}`}
      >
        <div
          className={`v-bar-fill${role === "meter" && part <= 0.25 ? " v-bar-low" : ""}`}
          style={{ width: `${part * 100}%` }}
        />
      </div>
    </div>
  );
}

function Section({ node, children }: ComponentProps) {
  const text = useText();
  return (
    <details className="v-section" open={node.props["defaultOpen"] !== false}>
      <summary>
        <NamedIcon name={node.props["icon"]} />
        <span>{text(node.props["title"])}</span>
      </summary>
      <div className="v-section-body">{children}</div>
    </details>
  );
}

function JsonView({ node }: ComponentProps) {
  let shown: string;
  try {
    shown = JSON.stringify(node.props["value"], null, 2) ?? "";
  } catch {
    shown = "";
  }
  const cut = shown.length > 10_000 ? `${shown.slice(0, 10_000)}\n…` : shown;
  return (
    <pre className="v-json" tabIndex={0}>
      <code>{cut}</code>
    </pre>
  );
}

function Button({ node }: ComponentProps) {
  const text = useText();
  const { fire, locked } = useViewHost();
  const variant = oneOf(node.props["variant"], ["default", "primary", "danger", "ghost"]);
  const size = node.props["size"] === "compact" ? " button-small" : "";
  return (
    <button
      type="button"
      className={`button button-${variant}${size}`}
      // Not `disabled`: the focus would be lost each time a turn starts.
      aria-disabled={locked || undefined}
      onClick={() => {
        if (!locked) fire(node.on["click"] ?? node.on["press"], node.scope);
      }}
    >
      <NamedIcon name={node.props["icon"]} />
      {text(node.props["label"])}
    </button>
  );
}

/** The value of an input: the bound state, or the component's own when nothing is bound. */
function useValue(node: ViewNode, prop: string): [unknown, (value: unknown) => void] {
  const host = useViewHost();
  const [own, setOwn] = useState<unknown>(undefined);
  const target = node.bind[prop];
  const value = target === undefined && own !== undefined ? own : node.props[prop];
  const change = (next: unknown) => {
    if (target === undefined) setOwn(next);
    else host.edit(target, next);
    if (!host.locked) host.fire(node.on["change"], node.scope);
  };
  return [value, change];
}

function Labelled({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="v-field">
      {label && (
        <label className="v-label" htmlFor={id}>
          {label}
        </label>
      )}
      {children(id)}
    </div>
  );
}

function Input({ node }: ComponentProps) {
  const text = useText();
  const [value, change] = useValue(node, "value");
  const placeholder = text(node.props["placeholder"]);
  const label = text(node.props["label"]);
  const search = node.component === "SearchInput";
  return (
    <Labelled label={label}>
      {(id) => (
        <input
          id={id}
          className="input"
          type={search ? "search" : "text"}
          placeholder={placeholder}
          aria-label={label ? undefined : placeholder || undefined}
          value={asText(value)}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Labelled>
  );
}

function Textarea({ node }: ComponentProps) {
  const text = useText();
  const [value, change] = useValue(node, "value");
  const rows = Math.min(30, Math.max(1, number(node.props["rows"]) ?? 8));
  const placeholder = text(node.props["placeholder"]);
  const label = text(node.props["label"]);
  return (
    <Labelled label={label}>
      {(id) => (
        <textarea
          id={id}
          className="input"
          rows={rows}
          placeholder={placeholder}
          aria-label={label ? undefined : placeholder || undefined}
          value={asText(value)}
          onChange={(event) => change(event.target.value)}
        />
      )}
    </Labelled>
  );
}

interface Option {
  value: string;
  label: string;
  icon?: unknown;
}

function useOptions(value: unknown): Option[] {
  const text = useText();
  if (!Array.isArray(value)) return [];
  const seen = new Set<string>();
  const options: Option[] = [];
  for (const entry of value.slice(0, MAX_ITEMS)) {
    const option = isDict(entry)
      ? { value: asText(entry["value"]), label: text(entry["label"]) || asText(entry["value"]), icon: entry["icon"] }
      : { value: asText(entry), label: asText(entry) };
    if (seen.has(option.value)) continue;
    seen.add(option.value);
    options.push(option);
  }
  return options;
}

function Select({ node }: ComponentProps) {
  const text = useText();
  const [value, change] = useValue(node, "value");
  const options = useOptions(node.props["options"]);
  const label = text(node.props["label"]);
  const current = asText(value);
  return (
    <Labelled label={label}>
      {(id) => (
        <select
          id={id}
          className="input"
          aria-label={label ? undefined : text(node.props["placeholder"]) || undefined}
          value={current}
          onChange={(event) => change(event.target.value)}
        >
          {!options.some((option) => option.value === current) && <option value={current}>{current || "–"}</option>}
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

function Switch({ node }: ComponentProps) {
  const text = useText();
  const id = useId();
  const [checked, change] = useValue(node, "checked");
  return (
    <div className="v-switch">
      <label htmlFor={id}>{text(node.props["label"])}</label>
      <RadixSwitch.Root id={id} className="switch" checked={checked === true} onCheckedChange={change}>
        <RadixSwitch.Thumb className="switch-thumb" />
      </RadixSwitch.Root>
    </div>
  );
}

function Tabs({ node, children, slot }: ComponentProps) {
  const options = useOptions(node.props["tabs"] ?? node.props["options"]);
  const [value, change] = useValue(node, "value");
  const text = useText();
  const first = options[0]?.value;
  if (first === undefined) return <>{children}</>;
  const wanted = asText(value);
  const current = options.some((option) => option.value === wanted) ? wanted : first;
  const counts = node.props["counts"];
  return (
    <RadixTabs.Root value={current} onValueChange={change} className="v-tabs">
      <RadixTabs.List className="v-tab-list" aria-label={text(node.props["label"]) || undefined}>
        {options.map((option) => {
          const n = number(field(counts, option.value));
          return (
            <RadixTabs.Trigger key={option.value} value={option.value} className="v-tab">
              {option.icon !== undefined &&
                (iconNamed(option.icon) ? (
                  <NamedIcon name={option.icon} size="xs" />
                ) : (
                  <CircleHelp className="v-icon v-icon-xs" aria-hidden="true" />
                ))}
              {option.label}
              {n !== undefined && <span className="v-tab-count">{n}</span>}
            </RadixTabs.Trigger>
          );
        })}
      </RadixTabs.List>
      {options.map((option) => (
        <RadixTabs.Content key={option.value} value={option.value} className="v-tab-content">
          {option.value === current && (slot(option.value) ?? children)}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}

const ALERT_ICONS: Record<string, LucideIcon> = {
  info: Info,
  success: CircleCheck,
  warning: TriangleAlert,
  error: CircleX,
};

function Alert({ node, children }: ComponentProps) {
  const text = useText();
  const level = oneOf(node.props["level"], ["info", "success", "warning", "error"]);
  const Shown = ALERT_ICONS[level] ?? CircleAlert;
  const title = text(node.props["title"]);
  return (
    <div className={`v-alert v-alert-${level}`} role="note">
      <Shown className="v-icon v-icon-sm" aria-hidden="true" />
      <div>
        {title && <p className="v-bold">{title}</p>}
        <p>{text(node.props["message"])}</p>
        {children}
      </div>
    </div>
  );
}

function ChoiceList({ children }: ComponentProps) {
  return <div className="v-choices">{children}</div>;
}

function Choice({ node }: ComponentProps) {
  const text = useText();
  const { fire, locked } = useViewHost();
  return (
    <button
      type="button"
      className="v-choice"
      aria-disabled={locked || undefined}
      onClick={() => {
        if (!locked) fire(node.on["click"] ?? node.on["press"], node.scope);
      }}
    >
      <span className="v-entry-title">{text(node.props["title"])}</span>
      <BadgeLabel label={text(node.props["tag"])} color={node.props["tone"]} />
      {text(node.props["description"]) && <span className="v-choice-text">{text(node.props["description"])}</span>}
    </button>
  );
}

function Accordion({ children }: ComponentProps) {
  return <div className="v-accordion">{children}</div>;
}

function PlayerMessage({ node }: ComponentProps) {
  const text = useText();
  return <blockquote className="v-player">{text(node.props["content"])}</blockquote>;
}

/** The components that a view may name. A map: names from data never reach an object's prototype. */
export const COMPONENTS: ReadonlyMap<string, ComponentType<ComponentProps>> = new Map<
  string,
  ComponentType<ComponentProps>
>([
  ["Stack", Stack],
  ["Row", Row],
  ["Grid", Grid],
  ["Separator", Separator],
  ["Text", Text],
  ["Badge", Badge],
  ["Icon", Icon],
  ["TagList", TagList],
  ["Prose", Prose],
  ["Source", Source],
  ["Card", Card],
  ["CardList", CardList],
  ["Accordion", Accordion],
  ["EntryCard", EntryCard],
  ["EntryList", EntryList],
  ["StatBar", (props) => <Bar node={props.node} role="meter" />],
  ["Progress", (props) => <Bar node={props.node} role="progressbar" />],
  ["Section", Section],
  ["JsonView", JsonView],
  ["Button", Button],
  ["ChoiceList", ChoiceList],
  ["Choice", Choice],
  ["Input", Input],
  ["SearchInput", Input],
  ["Textarea", Textarea],
  ["Select", Select],
  ["Switch", Switch],
  ["Tabs", Tabs],
  ["Alert", Alert],
  ["PlayerMessage", PlayerMessage],
]);
