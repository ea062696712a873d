import * as RadixSwitch from "@radix-ui/react-switch";
import { RotateCcw } from "lucide-react";
import { useId } from "react";
import type { PlayerSettings, PluginSummary, UserSetting } from "../api/types";
import { useI18n } from "../i18n";
import { stageName } from "../timeline/names";

interface Props {
  plugins: PluginSummary[];
  recommended: ReadonlySet<string>;
  chosen: ReadonlySet<string>;
  settings: PlayerSettings;
  onToggle(pluginId: string, on: boolean): void;
  onReset(): void;
  onSetting(pluginId: string, key: string, value: unknown): void;
}

export const isUsable = (plugin: PluginSummary): boolean => plugin.hostState !== "error";

export function PluginPicker({ plugins, recommended, chosen, settings, onToggle, onReset, onSetting }: Props) {
  const { t, tn } = useI18n();
  const asRecommended =
    plugins.filter((plugin) => chosen.has(plugin.id)).length === recommended.size &&
    [...recommended].every((id) => chosen.has(id));
  if (plugins.length === 0) return <p className="muted">{t("setup.plugins.none")}</p>;
  return (
    <>
      <ul className="plugin-list">
        {plugins.map((plugin) => (
          <Plugin
            key={plugin.id}
            plugin={plugin}
            recommended={recommended.has(plugin.id)}
            on={chosen.has(plugin.id)}
            values={settings[plugin.id] ?? {}}
            onToggle={(on) => onToggle(plugin.id, on)}
            onSetting={(key, value) => onSetting(plugin.id, key, value)}
          />
        ))}
      </ul>
      <div className="plugin-foot">
        <span className="muted">{tn("setup.plugins.count", chosen.size)}</span>
        {!asRecommended && recommended.size > 0 && (
          <button type="button" className="button button-ghost button-small" onClick={onReset}>
            <RotateCcw aria-hidden="true" /> {t("setup.plugins.reset")}
          </button>
        )}
      </div>
    </>
  );
}

interface PluginProps {
  plugin: PluginSummary;
  recommended: boolean;
  on: boolean;
  values: Record<string, unknown>;
  onToggle(on: boolean): void;
  onSetting(key: string, value: unknown): void;
}

function Plugin({ plugin, recommended, on, values, onToggle, onSetting }: PluginProps) {
  const { t, text } = useI18n();
  const id = useId();
  const name = text(plugin.displayName) || plugin.id;
  const description = text(plugin.description);
  const usable = isUsable(plugin);
  const stages = [
    ...new Set((plugin.runtimes ?? []).map((runtime) => runtime.stage).filter((stage) => typeof stage === "string")),
  ];
  const settings = (plugin.userSettings ?? []).filter((setting) => setting.type !== "slot");
  return (
    <li className={`plugin${on ? " plugin-on" : ""}`}>
      <div className="plugin-head">
        <div className="plugin-text">
          <label htmlFor={id} className="plugin-name">
            {name}
          </label>
          {recommended && <span className="chip chip-accent">{t("setup.plugins.recommended")}</span>}
          {plugin.source === "community" && <span className="chip">{t("setup.plugins.community")}</span>}
        </div>
        <RadixSwitch.Root
          id={id}
          className="switch"
          checked={on && usable}
          disabled={!usable}
          onCheckedChange={onToggle}
          aria-describedby={`${id}-text`}
          data-testid={`plugin-toggle-${plugin.id}`}
        >
          <RadixSwitch.Thumb className="switch-thumb" />
        </RadixSwitch.Root>
      </div>
      <div id={`${id}-text`} className="plugin-description">
        {description && <p>{description}</p>}
        {!usable && (
          <p className="plugin-error">{t("setup.plugins.broken", { error: plugin.error ?? plugin.hostState ?? "" })}</p>
        )}
        {stages.length > 0 && (
          <p className="plugin-stages">
            {t("setup.plugins.stages", { stages: stages.map((stage) => stageName(stage, t)).join(" · ") })}
          </p>
        )}
      </div>
      {on && usable && settings.length > 0 && (
        <details className="plugin-settings">
          <summary aria-label={t("setup.plugins.settings", { name })}>{t("setup.plugins.settingsShort")}</summary>
          {settings.map((setting) => (
            <Setting
              key={setting.key}
              setting={setting}
              value={Object.hasOwn(values, setting.key) ? values[setting.key] : setting.default}
              onChange={(value) => onSetting(setting.key, value)}
            />
          ))}
        </details>
      )}
    </li>
  );
}

function Setting({
  setting,
  value,
  onChange,
}: {
  setting: UserSetting;
  value: unknown;
  onChange(value: unknown): void;
}) {
  const { text } = useI18n();
  const id = useId();
  const label = text(setting.label) || setting.key;
  const description = text(setting.description);
  const describedBy = description ? { "aria-describedby": `${id}-text` } : {};
  const range = {
    ...(setting.min === undefined ? {} : { min: setting.min }),
    ...(setting.max === undefined ? {} : { max: setting.max }),
    ...(setting.step === undefined ? {} : { step: setting.step }),
  };
  const shown = value === undefined || value === null || typeof value === "object" ? "" : String(value);
  const numeric = (raw: string) => {
    const parsed = Number(raw);
    if (raw.trim() !== "" && Number.isFinite(parsed)) onChange(parsed);
  };
  const control = () => {
    switch (setting.type) {
      case "toggle":
        return (
          <RadixSwitch.Root
            id={id}
            className="switch"
            checked={value === true}
            onCheckedChange={onChange}
            {...describedBy}
          >
            <RadixSwitch.Thumb className="switch-thumb" />
          </RadixSwitch.Root>
        );
      case "select":
        return (
          <select
            id={id}
            className="input"
            value={shown}
            onChange={(event) => onChange(event.target.value)}
            {...describedBy}
          >
            {(setting.options ?? []).map((option) => (
              <option key={option.value} value={option.value}>
                {text(option.label) || option.value}
              </option>
            ))}
          </select>
        );
      case "slider":
        return (
          <span className="setting-slider">
            <input
              id={id}
              type="range"
              {...range}
              value={shown}
              onChange={(event) => numeric(event.target.value)}
              {...describedBy}
            />
            <output htmlFor={id}>{shown}</output>
          </span>
        );
      case "number":
      case "integer":
        return (
          <input
            id={id}
            className="input"
            type="number"
            {...range}
            defaultValue={shown}
            onChange={(event) => numeric(event.target.value)}
            {...describedBy}
          />
        );
      case "textarea":
        return (
          <textarea
            id={id}
            className="input"
            rows={3}
            value={shown}
            onChange={(event) => onChange(event.target.value)}
            {...describedBy}
          />
        );
      default:
        return (
          <input
            id={id}
            className="input"
            value={shown}
            onChange={(event) => onChange(event.target.value)}
            {...describedBy}
          />
        );
    }
  };
  return (
    <div className="setting">
      <label htmlFor={id}>{label}</label>
      {control()}
      {description && (
        <p id={`${id}-text`} className="muted">
          {description}
        </p>
      )}
    </div>
  );
}
