import { pictureAddress } from "../api/client";
import { Dialog } from "./Dialog";

type Props = { row: number; tables: string; onClose: () => void };

/** One sample in large, with what is known of it. */
export function SampleDialog({ row, tables, onClose }: Props) {
  return (
    <Dialog title="Sample" onClose={onClose}>
      <img src={pictureAddress(row, tables, 512)} alt="The sample" />
    </Dialog>
  );
}
