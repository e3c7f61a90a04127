import { useQuery } from "@tanstack/react-query";
import { api, serverRoot, unwrap } from "../../api/client";
import { Card } from "../../components/Card";
import { size } from "../../components/figures";
import { Loaded } from "../../components/Loaded";

/** The files of the newest repair. */
export function Downloads({ runId }: { runId: string }) {
  const query = { run: runId };
  const files = useQuery({
    queryKey: ["repair-downloads", runId],
    queryFn: () => unwrap(api.GET("/api/repair/downloads", { params: { query } })),
  });
  return (
    <Card title="Download">
      <Loaded query={files} what="the files">
        {(data) => (
          data.files.length === 0 ? <p className="quiet">This repair left no files.</p> : (
            <ul className="downloads">
              {data.files.map((file) => (
                <li key={file.name}>
                  <a href={`${serverRoot}/api/repair/downloads/${file.name}?run=${encodeURIComponent(runId)}`} download={file.name}>{file.name}</a>{" "}
                  <span className="quiet">{size(file.size)} {file.sentence}</span>
                </li>
              ))}
            </ul>
          )
        )}
      </Loaded>
    </Card>
  );
}
