/** HTTP calls of letters: `/api/dlq`, `/api/counts`, `/api/signatures`, `/api/activity` and `/api/overview`. */
import type { FastifyInstance } from 'fastify'
import { type ApiScope, serveApi } from '../api/calls.ts'
import type { Letters } from './letters.ts'
import { dlqCalls } from './routes/dlq.ts'
import { type AskSources, numberCalls } from './routes/numbers.ts'

interface LetterRoutesOptions extends ApiScope {
  readonly letters: Letters
  /** For the overview; left out: all sources are well. */
  readonly sourceHealth?: AskSources
}

export async function letterRoutes(app: FastifyInstance, options: LetterRoutesOptions): Promise<void> {
  const { letters, clock, sourceHealth } = options
  serveApi(app, options, [...dlqCalls(letters, clock), ...numberCalls(letters.numbers, sourceHealth)])
}
