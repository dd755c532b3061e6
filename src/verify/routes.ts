/** HTTP calls of verify: `GET` shows the last run, `POST` starts one. */
import type { ApiCall } from '../api/calls.ts'
import { viewOf } from '../api/view.ts'
import { STANDING } from './shapes.ts'
import type { VerifyRun } from './verify-run.ts'

const standingOnWire = viewOf(STANDING)

export function verifyCalls(verifyRun: Pick<VerifyRun, 'look' | 'begin'>): readonly ApiCall[] {
  const call = (
    described: Pick<ApiCall, 'method' | 'role' | 'operationId' | 'summary'>,
    act: () => void,
  ): ApiCall => ({
    ...described,
    path: '/api/verify',
    tag: 'settings',
    data: STANDING,
    answer: async () => {
      act()
      return { status: 200, data: standingOnWire(verifyRun.look()) }
    },
  })
  const get = 'The check of the promises of the store that runs on this server, or the last that did'
  const start = 'Starts to check the promises of the store, unless this server does so already. Reads only'
  return [
    call({ method: 'GET', role: 'viewer', operationId: 'verify.get', summary: get }, () => {}),
    call({ method: 'POST', role: 'admin', operationId: 'verify.start', summary: start }, () =>
      verifyRun.begin(),
    ),
  ]
}
