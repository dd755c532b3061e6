/** Letters on HTTP: `/api/dlq`, `/api/counts` and `/api/signatures`. */
import type { FastifyInstance } from 'fastify'
import { type ApiScope, serveApi } from '../http/api-routes.ts'
import type { Letters } from './letters.ts'
import { countCalls } from './routes/counts.ts'
import { dlqCalls } from './routes/dlq.ts'
import { signatureCalls } from './routes/signatures.ts'

export interface LetterRoutesOptions extends ApiScope {
  readonly letters: Letters
}

/** Adds the calls on letters to a server. */
export async function letterRoutes(app: FastifyInstance, options: LetterRoutesOptions): Promise<void> {
  const { letters, clock } = options
  serveApi(app, options, [
    ...dlqCalls(letters, clock),
    ...countCalls(letters.ledger),
    ...signatureCalls(letters.ledger),
  ])
}
