import type { Schemas } from "../../api/client";
import { Card } from "../../components/Card";
import { percent } from "../../components/figures";

/** What the classifier says of members and of the rest of the class, on the half that people look at. */
export function ConfusionCard({ slice }: { slice: Schemas["SlicePageView"] }) {
  const [inside, outside] = [slice.looked_at_inside.total, slice.looked_at_outside.total];
  return (
    <Card title="What it is confused with">
      <table className="slice-confusion">
        <caption className="quiet">{slice.half}: {inside} members, {outside} others of the class</caption>
        <thead><tr><th scope="col">Prediction</th><th scope="col">Members</th><th scope="col">Rest of the class</th></tr></thead>
        <tbody>
          {slice.confusion.map((answer) => (
            <tr key={answer.answer}>
              <th scope="row">{answer.answer} <span className="quiet">{answer.is_right ? "right" : "wrong"}</span></th>
              <Bar count={answer.inside} total={inside} isRight={answer.is_right} />
              <Bar count={answer.outside} total={outside} isRight={answer.is_right} />
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Bar({ count, total, isRight }: { count: number; total: number; isRight: boolean }) {
  const share = total ? count / total : 0;
  return (
    <td>
      <span className="slice-bar-track"><span className={`slice-bar ${isRight ? "right" : "wrong"}`} style={{ width: `${100 * share}%` }} /></span>
      <span className="figure">{percent(share)}</span> <span className="quiet">{count}</span>
    </td>
  );
}
