/** HTTP calls of runs: `/api/runs`. */
import { isBounded, requireReach } from '../api/auth.ts'
import { type ApiCall, type ApiRequest, onceKeyOf } from '../api/calls.ts'
import { given, refuseUnknownFields } from '../api/json-body.ts'
import { limitOf, type Query } from '../api/query.ts'
import { PAGE_QUERY, pageOf } from '../api/shapes.ts'
import { failure, refuse } from '../core/errors.ts'
import { decodePageToken, encodePageToken } from '../core/page-token.ts'
import { parseXid, type Xid } from '../core/xid.ts'
import type { Answer } from '../store/idempotency.ts'
import type { Run, RunCommand, RunWork } from './run.ts'
import type { Runs } from './runs.ts'
import { RUN, RUN_STATES, type RunState, WHY } from './shapes.ts'
import { runFields } from './view.ts'

/** Runs an act in one transaction; a key replays its first answer. */
type Once<Work> = (
  verb: string,
  key: ReturnType<typeof onceKeyOf>,
  act: (work: Work) => Promise<Answer>,
) => Promise<Answer>

export const runCalls = <Work extends RunWork>(runs: Runs<Work>, once: Once<Work>): readonly ApiCall[] => [
  listCall(runs),
  getCall(runs),
  steer(runs, once, 'pause', 'Halt a run; nothing more is done after the answer'),
  steer(runs, once, 'resume', 'Let a paused run go on where it was'),
  steer(runs, once, 'cancel', 'End a run; what was not done stays as it is'),
]

const LIST_QUERY = {
  ...PAGE_QUERY,
  kind: { type: 'string', description: 'One or more kinds, with commas between them' },
  state: {
    type: 'string',
    description: `One or more of ${RUN_STATES.join(', ')}, with commas between them`,
  },
}

const listCall = <Work extends RunWork>(runs: Runs<Work>): ApiCall => ({
  method: 'GET',
  path: '/api/runs',
  role: 'viewer',
  operationId: 'runs.list',
  tag: 'runs',
  summary: 'Work over many rows that any server goes on with, the newest first',
  query: LIST_QUERY,
  data: pageOf(RUN),
  answer: async ({ query }) => {
    const [kinds, states] = [namesOf(query, 'kind'), statesOf(query)]
    const filters = { list: 'runs', kind: kinds?.join(',') ?? '', state: states?.join(',') ?? '' }
    const page = await newestFirst(query, filters, (span) => runs.list({ kinds, states, ...span }))
    return { status: 200, data: { ...page, items: page.items.map(runFields) } }
  },
})

const getCall = <Work extends RunWork>(runs: Runs<Work>): ApiCall => ({
  method: 'GET',
  path: '/api/runs/:id',
  role: 'viewer',
  operationId: 'runs.get',
  tag: 'runs',
  summary: 'A run and how far it is',
  data: RUN,
  answer: async (request) => ({ status: 200, data: runFields(await readRun(runs, request)) }),
})

const steer = <Work extends RunWork>(
  runs: Runs<Work>,
  once: Once<Work>,
  verb: 'pause' | 'resume' | 'cancel',
  summary: string,
): ApiCall => ({
  method: 'POST',
  path: `/api/runs/:id/${verb}`,
  role: 'operator',
  isBodyOptional: true,
  operationId: `runs.${verb}`,
  tag: 'runs',
  summary,
  ...(verb === 'resume' ? {} : { body: WHY }),
  data: RUN,
  failures: [409],
  idempotent: true,
  answer: async (request) => {
    const command = commandOf(verb, request)
    const run = await readRun(runs, request)
    if (isBounded(request.caller)) requireReach(request.caller, await runs.sourcesOf(run))
    const { status, body } = await once(`run.${verb}`, onceKeyOf(request), async (work) => ({
      status: 200,
      body: runFields(await runs.command(work, run.id, command)),
    }))
    return { status, data: body }
  },
})

function commandOf(act: 'pause' | 'resume' | 'cancel', { body: { fields }, caller }: ApiRequest): RunCommand {
  const actor = caller.name
  if (act !== 'resume') return { act, actor, reason: given(WHY, fields).text('reason')?.trim() || null }
  refuseUnknownFields(fields, [])
  return { act, actor }
}

async function readRun<Work extends RunWork>(
  runs: Runs<Work>,
  { params: { id: text = '' } }: ApiRequest,
): Promise<Run> {
  const id = parseXid(text)
  const run = id === null ? null : await runs.read(id)
  if (run === null) throw failure('run_unknown', { id: text.slice(0, 64).toWellFormed() })
  return run
}

const namesOf = (query: Query, parameter: string): readonly string[] | null =>
  query.get(parameter)?.split(',') ?? null

function statesOf(query: Query): readonly RunState[] | null {
  const given = namesOf(query, 'state')
  const unknown = given?.find((name) => !RUN_STATES.some((known) => known === name))
  if (unknown !== undefined) {
    const shown = unknown.slice(0, 64).toWellFormed()
    throw refuse('state', `'${shown}' is none of ${RUN_STATES.join(', ')}`)
  }
  return given === null ? null : RUN_STATES.filter((known) => given.includes(known))
}

/** A page by id; `read` returns one more than the page has. */
export async function newestFirst<Item extends { readonly id: Xid }>(
  query: Query,
  filters: Readonly<Record<string, string>>,
  read: (span: { readonly before: Xid | null; readonly limit: number }) => Promise<readonly Item[]>,
): Promise<{ readonly items: readonly Item[]; readonly continuationToken: string | null }> {
  const limit = limitOf(query)
  const found = await read({ before: placeOf(query, filters), limit: limit + 1 })
  const items = found.slice(0, limit)
  const last = found.length > limit ? items.at(-1) : undefined
  return {
    items,
    continuationToken: last === undefined ? null : encodePageToken(filters, { before: last.id }),
  }
}

/** null: the first page. */
function placeOf(query: Query, filters: Readonly<Record<string, string>>): Xid | null {
  const token = query.get('continuationToken')
  if (token === undefined) return null
  const before = parseXid(decodePageToken(filters, token).before ?? '')
  if (before === null) throw failure('continuation_token_invalid', { reason: 'it is malformed' })
  return before
}
