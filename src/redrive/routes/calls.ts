/** The calls of `/api/redrives`. */
import type { FastifyInstance } from 'fastify'
import { isBounded, requireReach } from '../../api/auth.ts'
import { type ApiCall, type ApiRequest, type ApiScope, ok, onceKeyOf, serveApi } from '../../api/calls.ts'
import { given, type JsonObject, refuseUnknownFields } from '../../api/json-body.ts'
import { limitOf, type Query } from '../../api/query.ts'
import { oneOf, PAGE_QUERY, pageOf, TEXT } from '../../api/shapes.ts'
import type { Clock } from '../../core/clock.ts'
import { failure, refuse } from '../../core/errors.ts'
import { parseXid, type Xid } from '../../core/xid.ts'
import { shown, wordOf } from '../../letters/routes/parameters.ts'
import { answerOnce } from '../../store/idempotency.ts'
import { newestFirst } from '../../work/routes.ts'
import { WHY } from '../../work/shapes.ts'
import type { RedriveCommand } from '../commands.ts'
import type { Redrives } from '../redrives.ts'
import {
  MEMBER,
  MEMBER_OUTCOMES,
  type MemberOutcome,
  NEW_RATE,
  PLAN,
  REDRIVE,
  REDRIVE_DETAIL,
  REDRIVE_STATES,
  type RedriveState,
} from '../shapes.ts'
import { memberFields, redriveDetail, redriveFields } from '../view.ts'
import { readPlanRequest, readRate, readReason } from './plan-request.ts'

interface RedriveRoutesOptions extends ApiScope {
  readonly redrives: Redrives
  readonly clock: Clock
}

/** Ten thousand ids, or a large repair. */
const PLAN_LIMIT = 10_485_760

export async function redriveRoutes(app: FastifyInstance, options: RedriveRoutesOptions): Promise<void> {
  serveApi(app, options, [
    planCall(options),
    listCall(options),
    getCall(options),
    lettersCall(options),
    ...VERBS.map((verb) => steerCall(options, verb, STEERINGS[verb])),
  ])
}

const STEERINGS: Readonly<
  Record<RedriveCommand['act'], { readonly summary: string; readonly body?: ApiCall['body'] }>
> = {
  start: { summary: 'Begin to carry out a plan; it can be done once, and within half an hour' },
  pause: { summary: 'Halt a redrive; no letter leaves after the answer', body: WHY },
  resume: { summary: 'Let a paused redrive go on where it was' },
  cancel: {
    summary: 'End a redrive, or give up a plan; letters that were not sent stay as they are',
    body: WHY,
  },
  rate: { summary: 'Change how fast a redrive may go, also while it runs', body: NEW_RATE },
}
const VERBS = ['start', 'pause', 'resume', 'cancel', 'rate'] as const

/** Refuses what cannot be read before anything is looked up. */
function commandOf(act: RedriveCommand['act'], fields: JsonObject, actor: string): RedriveCommand {
  switch (act) {
    case 'start':
    case 'resume': {
      // Whoever sends fields expects something of them.
      const [name] = Object.keys(fields)
      if (name !== undefined) throw refuse(name, 'this call takes no fields')
      return { act, actor }
    }
    case 'pause':
    case 'cancel':
      return { act, actor, reason: readReason(given(WHY, fields).text('reason'), false) }
    case 'rate':
      refuseUnknownFields(fields, Object.keys(NEW_RATE.properties))
      if (fields.rate === undefined) throw refuse('rate', 'it is missing, give a number or null')
      return { act, actor, rate: readRate(fields.rate) }
  }
}

const planCall = ({ redrives, clock }: RedriveRoutesOptions): ApiCall => ({
  method: 'POST',
  path: '/api/redrives',
  role: 'operator',
  bodyLimit: PLAN_LIMIT,
  operationId: 'redrives.plan',
  tag: 'redrives',
  summary:
    'Plan an act on many letters: which they are, where they go, what each would look like; changes nothing. One that takes longer than 30 s is answered 202 in state planning, and is then to be read by its id',
  body: PLAN,
  data: REDRIVE_DETAIL,
  statuses: [201, 202],
  failures: [404],
  idempotent: true,
  answer: async (request) => {
    const plan = readPlanRequest(request.body, request.caller.name)
    const planned = await redrives.plan(plan, onceKeyOf(request))
    const data = redriveDetail(planned, clock.now())
    if (planned.state !== 'planning') return { status: 201, data }
    return { status: 202, data, headers: { location: `/api/redrives/${planned.id}` } }
  },
})

