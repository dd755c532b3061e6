/** The API of queues, and their overview. */
import type { ServedApi, ServerScope } from '../../api/source-http.ts'
import type { LetterNumbers } from '../../letters/numbers/letter-numbers.ts'
import { queueOverviewRoutes } from '../../queues/overview-routes.ts'
import type { Queues } from '../../queues/queues.ts'
import { queueFacade } from '../../queues/routes/reply.ts'
import { queueRoutes } from '../../queues/routes.ts'

export const queueApi = (
  served: { readonly queues: Queues; readonly numbers: LetterNumbers; readonly maxProduceBytes: number },
  server: ServerScope,
): ServedApi => ({
  facade: queueFacade,
  routes: async (app) => {
    await app.register(queueRoutes, { ...served, ...server })
    await app.register(queueOverviewRoutes, { ...served, ...server })
  },
})
