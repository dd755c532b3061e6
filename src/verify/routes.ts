/** HTTP calls of verify: `GET` shows the last run, `POST` starts one. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../api/calls.ts'
import type { ApiDescription } from '../api/describe.ts'
import { viewOf } from '../api/view.ts'
import { STANDING } from './shapes.ts'
import type { VerifyRun } from './verify-run.ts'

export interface VerifyRoutesOptions extends ApiScope {
  readonly verifyRun: Pick<VerifyRun, 'look' | 'begin'>
}

const standingOnWire = viewOf(STANDING)

export async function verifyRoutes(app: FastifyInstance, options: VerifyRoutesOptions): Promise<void> {
  const { verifyRun } = options
  const call = (
    { method, role }: Pick<ApiCall, 'method' | 'role'>,
    { operationId, summary }: Pick<ApiDescription, 'operationId' | 'summary'>,
    act: () => void,
  ): ApiCall => ({
    method,
    path: '/api/verify',
    role,
    operationId,
    tag: 'settings',
    summary,
    data: STANDING,
    answer: async () => {
      act()
      return { status: 200, data: standingOnWire(verifyRun.look()) }
    },
  })
  const get = 'The check of the promises of the store that runs on this server, or the last that did'
  const start = 'Starts to check the promises of the store, unless this server does so already. Reads only'
  serveApi(app, options, [
    call({ method: 'GET', role: 'viewer' }, { operationId: 'verify.get', summary: get }, () => {}),
    call({ method: 'POST', role: 'admin' }, { operationId: 'verify.start', summary: start }, () =>
      verifyRun.begin(),
    ),
  ])
}
