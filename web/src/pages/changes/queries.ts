import { queryOptions } from "@tanstack/react-query";
import { api, read } from "../../api/client";

/** Services and environments; they come with the configuration, so they are not polled. */
export const servicesQuery = queryOptions({
  queryKey: ["services"],
  queryFn: ({ signal }) => read(api.GET("/api/v1/services", { signal })),
  staleTime: 5 * 60_000,
});
