import { useEffect } from "react";

/** Names the browser's tab, so that several open incidents can be told apart. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · holdfast`;
  }, [title]);
}
