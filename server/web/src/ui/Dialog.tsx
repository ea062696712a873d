import * as RadixDialog from "@radix-ui/react-dialog";
import { X } from "lucide-react";
import { useRef, type ReactNode } from "react";
import { useI18n } from "../i18n";

interface Props {
  open: boolean;
  onOpenChange(open: boolean): void;
  title: ReactNode;
  description?: ReactNode;
  size?: "small" | "medium" | "large";
  children?: ReactNode;
  footer?: ReactNode;
}

/** A modal dialog: focus stays inside, Escape closes, focus goes back to what opened it. */
export function Dialog({ open, onOpenChange, title, description, size = "medium", children, footer }: Props) {
  const { t } = useI18n();
  const opener = useRef<Element>(null);
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="dialog-overlay">
          <RadixDialog.Content
            className={`dialog dialog-${size}`}
            onOpenAutoFocus={() => {
              opener.current = document.activeElement;
            }}
            onCloseAutoFocus={(event) => {
              // The library gives the focus back only to a trigger of its own. What opened the dialog may be gone by now.
              event.preventDefault();
              const target = opener.current?.isConnected ? opener.current : document.getElementById("main");
              if (target instanceof HTMLElement) target.focus({ preventScroll: true });
            }}
            {...(description === undefined ? { "aria-describedby": undefined } : {})}
          >
            <header className="dialog-header">
              <RadixDialog.Title className="dialog-title">{title}</RadixDialog.Title>
              <RadixDialog.Close className="icon-button" aria-label={t("app.close")}>
                <X aria-hidden="true" />
              </RadixDialog.Close>
            </header>
            <div className="dialog-body">
              {description !== undefined && (
                <RadixDialog.Description className="dialog-description">{description}</RadixDialog.Description>
              )}
              {children}
            </div>
            {footer !== undefined && <footer className="dialog-footer">{footer}</footer>}
          </RadixDialog.Content>
        </RadixDialog.Overlay>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}
