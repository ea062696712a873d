import { CornerDownLeft, LoaderCircle, Square } from "lucide-react";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import type { Command } from "../api/types";
import { useI18n } from "../i18n";
import { MAX_MESSAGE, argumentHint, commandHints, commandWord, readComposed } from "./commands";
import type { Intent } from "./usePlay";

interface Props {
  text: string;
  onText(text: string): void;
  commands: Command[] | undefined;
  running: boolean;
  /** No turn can be started for another reason than a running one. */
  blocked: boolean;
  stopping: boolean;
  canStop: boolean;
  onSend(intent: Intent): void;
  onStop(): void;
}

export function Composer({ text, onText, commands, running, blocked, stopping, canStop, onSend, onStop }: Props) {
  const { t, text: localised } = useI18n();
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [problem, setProblem] = useState<string>();
  const [choice, setChoice] = useState(0);
  const [hintsClosed, setHintsClosed] = useState(false);

  const hints = hintsClosed ? [] : commandHints(text, commands ?? []);
  const active = hints[Math.min(choice, hints.length - 1)];

  useEffect(() => {
    setChoice(0);
    setHintsClosed(false);
    setProblem(undefined);
  }, [text]);

  useEffect(() => {
    const element = field.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 220)}px`;
  }, [text]);

  const send = () => {
    if (running || blocked) return;
    const composed = readComposed(text, commands);
    switch (composed.kind) {
      case "empty":
        return;
      case "too-long":
        setProblem(t("composer.tooLong", { max: MAX_MESSAGE.toLocaleString() }));
        return;
      case "unknown-command":
        setProblem(t("composer.unknownCommand", { command: composed.word }));
        return;
      case "message":
        onText("");
        onSend({ type: "send_message", content: composed.content });
        return;
      case "command":
        onText("");
        onSend({ type: "execute_command", command: composed.command });
    }
  };

  const complete = (command: Command) => {
    onText(`/${commandWord(command)} `);
    field.current?.focus();
  };

  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    // Enter that picks a candidate of an input method is not ours (229 is what some browsers report for it).
    if (event.nativeEvent.isComposing || event.keyCode === 229) return;
    if (hints.length > 0 && active) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        setChoice((choice + (event.key === "ArrowDown" ? 1 : hints.length - 1)) % hints.length);
        return;
      }
      if (event.key === "Escape") {
        event.preventDefault();
        setHintsClosed(true);
        return;
      }
      const whole = text === `/${commandWord(active)}`;
      if ((event.key === "Tab" && !event.shiftKey && !whole) || (event.key === "Enter" && !event.shiftKey && !whole)) {
        event.preventDefault();
        complete(active);
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      send();
    }
  };

  const listId = `${id}-commands`;
  return (
    <form
      className={`composer${running ? " composer-locked" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {hints.length > 0 && (
        <ul id={listId} role="listbox" aria-label={t("composer.commands")} className="hints">
          {hints.map((command, index) => (
            <li
              key={command.commandId}
              id={`${listId}-${index}`}
              role="option"
              aria-selected={command === active}
              className="hint"
              onMouseDown={(event) => {
                event.preventDefault();
                complete(command);
              }}
            >
              <span className="hint-name">/{commandWord(command)}</span>
              <span className="hint-arguments">{argumentHint(command)}</span>
              <span className="hint-text">{localised(command.description)}</span>
            </li>
          ))}
        </ul>
      )}
      <div className="composer-box">
        <label className="visually-hidden" htmlFor={`${id}-text`}>
          {t("composer.label")}
        </label>
        <textarea
          ref={field}
          id={`${id}-text`}
          className="composer-text"
          rows={1}
          value={text}
          placeholder={t("composer.placeholder")}
          // A text box with a list, not a combobox: that role is not for text of several lines.
          aria-autocomplete="list"
          aria-haspopup="listbox"
          aria-controls={hints.length > 0 ? listId : undefined}
          aria-activedescendant={active ? `${listId}-${hints.indexOf(active)}` : undefined}
          aria-describedby={`${id}-hint`}
          aria-invalid={problem !== undefined || undefined}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={onKeyDown}
          data-testid="composer"
        />
        {running && canStop ? (
          <button
            type="button"
            className="button composer-stop"
            disabled={stopping}
            onClick={onStop}
            data-testid="stop"
          >
            {stopping ? <LoaderCircle className="spin" aria-hidden="true" /> : <Square aria-hidden="true" />}
            {t(stopping ? "composer.stopping" : "composer.stop")}
          </button>
        ) : (
          <button
            type="submit"
            className="button button-primary composer-send"
            disabled={running || blocked || text.trim() === ""}
            data-testid="send"
          >
            {running ? <LoaderCircle className="spin" aria-hidden="true" /> : <CornerDownLeft aria-hidden="true" />}
            {t("composer.send")}
          </button>
        )}
      </div>
      <p
        id={`${id}-hint`}
        className={`composer-hint${problem ? " composer-problem" : ""}`}
        {...(problem ? { role: "alert" } : {})}
      >
        {problem ?? t(running ? "composer.locked" : "composer.hint")}
      </p>
    </form>
  );
}
