/** Who may act on letters of Kafka, by the doors that are not its own. */

import { createHash } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { KafkaHttp, TOKEN } from '../../../test/world/kafka/http.ts'
import { freshSqlite } from '../../../test/world/stores.ts'
import { failure } from '../../core/errors.ts'
import { type Xid, xid } from '../../core/xid.ts'
import { DrawerLabels } from '../../letters/numbers/find-drawers.ts'
import { expiryKind } from '../../letters/retention/expire.ts'
import type { OfficeRuns, OfficeWork } from '../../letters/work.ts'
import type { Run, RunKind } from '../../work/run.ts'
import { defineReassignment } from './reassign.ts'

const SQLITE = { name: 'sqlite', fresh: freshSqlite } as const

let http: KafkaHttp
afterEach(() => http.close())

const DLQ_ID = '8b3b8f2e-1c55-4c5e-9d5b-0d4f5f3f3a11'
const KAFKA_REDRIVE = xid('cv6mqvhqmt5c73e8q1ug')
const OTHER_REDRIVE = xid('cv6mqvhqmt5c73e8q1v0')

/** Runs, of which a call reads only what it is about. */
const RUNS: ReadonlyMap<Xid, Pick<Run, 'kind' | 'subject'>> = new Map([
  [xid('cv6mqvhqmt5c73e8q200'), { kind: 'expire', subject: { before: '1', engine: 'kafka' } }],
  [xid('cv6mqvhqmt5c73e8q20g'), { kind: 'expire', subject: { before: '1', engine: null } }],
  [xid('cv6mqvhqmt5c73e8q210'), { kind: 'kafka-reassignment', subject: null }],
  [KAFKA_REDRIVE, { kind: 'redrive', subject: null }],
])
const OTHER_RUNS: typeof RUNS = new Map([
  [xid('cv6mqvhqmt5c73e8q21g'), { kind: 'expire', subject: { before: '1', engine: 'billing' } }],
  [xid('cv6mqvhqmt5c73e8q220'), { kind: 'retention', subject: null }],
  [OTHER_REDRIVE, { kind: 'redrive', subject: null }],
])
const sourcesOf = async (id: Xid) => [id === KAFKA_REDRIVE ? 'kafka' : 'queues']

/** The kinds of these runs that act on letters. */
const KINDS = new Map<string, Pick<RunKind<OfficeWork>, 'sourcesOf'>>()
// They are only taken down.
const runs = { define: (kind: RunKind<OfficeWork>) => KINDS.set(kind.kind, kind) } as unknown as OfficeRuns
runs.define(expiryKind({ sources: new Map(), labels: new DrawerLabels() }) as RunKind<OfficeWork>)
defineReassignment(runs, {} as Parameters<typeof defineReassignment>[1])
const VERBS = ['pause', 'resume', 'cancel'] as const
const steeringOf = (runs: typeof RUNS): readonly Act[] =>
  [...runs.keys()].flatMap((id) => VERBS.map((verb) => ['POST', `/api/runs/${id}/${verb}`, {}] as const))

/** Letters and redrives that only write down what is done to them. */
async function open(tokens: readonly { name: string; role: 'viewer' | 'operator' }[] = []) {
  const done: string[] = []
  const note = (what: string) => async () => {
    done.push(what)
    return { status: 200, body: {} }
  }
  const steer = async () => note('steered')()
  http = await KafkaHttp.open(SQLITE, {
    tokens: tokens.map(({ name, role }) => ({
      name,
      role,
      sha256: createHash('sha256').update(name).digest('hex'),
    })),
    office: {
      letters: { retryOnce: note('retried'), once: note('changed'), expireOnce: note('expired') },
      // A redrive is asked only where its letters go.
      redriveCalls: { steer, sourcesOf } as object,
      runs: {
        read: async (id: Xid) => ({ id, ...(RUNS.get(id) ?? OTHER_RUNS.get(id)) }) as Run,
        sourcesOf: async (run: Run) => {
          const kind = KINDS.get(run.kind)
          if (kind?.sourcesOf !== undefined) return kind.sourcesOf(run)
          return run.kind === 'redrive' ? sourcesOf(run.id) : []
        },
      },
    },
  })
  return done
}