const listCall = ({ redrives, clock }: RedriveRoutesOptions): ApiCall => ({
  method: 'GET',
  path: '/api/redrives',
  role: 'viewer',
  operationId: 'redrives.list',
  tag: 'redrives',
  summary: 'Redrives, the newest first; plans that were never started only with state=planned',
  query: {
    ...PAGE_QUERY,
    state: {
      ...TEXT,
      description: `One or more of ${REDRIVE_STATES.join(', ')}, with commas between them; left out: all that were started`,
    },
  },
  data: pageOf(REDRIVE),
  answer: async ({ query }) => {
    const states = statesOf(query)
    const filters = { list: 'redrives', state: states?.join(',') ?? '' }
    const page = await newestFirst(query, filters, (span) => redrives.list({ states, ...span }))
    const now = clock.now()
    return ok({ ...page, items: page.items.map((redrive) => redriveFields(redrive, now)) })
  },
})

const getCall = ({ redrives, clock }: RedriveRoutesOptions): ApiCall => ({
  method: 'GET',
  path: '/api/redrives/:id',
  role: 'viewer',
  operationId: 'redrives.get',
  tag: 'redrives',
  summary: 'A redrive: how it stands, by destination, and what was not sent and why',
  data: REDRIVE_DETAIL,
  answer: async (request) => ok(redriveDetail(await redrives.read(idOf(request)), clock.now())),
})

const lettersCall = ({ redrives }: RedriveRoutesOptions): ApiCall => ({
  method: 'GET',
  path: '/api/redrives/:id/letters',
  role: 'viewer',
  operationId: 'redrives.letters',
  tag: 'redrives',
  summary: 'The letters of a redrive and what became of each',
  query: { ...PAGE_QUERY, outcome: oneOf(MEMBER_OUTCOMES) },
  data: pageOf(MEMBER),
  answer: async (request) => {
    const { query } = request
    const { items, continuationToken } = await redrives.members(idOf(request), {
      limit: limitOf(query),
      token: query.get('continuationToken') ?? null,
      outcome: outcomeOf(query),
    })
    return ok({ items: items.map(memberFields), continuationToken })
  },
})

/** A command on one redrive, answered with the redrive afterwards. */
const steerCall = (
  { redrives }: RedriveRoutesOptions,
  verb: RedriveCommand['act'],
  { summary, body: asked }: (typeof STEERINGS)[RedriveCommand['act']],
): ApiCall => ({
  method: 'POST',
  path: `/api/redrives/:id/${verb}`,
  role: 'operator',
  isBodyOptional: asked?.required === undefined,
  operationId: `redrives.${verb}`,
  tag: 'redrives',
  summary,
  ...(asked === undefined ? {} : { body: asked }),
  data: REDRIVE_DETAIL,
  failures: [409],
  idempotent: true,
  answer: async (request) => {
    const id = idOf(request)
    const command = commandOf(verb, request.body.fields, request.caller.name)
    if (isBounded(request.caller)) requireReach(request.caller, await redrives.sourcesOf(id))
    const { status, body } = await redrives.steer(id, command, (work, run) =>
      answerOnce(work, onceKeyOf(request), async () => ({
        status: 200,
        body: redriveDetail(await run(), work.now),
      })),
    )
    return { status, data: body }
  },
})

/** A malformed id is the id of nothing. */
function idOf({ params: { id: text = '' } }: ApiRequest): Xid {
  const id = parseXid(text)
  if (id === null) throw failure('redrive_unknown', { id: shown(text) })
  return id
}

function statesOf(query: Query): readonly RedriveState[] | null {
  const given = query
    .get('state')
    ?.split(',')
    .map((name) => wordOf('state', name, REDRIVE_STATES))
  return given === undefined ? null : REDRIVE_STATES.filter((known) => given.includes(known))
}

function outcomeOf(query: Query): MemberOutcome | null {
  const text = query.get('outcome')
  return text === undefined ? null : wordOf('outcome', text, MEMBER_OUTCOMES)
}
