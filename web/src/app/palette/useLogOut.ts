import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api } from "../../api/client";
import { meQuery } from "../../api/queries";
import { useAnnounce } from "../../ui/announce";

/** Ends the session here and forgets what was read in it. */
export function useLogOut(): () => void {
  const queries = useQueryClient();
  const announce = useAnnounce();
  const { mutate } = useMutation({
    mutationFn: () => api.DELETE("/api/v1/session"),
    onSuccess: () => {
      queries.clear();
      queries.setQueryData(meQuery.queryKey, null);
    },
    onError: () => announce("Logging out failed; you are still logged in"),
  });
  return () => mutate();
}
