import { useEffect, useState } from "react";

const CHOICES = ["system", "light", "dark"] as const;
type Theme = (typeof CHOICES)[number];

function remembered(): Theme {
  try {
    return CHOICES.find((choice) => choice === window.localStorage.getItem("weakspot-theme")) ?? "system";
  } catch {
    return "system";
  }
}

/** Light, dark, or as the system has it. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(remembered);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      window.localStorage.setItem("weakspot-theme", theme);
    } catch {
      // A page opened from a file may have no storage; the choice then holds until it is closed.
    }
  }, [theme]);
  return (
    <label className="theme">
      <span>Colours</span>
      <select value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        {CHOICES.map((choice) => <option key={choice}>{choice}</option>)}
      </select>
    </label>
  );
}
