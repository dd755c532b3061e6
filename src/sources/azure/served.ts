/** What a server asks of the account: calls for those who look after it, metrics and health. */
import Type from 'typebox'
import type { ApiCall } from '../../api/calls.ts'
import { ok, serveApi } from '../../api/calls.ts'
import { family } from '../../api/exposition.ts'
import { refuseUnknownFields } from '../../api/json-body.ts'
import { orNull, TEXT } from '../../api/shapes.ts'
import { type ServedSource, type SourceHealth, WELL } from '../../api/source-http.ts'
import type { Instant } from '../../core/clock.ts'
import { failure, refuse } from '../../core/errors.ts'
import { formatMicros } from '../../core/timestamp.ts'
import type { Letters } from '../../letters/letters.ts'
import type { Azure } from './azure.ts'
import { AZURE } from './parts.ts'
import { type AzureOverview, counted, OVERVIEW } from './shapes.ts'

/** `azure` is null where no account is configured. */
export const servedAzure = (azure: Azure | null, letters: Letters): ServedSource => ({
  http: {
    isPresent: () => azure !== null,
    serve: async (server) => ({ routes: async (app) => void serveApi(app, server, callsOf(azure, letters)) }),
  },
  ...(azure !== null && { metrics: () => metricsOf(azure) }),
  health: () => healthOf(azure),
  isDegraded: () => azure !== null && azure.troubles().length > 0,
})

async function healthOf(azure: Azure | null): Promise<SourceHealth> {
  if (azure === null) return { state: 'off', note: 'no storage account is configured' }
  const { troubles, uncertain, unwritten } = await azure.state()
  const notes = [
    ...troubles,
    ...(uncertain === 0
      ? []
      : [`${counted(uncertain)} letters may be on their way; settle them with: bartleby azure settle`]),
    ...(unwritten === 0 ? [] : [`${counted(unwritten)} acts are not yet written to the table`]),
  ]
  const output = troubles.length === 0 ? null : 'the storage account does not answer as it should'
  const checks = { 'azure:account': { status: output === null ? 'pass' : 'warn', output } } as const
  return notes.length === 0 ? { ...WELL, checks } : { state: 'warn', note: notes.join('; '), checks }
}

const COUNTERS = {
  taken: 'Entities and poisoned messages that became letters.',
  reopened: 'Entities of messages that died again: they reopened their letter.',
  changed: 'Changes that others made in the table.',
  history: 'Operations of engines that were read.',
  confirmed: 'Letters that an engine confirmed.',
  sent: 'Messages that were sent back.',
  unsent: 'Messages that certainly did not leave.',
  uncertain: 'Messages of which nobody knows whether they left.',
  written: 'Entities that were written.',
  removed: 'Entities that retention removed.',
} as const

async function metricsOf(azure: Azure): Promise<string> {
  const { counts } = azure.counters
  // The keys of the table.
  const counters = (Object.keys(COUNTERS) as (keyof typeof COUNTERS)[]).flatMap((name) =>
    family(`bartleby_azure_${name}_total`, 'counter', COUNTERS[name], [{ value: counts[name] }]),
  )
  const gauge = (name: string, help: string, value: number) =>
    family(`bartleby_azure_${name}`, 'gauge', help, [{ value }])
  const throttled = family('bartleby_azure_throttled_total', 'counter', 'Calls that the account put off.', [
    { value: azure.account.throttled },
  ])
  const troubles = gauge(
    'degraded',
    '1 while the account does not answer as it should.',
    azure.troubles().length > 0 ? 1 : 0,
  )
  return `${[...counters, ...throttled, ...troubles].join('\n')}\n`
}

const KEY = { engine: TEXT, rowKey: TEXT }
const SETTLED = Type.Object({ ...KEY, status: TEXT, resolvedBy: orNull(TEXT) })

const callsOf = (azure: Azure | null, letters: Letters): readonly ApiCall[] => [
  {
    method: 'GET',
    path: '/api/azure',
    role: 'viewer',
    operationId: 'azure.overview',
    tag: AZURE,
    summary: 'The storage account: how far it was read, and what is not yet written to it',
    data: OVERVIEW,
    answer: async () => ok(azure === null ? { configured: false } : await overviewOf(azure)),
  },
  {
    method: 'POST',
    path: '/api/azure/letters/:engine/:rowKey/settle',
    role: 'operator',
    operationId: 'azure.settle',
    tag: AZURE,
    summary:
      'Say whether the message of an uncertain letter arrived: then it is Resolved, else it can be sent again',
    params: KEY,
    body: { properties: { arrived: Type.Boolean() }, required: ['arrived'] },
    data: SETTLED,
    failures: [404, 409],
    answer: async ({ params: { engine = '', rowKey = '' }, body: { fields }, caller }) => {
      refuseUnknownFields(fields, ['arrived'])
      if (typeof fields.arrived !== 'boolean') throw refuse('arrived', 'give true or false')
      if (azure === null) throw failure('azure_not_configured')
      const { letter } = await letters.get({ engine, rowKey })
      await azure.settleUncertain(letter.id, fields.arrived, caller.name)
      const { status, resolvedBy } = (await letters.get({ engine, rowKey })).letter
      return ok({ engine, rowKey, status, resolvedBy })
    },
  },
]

async function overviewOf(azure: Azure): Promise<AzureOverview> {
  const { unwritten, oldest, uncertain, readings, troubles } = await azure.state()
  return {
    ...{ configured: true, account: azure.account.name, unwritten, uncertain, troubles },
    unwrittenSinceUtc: timeOf(oldest),
    readings: readings.map(({ name, readTo, readAt, isMissing }) => ({
      ...{ name, readToUtc: timeOf(readTo), readAtUtc: timeOf(readAt), exists: !isMissing },
    })),
  }
}

const timeOf = (at: Instant | null): string | null => (at === null ? null : formatMicros(at))
