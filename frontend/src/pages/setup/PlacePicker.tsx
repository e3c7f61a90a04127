import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, unwrap } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { counted } from "../../components/figures";
import { Loaded } from "../../components/Loaded";

type Props = { what: "data" | "model"; start: string; onPick: (path: string) => void; onClose: () => void };

/** Choose a folder or a file of the server's machine. */
export function PlacePicker({ what, start, onPick, onClose }: Props) {
  const [path, setPath] = useState(() => start.replace(/[/\\][^/\\]*$/, ""));
  const query = useQuery({
    queryKey: ["setup places", path],
    queryFn: async () => {
      try {
        return await unwrap(api.GET("/api/setup/places", { params: { query: { path } } }));
      } catch {
        return unwrap(api.GET("/api/setup/places", { params: { query: { path: "" } } }));
      }
    },
    retry: false,
  });
  return (
    <Dialog title={what === "data" ? "Choose images or a table" : "Choose a model file"} onClose={onClose}>
      <Loaded query={query} what="the folder">
        {(list) => (
          <div className="stack">
            <p><code>{list.path}</code>{list.n_images > 0 && <span className="quiet"> · {counted(list.n_images)} images</span>}</p>
            <ul className="plain-list setup-places">
              {list.above && <li><Button kind="quiet" onClick={() => setPath(list.above ?? "")}>↑ One folder up</Button></li>}
              {list.places.filter((place) => place.kind === "folder" || place.kind === what).map((place) => (
                <li key={place.path}>
                  {place.kind === "folder" ? (
                    <>
                      <Button kind="quiet" onClick={() => setPath(place.path)}>{place.name}/</Button>
                      <Button onClick={() => onPick(place.path)} aria-label={`Take the folder ${place.name}`}>Take</Button>
                    </>
                  ) : <Button kind="quiet" onClick={() => onPick(place.path)}>{place.name}</Button>}
                </li>
              ))}
            </ul>
            {!list.is_whole && <p className="quiet">There is more; type the path instead.</p>}
            <div className="row">
              {what === "data" && <Button onClick={() => onPick(list.path)}>Take this folder</Button>}
              <Button onClick={onClose}>Cancel</Button>
            </div>
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}
