/** Redrives on HTTP: `/api/redrives`. */
import type { FastifyInstance } from 'fastify'
import { type ApiScope, serveApi } from '../http/api-routes.ts'
import { type RedriveCallsOptions, redriveCalls } from './routes/calls.ts'

export interface RedriveRoutesOptions extends ApiScope, RedriveCallsOptions {}

/** Adds the calls on redrives to a server. */
export async function redriveRoutes(app: FastifyInstance, options: RedriveRoutesOptions): Promise<void> {
  serveApi(app, options, redriveCalls(options))
}
