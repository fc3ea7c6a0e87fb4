// Light, dark, or as the system says.
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "ostinato-theme";

function stored(): Theme {
  const value = localStorage.getItem(KEY);
  return value === "light" || value === "dark" ? value : "system";
}

export const theme = signal<Theme>(stored());
export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  localStorage.setItem(KEY, theme.value);
});

export function nextTheme(): void {
  theme.value = theme.value === "system" ? "light" : theme.value === "light" ? "dark" : "system";
}
