import { localStorageColorSchemeManager, MantineProvider } from "@mantine/core";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { AnnounceProvider } from "../ui/announce";
import type { newRouter } from "./router";
import { styleNonce } from "./styleNonce";
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
