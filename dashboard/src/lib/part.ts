import { type ComponentType, lazy } from "react";

/** A part of the dashboard's own script did not arrive: the server is gone, or has another version by now. */
export class MissingPart extends Error {
  override name = "MissingPart";
  readonly hint = "Is `holdfast serve` still running? It may also have been updated.";

  constructor() {
    super("A part of this page could not be loaded.");
  }
}

/** A component that is loaded when it is first shown. */
export function part<Properties extends object>(load: () => Promise<{ default: ComponentType<Properties> }>) {
  return lazy(() =>
    load().catch(() => {
      throw new MissingPart();
    }),
  );
}
