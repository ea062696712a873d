import * as RadixDialog from "@radix-ui/react-dialog";
import { X } from "lucide-react";
import type { ReactNode } from "react";
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
  return (
    <RadixDialog.Root open={open} onOpenChange={onOpenChange}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="dialog-overlay">
          <RadixDialog.Content
            className={`dialog dialog-${size}`}
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
