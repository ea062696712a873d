import { memo, useCallback, useMemo, useState, type ReactNode } from "react";
import { useI18n } from "../i18n";
import { Dialog } from "../ui/Dialog";
import { ErrorBoundary } from "../ui/ErrorBoundary";
import { COMPONENTS } from "./components";
import { ViewHostContext, type ViewHost } from "./context";
import { expandView, type ViewNode } from "./expand";
import { asText, evaluate, type Scope } from "./expression";
import { get, isDict, type Dict } from "./pointer";
import { keptEdits, withEdits, type Edits } from "./state";

/** What a view asks the page to do. Parameters are already evaluated. */
export interface ViewAction {
  action: string;
  params: Dict;
}

interface Props {
  view: unknown;
  state: unknown;
  locked: boolean;
  /** Resolves when done; a rejection is shown in the panel. */
  onAction(action: ViewAction): Promise<unknown>;
}

/** Bindings of one event that are run; a longer list is hostile. */
const MAX_BINDINGS = 8;

/** Draws a JSON view: expands it against the state, and keeps edits of its inputs until new data replaces them. */
export function View({ view, state, locked, onAction }: Props) {
  const { t, locale } = useI18n();
  const [edits, setEdits] = useState<Edits>(new Map());
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<string>();
  const [question, setQuestion] = useState<{ text: string; go(): void }>();

  const kept = useMemo(() => keptEdits(edits, state), [edits, state]);
  const current = useMemo(() => withEdits(state, kept), [state, kept]);
  const { roots, truncated } = useMemo(() => expandView(view, current, locale), [view, current, locale]);

  const edit = useCallback(
    (path: string, value: unknown) => {
      setEdits((before) => new Map(keptEdits(before, state)).set(path, { value, over: get(state, path) }));
    },
    [state],
  );

  const fire = useCallback(
    (binding: unknown, scope: Scope) => {
      const bindings = (Array.isArray(binding) ? binding : [binding]).filter(isDict).slice(0, MAX_BINDINGS);
      for (const entry of bindings) {
        const action = entry["action"];
        if (typeof action !== "string") continue;
        const params = evaluate(entry["params"] ?? {}, scope);
        const request: ViewAction = { action, params: isDict(params) ? params : {} };
        const go = () => {
          if (action === "setState") {
            edit(asText(request.params["statePath"]), request.params["value"]);
            return;
          }
          setBusy(true);
          setFailure(undefined);
          onAction(request)
            .catch((error: unknown) => setFailure(error instanceof Error ? error.message : String(error)))
            .finally(() => setBusy(false));
        };
        const confirm = entry["confirm"];
        if (confirm === undefined || confirm === null || confirm === false) go();
        else setQuestion({ text: confirmText(confirm, scope), go });
      }
    },
    [edit, onAction],
  );

  const isLocked = locked || busy;
  const host = useMemo<ViewHost>(() => ({ locale, locked: isLocked, edit, fire }), [locale, isLocked, edit, fire]);

  return (
    <ViewHostContext value={host}>
      <div className="view">
        {drawAll(roots)}
        {truncated && <p className="view-notice">{t("panels.truncated")}</p>}
        {failure !== undefined && (
          <p className="view-notice view-failure" role="alert">
            {t("panels.actionFailed", { reason: failure })}
          </p>
        )}
      </div>
      <Dialog
        open={question !== undefined}
        onOpenChange={() => setQuestion(undefined)}
        title={t("panels.confirm")}
        description={question?.text}
        size="small"
        footer={
          <>
            <button type="button" className="button" onClick={() => setQuestion(undefined)}>
              {t("app.cancel")}
            </button>
            <button
              type="button"
              className="button button-primary"
              onClick={() => {
                question?.go();
                setQuestion(undefined);
              }}
            >
              {t("panels.confirmYes")}
            </button>
          </>
        }
      />
    </ViewHostContext>
  );
}

function confirmText(confirm: unknown, scope: Scope): string {
  const value = evaluate(confirm, scope);
  if (!isDict(value)) return value === true ? "" : asText(value);
  return [value["title"], value["message"]].map(asText).filter(Boolean).join(" – ");
}

function drawAll(nodes: ViewNode[]): ReactNode[] {
  return nodes.map((node) => <Node key={node.key} node={node} />);
}

const Node = memo(function Node({ node }: { node: ViewNode }) {
  const { t } = useI18n();
  const Component = COMPONENTS.get(node.component);
  if (!Component) {
    return (
      <p className="view-notice" data-testid="view-unknown">
        {t("panels.unknown", { name: node.component.slice(0, 80) || "?" })}
      </p>
    );
  }
  const slot = (name: string) => {
    const nodes = Object.hasOwn(node.slots, name) ? node.slots[name] : undefined;
    return Array.isArray(nodes) ? <>{drawAll(nodes as ViewNode[])}</> : undefined;
  };
  return (
    <ErrorBoundary resetKey={node} fallback={<p className="view-notice">{t("panels.crash")}</p>}>
      <Component node={node} slot={slot}>
        {drawAll(node.children)}
      </Component>
    </ErrorBoundary>
  );
});
