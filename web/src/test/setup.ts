import { cleanup } from "@testing-library/react";
import { afterEach, vi } from "vitest";

// What the component library asks of a browser and happy-dom does not have.
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});
