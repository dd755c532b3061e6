/** Steers a redrive: what the server answers is shown at once, what it refuses is said in its words. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { reasonOf } from '../api/call.ts'
import { redriveQuery } from '../api/redrive-queries.ts'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { useToasts } from '../toasts/toasts.tsx'

export interface Steering {
  readonly isBusy: boolean
  /** `refused` is the title of what is said when the server does not do it. */
  steer(refused: string, act: () => Promise<RedriveDetail>): void
}

export function useSteering(id: string): Steering {
  const client = useQueryClient()
  const { show } = useToasts()
  const readAnew = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ['redrives'] }),
      client.invalidateQueries({ queryKey: ['redrive', id] }),
    ])
  const { mutate, isPending } = useMutation({
    mutationFn: ({ act }: { readonly refused: string; readonly act: () => Promise<RedriveDetail> }) => act(),
    // Busy until the screen shows it.
    onSuccess: (redrive) => {
      client.setQueryData(redriveQuery(id).queryKey, redrive)
      return readAnew()
    },
    onError: (error, { refused }) => {
      show({ title: refused, message: reasonOf(error), tone: 'failed' })
      void readAnew()
    },
  })
  return { isBusy: isPending, steer: (refused, act) => mutate({ refused, act }) }
}
