import * as RadixTabs from "@radix-ui/react-tabs";
import { Maximize2, X } from "lucide-react";
import { memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { createPortal } from "react-dom";
import type { UiSpecs } from "../api/types";
import { textIn, useI18n } from "../i18n";
import { Dialog } from "../ui/Dialog";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { iconNamed } from "../ui/icons";
import { own } from "../view/pointer";
import { panelState, type Records } from "../view/state";
import { View, type ViewAction } from "../view/View";
import type { UiStates } from "../webview/uiState";
import { WebView } from "../webview/WebView";
import { dataKey, specNamespaces, type PluginData } from "./pluginData";

export interface Panel {
  /** Identity across reloads: the plugin, and the spec's id or place. */
  id: string;
  pluginId: string;
  spec: unknown;
  label: string;
  icon: unknown;
  group: string;
  groupOrder: number;
}

interface Group {
  id: string;
  label: string;
  icon: unknown;
  order: number;
  panels: Panel[];
}

const EMPTY: Records = new Map();
const MAX_PANELS = 100;

export function listPanels(entries: UiSpecs["right"], locale: string): Panel[] {
  const panels: Panel[] = [];
  for (const entry of entries) {
    for (const [index, spec] of entry.specs.entries()) {
      if (panels.length >= MAX_PANELS) return panels;
      const id = own(spec, "id");
      const group = own(spec, "group");
      const order = own(spec, "groupOrder");
      const identity = `${entry.pluginId}::${typeof id === "string" && id !== "" ? id : index}`;
      panels.push({
        id: identity,
        pluginId: entry.pluginId,
        spec,
        label: textIn(own(spec, "label"), locale) || entry.pluginId,
        icon: own(spec, "icon"),
        group: typeof group === "string" && group !== "" ? `group:${group}` : identity,
        groupOrder: typeof order === "number" ? order : 500,
      });
    }
  }
  return panels;
}

/** Panels by tab. The first panel of a shared group names it. */
export function groupPanels(panels: readonly Panel[], locale: string): Group[] {
  const groups = new Map<string, Group>();
  for (const panel of panels) {
    let group = groups.get(panel.group);
    if (!group) {
      const label = textIn(own(panel.spec, "groupLabel"), locale);
      group = { id: panel.group, label, icon: panel.icon, order: panel.groupOrder, panels: [] };
      groups.set(panel.group, group);
    }
    group.panels.push(panel);
  }
  // A tab with one panel says what the panel is; the group's name would only be vaguer.
  for (const group of groups.values()) {
    const [only] = group.panels;
    if (only && (group.panels.length === 1 || group.label === "")) group.label = only.label;
  }
  // A stable sort: equal orders keep the order of loading.
  return [...groups.values()].sort((a, b) => a.order - b.order);
}

interface Props {
  specs: UiSpecs;
  data: PluginData;
  locked: boolean;
  /** Resolves with the answer, if the action has one. */
  onAction(pluginId: string, action: ViewAction): Promise<unknown>;
}

export const Panels = memo(function Panels({ specs, data, locked, onAction }: Props) {
  const { t, tn, locale } = useI18n();
  const groups = useMemo(
    () => groupPanels(listPanels([...specs.left, ...specs.right], locale), locale),
    [specs, locale],
  );
  const [selected, setSelected] = useState<string>();
  const current = groups.some((group) => group.id === selected) ? selected : groups[0]?.id;
  const [enlarged, setEnlarged] = useState<string>();
  const [uiStates] = useState<UiStates>(() => new Map());
  const updated = useUpdatedGroups(groups, data, current);
  // A panel alone in its tab needs no heading of its own; its button then stands beside the tabs.
  const alone = (group: Group) => (group.panels.length === 1 ? group.panels[0] : undefined);
  const single = groups.filter((group) => group.id === current).map(alone)[0];

  return (
    <section className="panels" aria-label={t("panels.title")} data-testid="panels">
      {groups.length === 0 || current === undefined ? (
        <>
          <header className="side-head">
            <h2>{t("panels.title")}</h2>
          </header>
          <p className="muted panels-none">{t("panels.none")}</p>
        </>
      ) : (
        <RadixTabs.Root value={current} onValueChange={setSelected} className="panel-tabs">
          <div className="panel-bar">
            <RadixTabs.List className="panel-tab-list" aria-label={t("panels.title")}>
              {groups.map((group) => {
                const Icon = iconNamed(group.icon);
                return (
                  <RadixTabs.Trigger key={group.id} value={group.id} className="panel-tab">
                    {Icon && <Icon aria-hidden="true" />}
                    <span>{group.label}</span>
                    {updated.has(group.id) && (
                      <>
                        <span className="dot" aria-hidden="true" />
                        <span className="visually-hidden">, {t("panels.updated")}</span>
                      </>
                    )}
                  </RadixTabs.Trigger>
                );
              })}
            </RadixTabs.List>
            {single && <EnlargeButton panel={single} onClick={() => setEnlarged(single.id)} />}
          </div>
          {groups.map((group) => (
            // Kept in the page while hidden, so that a panel's inputs survive a change of tab.
            <RadixTabs.Content
              key={group.id}
              value={group.id}
              forceMount
              hidden={group.id !== current}
              className="panel-tab-content"
            >
              {group.panels.map((panel) => {
                const Frame = isWebView(panel) ? StillPanelFrame : PanelFrame;
                const large = enlarged === panel.id;
                return (
                  <Frame
                    key={panel.id}
                    panel={panel}
                    titled={alone(group) === undefined}
                    large={large}
                    onLarge={(large) => setEnlarged(large ? panel.id : undefined)}
                  >
                    <PanelBody
                      panel={panel}
                      data={data}
                      locked={locked}
                      large={large}
                      uiStates={uiStates}
                      onAction={onAction}
                    />
                  </Frame>
                );
              })}
            </RadixTabs.Content>
          ))}
        </RadixTabs.Root>
      )}
      {specs.diagnostics.length > 0 && <p className="view-notice">{tn("panels.dropped", specs.diagnostics.length)}</p>}
    </section>
  );
});

/** Groups whose data changed while another one was shown. */
function useUpdatedGroups(
  groups: readonly Group[],
  data: PluginData,
  current: string | undefined,
): ReadonlySet<string> {
  const [updated, setUpdated] = useState<ReadonlySet<string>>(new Set());
  const before = useRef<PluginData>(data);
  useEffect(() => {
    const previous = before.current;
    before.current = data;
    const changed = groups.filter((group) =>
      group.panels.some((panel) => {
        const { main } = specNamespaces(panel.spec);
        if (main === undefined) return false;
        const key = dataKey(panel.pluginId, main);
        // The first read is no update.
        return previous.has(key) && !sameRecords(previous.get(key), data.get(key));
      }),
    );
    setUpdated((marks) => {
      const next = new Set([...marks, ...changed.map((group) => group.id)]);
      if (current !== undefined) next.delete(current);
      return next.size === marks.size && [...next].every((id) => marks.has(id)) ? marks : next;
    });
  }, [groups, data, current]);
  return updated;
}

function sameRecords(a: Records | undefined, b: Records | undefined): boolean {
  if (a === b) return true;
  if (!a || !b || a.size !== b.size) return false;
  for (const [key, value] of a) {
    if (!b.has(key)) return false;
    const other = b.get(key);
    if (value !== other && JSON.stringify(value) !== JSON.stringify(other)) return false;
  }
  return true;
}

function EnlargeButton({ panel, onClick }: { panel: Panel; onClick(): void }) {
  const { t } = useI18n();
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={t("panels.enlarge", { name: panel.label })}
      onClick={onClick}
      data-testid={`enlarge-${panel.pluginId}`}
    >
      <Maximize2 aria-hidden="true" />
    </button>
  );
}

