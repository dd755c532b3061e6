/** HTTP calls of verify: `GET` shows the last run, `POST` starts one. */
import type { FastifyInstance } from 'fastify'
import { type ApiCall, type ApiScope, serveApi } from '../api/calls.ts'
import { type ApiDescription, objectOf } from '../api/describe.ts'
import { INTEGER, TEXT, TEXT_OR_NULL, TIME_OR_NULL } from '../api/shapes.ts'
import type { Instant } from '../core/clock.ts'
import { formatMicros } from '../core/timestamp.ts'
import type { VerifyRun, VerifyStanding } from './verify-run.ts'

export interface VerifyRoutesOptions extends ApiScope {
  readonly verifyRun: Pick<VerifyRun, 'look' | 'begin'>
}

const STATES: readonly VerifyStanding['state'][] = ['never', 'running', 'done', 'failed']

const STANDING = objectOf({
  state: { type: 'string', enum: STATES },
  startedAtUtc: TIME_OR_NULL,
  finishedAtUtc: TIME_OR_NULL,
  progress: {
    ...objectOf({ label: TEXT, done: INTEGER, expected: INTEGER }),
    type: ['object', 'null'],
    description: 'Rows looked at, while it runs',
  },
  error: { ...TEXT_OR_NULL, description: 'Why the store could not be checked' },
  checks: {
    type: 'array',
    description: 'Every promise of the store, once all of them are checked',
    items: objectOf({
      id: TEXT,
      title: TEXT,
      holds: { type: 'boolean' },
      findings: INTEGER,
      samples: { type: 'array', items: TEXT, maxItems: 5 },
    }),
  },
})

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

const standingOnWire = ({ startedAt, finishedAt, ...standing }: VerifyStanding) => ({
  state: standing.state,
  startedAtUtc: timeOrNull(startedAt),
  finishedAtUtc: timeOrNull(finishedAt),
  progress: standing.progress,
  error: standing.error,
  checks: standing.checks,
})

const timeOrNull = (at: Instant | null): string | null => (at === null ? null : formatMicros(at))
