import { useQuery } from "@tanstack/react-query";
import { meQuery } from "../api/queries";
import type { Me } from "../api/types";

/** Who is logged in; undefined while unknown, null when nobody is. */
export function useMe(): Me | null | undefined {
  return useQuery(meQuery).data;
}
