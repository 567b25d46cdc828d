import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { AnnounceProvider } from "../ui/announce";
import type { newRouter } from "./router";
import { theme } from "./theme";

const colorScheme = localStorageColorSchemeManager({ key: "holdfast-color-scheme" });

type Props = { router: ReturnType<typeof newRouter>; queries: QueryClient };

/** The console with everything around it. */
export function App({ router, queries }: Props) {
  return (
    <MantineProvider
      theme={theme}
      defaultColorScheme="auto"
      colorSchemeManager={colorScheme}
      getStyleNonce={styleNonce}
    >
      <QueryClientProvider client={queries}>
        <AnnounceProvider>
          <RouterProvider router={router} />
        </AnnounceProvider>
      </QueryClientProvider>
    </MantineProvider>
  );
}

/** The nonce of this page's content policy; a browser hides the attribute but not the property. */
function styleNonce(): string {
  const carrier = document.querySelector<HTMLElement>("meta[property=csp-nonce], script[nonce]");
  return carrier?.nonce ?? "";
}
