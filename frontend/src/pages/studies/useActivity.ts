import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, unwrap } from "../../api/client";
import { ActivityMeter, REPORT_SECONDS } from "./activity";

const USES = ["pointerdown", "pointermove", "keydown", "wheel", "scroll"] as const;
const LEAST_SECONDS = 1;
const seconds = () => performance.now() / 1000;

/** Tell the server how long somebody is at work on a class, every quarter of a minute and when they leave. */
export function useActivity(studyId: string, classTitle: string | null, isOn: boolean): void {
  const queries = useQueryClient();
  useEffect(() => {
    if (!isOn) return undefined;
    const meter = new ActivityMeter(seconds());
    const use = () => meter.use(seconds());
    const report = async () => {
      meter.tick(seconds(), !document.hidden);
      const worked = meter.take();
      if (worked < LEAST_SECONDS) { meter.giveBack(worked); return; }
      try {
        const body = { seconds: worked, class_title: classTitle };
        const progress = await unwrap(api.POST("/api/studies/{study_id}/activity", { params: { path: { study_id: studyId } }, body }));
        queries.setQueryData(["studies", studyId, "progress"], progress);
      } catch {
        meter.giveBack(worked);
      }
      return undefined;
    };
    const onSight = () => { if (document.hidden) { meter.tick(seconds(), true); void report(); } else meter.tick(seconds(), false); };
    const timer = window.setInterval(() => void report(), REPORT_SECONDS * 1000);
    USES.forEach((name) => window.addEventListener(name, use, { passive: true }));
    document.addEventListener("visibilitychange", onSight);
    return () => {
      window.clearInterval(timer);
      USES.forEach((name) => window.removeEventListener(name, use));
      document.removeEventListener("visibilitychange", onSight);
      void report();
    };
  }, [studyId, classTitle, isOn, queries]);
}
