import { CircleAlert, RotateCw, X } from "lucide-react";
import type { ApiError } from "../api/client";
import { useI18n } from "../i18n";

/** What a failure means to the player, in plain words: by code, then by status, then the server's own text. */
export function useErrorText(): (error: Pick<ApiError, "code" | "message" | "status">) => string {
  const { t, has } = useI18n();
  return (error) => {
    const key = `error.${error.code}`;
    if (has(key)) return t(key);
    if (error.status === 413) return t("error.too-large");
    if (error.status === 429) return t("error.rate_limit_exceeded");
    if (error.message) return error.message;
    return error.status >= 500 ? t("error.server") : t("error.title");
  };
}

interface Props {
  error: Pick<ApiError, "code" | "message" | "status">;
  /** One sentence on what was being done. */
  lead?: string;
  onRetry?: (() => void) | undefined;
  onDismiss?: (() => void) | undefined;
}

export function ErrorBanner({ error, lead, onRetry, onDismiss }: Props) {
  const { t } = useI18n();
  const errorText = useErrorText();
  return (
    <div className="banner" role="alert" data-testid="error-banner">
      <CircleAlert className="banner-icon" aria-hidden="true" />
      <div className="banner-text">
        {lead && <p className="banner-lead">{lead}</p>}
        <p>{errorText(error)}</p>
        {error.code && !error.code.startsWith("http-") && (
          <p className="banner-code">{t("error.code", { code: error.code })}</p>
        )}
      </div>
      <div className="banner-actions">
        {onRetry && (
          <button type="button" className="button button-small" onClick={onRetry}>
            <RotateCw aria-hidden="true" /> {t("app.retry")}
          </button>
        )}
        {onDismiss && (
          <button type="button" className="icon-button" aria-label={t("app.dismiss")} onClick={onDismiss}>
            <X aria-hidden="true" />
          </button>
        )}
      </div>
    </div>
  );
}
