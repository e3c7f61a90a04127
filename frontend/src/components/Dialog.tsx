import { useEffect, useId, useRef, type ReactNode } from "react";
import { Button } from "./Button";

type Props = { title: string; children: ReactNode; onClose: () => void };

/** A window of its own above the page; Escape closes it, and the focus goes back to where it was. */
export function Dialog({ title, children, onClose }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={box} aria-labelledby={id} onCancel={(event) => { event.preventDefault(); onClose(); }}>
      <div className="card-head">
        <h2 id={id}>{title}</h2>
        <Button kind="quiet" onClick={onClose} aria-label="Close">✕</Button>
      </div>
      {children}
    </dialog>
  );
}
