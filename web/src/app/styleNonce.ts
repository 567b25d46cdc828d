import { setNonce } from "get-nonce";

/** The nonce of this page's content policy; a browser hides the attribute but not the property. */
export function styleNonce(): string {
  const carrier = document.querySelector<HTMLElement>("meta[property=csp-nonce], script[nonce]");
  return carrier?.nonce ?? "";
}

// The scroll lock behind dialogs adds its own style sheet and asks this module.
setNonce(styleNonce());
