/** Queues on a server: their API, and the overview of them. */
import type { ServedSource } from '../../api/source-http.ts'
import type { Ledger } from '../../letters/ledger.ts'
import { queueOverviewRoutes } from '../../queues/overview-routes.ts'
import type { Queues } from '../../queues/queue.ts'
import { queueFacade } from '../../queues/routes/reply.ts'
import { queueRoutes } from '../../queues/routes.ts'

interface ServedParts {
  readonly queues: Queues
  readonly ledger: Ledger
  readonly maxProduceBytes: number
}

export const servedQueues = ({ maxProduceBytes, ...parts }: ServedParts): ServedSource => ({
  http: {
    serve: (server) => ({
      facade: queueFacade,
      routes: async (app) => {
        await app.register(queueRoutes, { maxProduceBytes, ...parts, ...server })
        await app.register(queueOverviewRoutes, { ...parts, ...server })
      },
    }),
  },
})
