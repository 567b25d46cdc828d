import { cleanup, configure } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// What the component library asks of a browser and happy-dom does not have.
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};

if (!("fonts" in document)) {
  Object.defineProperty(document, "fonts", { value: new EventTarget() });
}

// A machine that is busy with other builds is slow, not wrong.
configure({ asyncUtilTimeout: 5_000 });

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
