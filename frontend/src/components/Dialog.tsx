import { useId, useLayoutEffect, useRef, type ReactNode } from "react";
import { Button } from "./Button";

type Props = { title: string; children: ReactNode; onClose: () => void; className?: string };

/** A window of its own above the page; the focus goes to the first field, and back to where it was when Escape closes it. */
export function Dialog({ title, children, onClose, className }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed while it is still on the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={box} className={className} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <div className="card-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" onClick={onClose} aria-label="Close">✕</Button>
      </div>
      {children}
    </dialog>
  );
}
