import { useEffect } from "react";
import { neutral } from "./format";

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${neutral(title)} · Holdfast`;
  }, [title]);
}
