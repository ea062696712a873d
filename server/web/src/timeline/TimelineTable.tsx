import { useI18n } from "../i18n";
import type { Timeline } from "./model";
import { shortRuntime, stageName } from "./names";
import { duration } from "./scale";

/** A turn as a table: every fact of the picture, in reading order. */
export function TimelineTable({ timeline, caption }: { timeline: Timeline; caption: string }) {
  const { t, locale } = useI18n();
  return (
    // A region that scrolls must be reachable by keyboard.
    <div className="table-scroll" tabIndex={0} role="group" aria-label={caption}>
      <table className="timeline-table" data-testid="timeline-table">
        <caption className="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            <th scope="col">{t("timeline.stage")}</th>
            <th scope="col" className="num">
              {t("timeline.layer")}
            </th>
            <th scope="col">{t("timeline.runtime")}</th>
            <th scope="col">{t("timeline.status")}</th>
            <th scope="col" className="num">
              {t("timeline.started")}
            </th>
            <th scope="col" className="num">
              {t("timeline.duration")}
            </th>
          </tr>
        </thead>
        <tbody>
          {timeline.rows.map((row) => (
            <tr key={row.key}>
              <td>{stageName(row.stage, t)}</td>
              <td className="num">{row.layer}</td>
              <th scope="row">
                {shortRuntime(row.runtimeId, row.pluginId)}
                {row.pluginId && row.pluginId !== row.runtimeId && (
                  <span className="table-plugin"> {row.pluginId}</span>
                )}
              </th>
              <td>
                <span className={`status status-${row.status}`}>{t(`status.${row.status}`)}</span>
                {(row.error ?? row.reason) && <span className="muted"> · {row.error ?? row.reason}</span>}
              </td>
              <td className="num">{duration(row.start, locale)}</td>
              <td className="num">{row.status === "skipped" ? "–" : duration(row.end - row.start, locale)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