type Act = readonly [method: 'POST' | 'PATCH', url: string, body: object]
const ACTS: readonly Act[] = [
  ['POST', '/api/dlq/kafka/x/retry', {}],
  ['POST', '/api/dlq/%6bafka/x/retry', {}],
  ['PATCH', '/api/dlq/kafka/x', { status: 'Resolved', resolutionNotes: 'n' }],
  ['POST', '/api/dlq/expire', { olderThanDays: 9, engine: 'kafka' }],
  ['POST', '/api/dlq/expire', { olderThanDays: 9 }],
  ['POST', `/api/kafka/events/${DLQ_ID}/reassign`, { service: 'wps' }],
  ...['start', 'pause', 'resume', 'cancel'].map(
    (verb) => ['POST', `/api/redrives/${KAFKA_REDRIVE}/${verb}`, {}] as const,
  ),
  ['POST', `/api/redrives/${KAFKA_REDRIVE}/rate`, { rate: 5 }],
  ...steeringOf(RUNS),
]
const answerTo = async ([method, url, body]: Act, token: string | null, headers = {}) => {
  const reply = await http.ask(url, { method, body, token, headers })
  return [url, reply.statusCode, reply.json().error?.code]
}

describe('letters of Kafka on a server without tokens', () => {
  it('are acted on by nobody without one', async () => {
    const done = await open()
    for (const act of ACTS) {
      expect(await answerTo(act, null)).toEqual([act[1], 401, 'kafka_token_missing'])
      expect((await answerTo(act, 'wrong'))[1]).toBe(401)
    }
    expect(done).toEqual([])
  })

  it('are acted on with a token of Kafka, sent or signed in with', async () => {
    const done = await open()
    for (const act of ACTS) expect((await answerTo(act, TOKEN))[1]).not.toBe(401)
    expect(done).toHaveLength(ACTS.length - 1)
    const own = { host: 'localhost:1853', origin: 'http://localhost:1853' }
    const signIn = (token: string) =>
      http.ask('/api/session', { method: 'POST', token: null, headers: own, body: { token } })
    expect((await signIn('wrong')).statusCode).toBe(401)
    const signedIn = await signIn(TOKEN)
    expect(signedIn.json().data).toMatchObject({ name: 'token#1', needsToken: false, reach: 'all' })
    const cookie = String(signedIn.headers['set-cookie']).split(';')[0] ?? ''
    for (const act of ACTS) expect((await answerTo(act, null, { ...own, cookie }))[1]).not.toBe(401)
  })

  it('leave everything else as open as it was', async () => {
    const done = await open()
    const others: readonly Act[] = [
      ['POST', '/api/dlq/billing/x/retry', {}],
      ['POST', '/api/dlq/expire', { olderThanDays: 9, engine: 'billing' }],
      ['POST', `/api/redrives/${OTHER_REDRIVE}/start`, {}],
      ...steeringOf(OTHER_RUNS),
    ]
    for (const act of others) expect((await answerTo(act, null))[1]).toBe(200)
    for (const act of others) expect((await answerTo(act, 'whatever'))[1]).toBe(200)
    expect(done).toHaveLength(2 * others.length)
    const session = (await http.ask('/api/session', { token: null })).json().data
    expect(session).toMatchObject({ signedIn: true, name: 'anyone', reach: 'all-but-kafka' })
  })
})

describe('letters of Kafka on a server with tokens', () => {
  it('are acted on with the role, or with a token of Kafka that is good for nothing else', async () => {
    await open([
      { name: 'look', role: 'viewer' },
      { name: 'work', role: 'operator' },
    ])
    const [retry] = ACTS
    if (retry === undefined) throw failure('internal')
    const statuses = async (act: Act) => [
      (await answerTo(act, null))[1],
      (await answerTo(act, 'look'))[1],
      (await answerTo(act, 'work'))[1],
      (await answerTo(act, TOKEN))[1],
    ]
    expect(await statuses(retry)).toEqual([401, 403, 200, 200])
    expect(await statuses(['POST', '/api/dlq/billing/x/retry', {}])).toEqual([401, 403, 200, 401])
    expect(await statuses(['POST', '/api/dlq/expire', { olderThanDays: 9 }])).toEqual([401, 403, 200, 401])
    for (const url of ['/metrics', '/api/dlq', '/api/dlq?engine=kafka&engine=billing', '/channels'])
      expect([url, (await http.ask(url)).statusCode]).toEqual([url, 401])
  })
})