interface FrameProps {
  panel: Panel;
  titled: boolean;
  large: boolean;
  onLarge(large: boolean): void;
  children: ReactNode;
}

/** A panel with its heading. Enlarging moves the very same instance into a dialog and back, so that its inputs keep their state. */
function PanelFrame({ panel, titled, large, onLarge, children }: FrameProps) {
  const [home] = useState(() => {
    const element = document.createElement("div");
    element.className = "panel-home";
    return element;
  });
  const place = useCallback(
    (element: HTMLElement | null) => {
      if (element) element.append(home);
    },
    [home],
  );
  return (
    <article className="panel" aria-label={panel.label} data-testid={`panel-${panel.pluginId}`} data-panel={panel.id}>
      {titled && (
        <header className="panel-head">
          <h3>{panel.label}</h3>
          <EnlargeButton panel={panel} onClick={() => onLarge(true)} />
        </header>
      )}
      {!large && <div ref={place} />}
      <Dialog open={large} onOpenChange={onLarge} title={panel.label} size="large">
        <div ref={place} className="panel-large" />
      </Dialog>
      {createPortal(children, home)}
    </article>
  );
}

const isWebView = (panel: Panel): boolean => own(panel.spec, "webview") !== undefined;

/**
 * The same for a web view: a frame that is moved in the page loads anew, so the element around it becomes the dialog where
 * it stands. UIP-3
 */
function StillPanelFrame({ panel, titled, large, onLarge, children }: FrameProps) {
  const { t } = useI18n();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    if (!element) return;
    // Not `show()`: it would move the focus into a panel that is only there.
    element.removeAttribute("open");
    if (large) element.showModal();
    else element.setAttribute("open", "");
  }, [large]);
  const close = () => {
    // Closes what is modal, and gives the focus back to what opened it; the effect then shows it in its place again.
    if (dialog.current?.open) dialog.current.close();
    onLarge(false);
  };
  return (
    <article className="panel" aria-label={panel.label} data-testid={`panel-${panel.pluginId}`} data-panel={panel.id}>
      {titled && (
        <header className="panel-head">
          <h3>{panel.label}</h3>
          <EnlargeButton panel={panel} onClick={() => onLarge(true)} />
        </header>
      )}
      <dialog
        ref={dialog}
        className={large ? "webview-dialog" : "webview-home"}
        role={large ? undefined : "group"}
        aria-label={panel.label}
        onCancel={(event) => {
          event.preventDefault();
          close();
        }}
      >
        {large && (
          <header className="dialog-header">
            <h2 className="dialog-title">{panel.label}</h2>
            <button type="button" className="icon-button" aria-label={t("app.close")} onClick={close}>
              <X aria-hidden="true" />
            </button>
          </header>
        )}
        {children}
      </dialog>
    </article>
  );
}

interface BodyProps {
  panel: Panel;
  data: PluginData;
  locked: boolean;
  large?: boolean;
  uiStates: UiStates;
  onAction(pluginId: string, action: ViewAction): Promise<unknown>;
}

function PanelBody({ panel, data, locked, large = false, uiStates, onAction }: BodyProps) {
  const { t, locale } = useI18n();
  const { spec, pluginId } = panel;
  const names = useMemo(() => specNamespaces(spec), [spec]);
  const main = names.main === undefined ? EMPTY : (data.get(dataKey(pluginId, names.main)) ?? EMPTY);
  // One string of identities would be wrong here: the maps themselves are compared.
  const sources = names.bindings.map(([, namespace]) => data.get(dataKey(pluginId, namespace)) ?? EMPTY);
  const state = useMemo(
    () => panelState(main, new Map(names.bindings.map(([name], index) => [name, sources[index] ?? EMPTY]))),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `sources` is spread: its length is that of `names.bindings`.
    [main, names, ...sources],
  );
  const act = useCallback((action: ViewAction) => onAction(pluginId, action), [onAction, pluginId]);

  if (isWebView(panel)) {
    return (
      <WebView
        id={panel.id}
        label={panel.label}
        webview={own(spec, "webview")}
        data={main}
        locked={locked}
        large={large}
        uiStates={uiStates}
        onAction={act}
      />
    );
  }
  const empty = names.main !== undefined && main.size === 0 && own(spec, "alwaysRender") !== true;
  if (empty) {
    return (
      <p className="panel-empty">{textIn(own(own(spec, "emptyState"), "message"), locale) || t("panels.empty")}</p>
    );
  }
  return (
    <ErrorBoundary resetKey={state} fallback={<p className="view-notice">{t("panels.crash")}</p>}>
      <View view={own(spec, "view")} state={state} locked={locked} onAction={act} />
    </ErrorBoundary>
  );
}

/** Blocks that plugins put under the story; each shows once its namespace has data. */
export const MessageBlocks = memo(function MessageBlocks({ specs, data, locked, onAction }: Props) {
  const { locale } = useI18n();
  const panels = useMemo(() => listPanels(specs.message, locale), [specs, locale]);
  const [uiStates] = useState<UiStates>(() => new Map());
  const shown = panels.filter((panel) => {
    const { main } = specNamespaces(panel.spec);
    return main === undefined || (data.get(dataKey(panel.pluginId, main))?.size ?? 0) > 0;
  });
  if (shown.length === 0) return null;
  return (
    <div className="message-blocks">
      {shown.map((panel) => (
        <section
          key={panel.id}
          className="message-block"
          aria-label={panel.label}
          data-testid={`block-${panel.pluginId}`}
        >
          <PanelBody panel={panel} data={data} locked={locked} uiStates={uiStates} onAction={onAction} />
        </section>
      ))}
    </div>
  );
});
