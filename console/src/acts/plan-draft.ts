/** What is typed into a plan, and what the server is asked with it. Pure. */
import {
  ITEM_HEADERS,
  isSending,
  type Redrive,
  type RedriveOrder,
  type RedriveRepair,
  type RepairHeader,
} from '../api/redrive-types.ts'
import type { LetterFilter } from '../api/types.ts'
import type { PlanRequest } from './plan-context.ts'

/** What becomes of the payload on its way. */
export type PayloadRepair = 'keep' | 'patch' | 'mapping'

/** undefined: as it is; null: emptied; else what it is set to. */
export type HeaderDraft = Readonly<Partial<Record<RepairHeader, string | null>>>

export interface Draft {
  /** Where a move leads. */
  readonly queue: string
  /** null: as fast as it goes. */
  readonly rate: number | null
  /** How many go first; null: none. */
  readonly canary: number | null
  /** null: as usual, all of them. */
  readonly confirmPercent: number | null
  /** How long their outcomes are waited for. */
  readonly waitSeconds: number
  /** null: there is no rule. */
  readonly stopPercent: number | null
  /** null: as usual. */
  readonly stopOf: number | null
  readonly order: RedriveOrder
  readonly payload: PayloadRepair
  /** As typed, of both kinds: who changes their mind finds it again. */
  readonly patch: string
  readonly mapping: string
  readonly headers: HeaderDraft
  readonly reason: string
}

export const FRESH: Draft = {
  queue: '',
  rate: null,
  canary: null,
  confirmPercent: null,
  waitSeconds: 600,
  stopPercent: null,
  stopOf: null,
  order: 'key',
  payload: 'keep',
  patch: '',
  mapping: '',
  headers: {},
  reason: '',
}

/** A few first, and an end where too many come back: how to begin when nobody knows whether the cause is gone. */
export const CAREFUL: Pick<Draft, 'canary' | 'stopPercent'> = { canary: 10, stopPercent: 20 }

/** What is meant where nothing is typed. */
export const USUAL = { confirmPercent: 100, stopOf: 100 } as const

/** The terms of a redrive, to plan the same again. */
export function draftOf({ queue, rate, canary, stopRule, order, repair, reason }: Redrive): Draft {
  const { headers } = repair ?? {}
  const [patch, mapping] = [repair?.patch ?? null, repair?.mapping ?? null]
  const emptied = (headers?.remove ?? []).map((name) => [name, null] as const)
  return {
    queue: queue ?? '',
    rate,
    canary: canary?.letters ?? null,
    confirmPercent: unlessUsual(canary?.confirmPercent, USUAL.confirmPercent),
    waitSeconds: canary?.waitSeconds ?? FRESH.waitSeconds,
    stopPercent: stopRule?.percent ?? null,
    stopOf: unlessUsual(stopRule?.of, USUAL.stopOf),
    order,
    payload: patch !== null ? 'patch' : mapping !== null ? 'mapping' : 'keep',
    patch: patch === null ? '' : JSON.stringify(patch, null, 2),
    mapping: mapping ?? '',
    headers: { ...headers?.set, ...Object.fromEntries(emptied) },
    reason: reason ?? '',
  }
}

const unlessUsual = (value: number | undefined, usual: number): number | null =>
  value === undefined || value === usual ? null : value

export type DraftField =
  | 'queue'
  | 'rate'
  | 'canary'
  | 'stopRule'
  | 'order'
  | 'patch'
  | 'mapping'
  | 'headers'
  | 'reason'

/** Why something cannot be asked as it is typed. */
export interface DraftProblem {
  /** null: it is about none of them. */
  readonly field: DraftField | null
  readonly says: string
}

/** What keeps the server from being asked; null: nothing. */
export function problemOf(act: PlanRequest['act'], draft: Draft): DraftProblem | null {
  if (act === 'move' && draft.queue.trim() === '')
    return { field: 'queue', says: 'Name the queue they go to.' }
  if (act === 'discard' && draft.reason.trim() === '')
    return { field: 'reason', says: 'Give a reason first: it is kept with each letter.' }
  if (!isSending(act)) return null
  if (draft.payload === 'mapping' && draft.mapping.trim() === '')
    return { field: 'mapping', says: 'Write a mapping, or leave the payload as it is.' }
  if (draft.payload !== 'patch') return null
  const says = patchProblem(draft.patch)
  return says === null ? null : { field: 'patch', says }
}

/** null: it is a list of operations, as far as can be told here. */
function patchProblem(text: string): string | null {
  if (text.trim() === '') return 'Write a list of operations, or leave the payload as it is.'
  try {
    const patch: unknown = JSON.parse(text)
    return Array.isArray(patch) && patch.length > 0
      ? null
      : 'A JSON Patch is a list of operations: [{ "op": …, "path": … }].'
  } catch (error) {
    return `Not JSON: ${error instanceof Error ? error.message : ''}`
  }
}

/** The rules for headers as the server takes them; undefined: there are none. */
export function rulesOf(headers: HeaderDraft): RedriveRepair['headers'] {
  const set = ITEM_HEADERS.filter((name) => typeof headers[name] === 'string')
  const remove = ITEM_HEADERS.filter((name) => headers[name] === null)
  if (set.length + remove.length === 0) return undefined
  return {
    ...(set.length === 0 ? {} : { set: Object.fromEntries(set.map((name) => [name, headers[name] ?? ''])) }),
    ...(remove.length === 0 ? {} : { remove }),
  }
}

/** The repair as JSON; null: nothing is changed. The patch goes as it was typed: its numbers keep their digits. */
function repairText({ payload, patch, mapping, headers }: Draft): string | null {
  const rules = rulesOf(headers)
  const members = [
    ...(payload === 'patch' ? [`"patch":${patch.trim()}`] : []),
    ...(payload === 'mapping' ? [`"mapping":${JSON.stringify(mapping)}`] : []),
    ...(rules === undefined ? [] : [`"headers":${JSON.stringify(rules)}`]),
  ]
  return members.length === 0 ? null : `{${members.join(',')}}`
}

/** What decides which letters there are and how they are sent: when it changes, the plan has to be looked at again. */
export function shapeOf(act: PlanRequest['act'], draft: Draft): string {
  if (!isSending(act)) return ''
  return JSON.stringify([act === 'move' ? draft.queue.trim() : null, draft.order, repairText(draft)])
}

/** What the server is asked for, as JSON. */
export function bodyOf({ act, filter, keys }: PlanRequest, draft: Draft): string {
  const { queue, rate, order, reason } = draft
  const body = JSON.stringify({
    ...(keys === undefined ? { filter: wireFilter(filter) } : { ids: keys }),
    action: act,
    ...(act === 'move' ? { queue: queue.trim() } : {}),
    ...(rate === null ? {} : { rate }),
    ...(isSending(act)
      ? {
          ...cautionOf(draft),
          order,
        }
      : {}),
    ...(reason.trim() === '' ? {} : { reason }),
  })
  const repair = isSending(act) ? repairText(draft) : null
  return repair === null ? body : `${body.slice(0, -1)},"repair":${repair}}`
}

/** What goes first, and what ends it. */
function cautionOf({ canary, confirmPercent, waitSeconds, stopPercent, stopOf }: Draft): object {
  return {
    ...(canary === null
      ? {}
      : {
          canary: { letters: canary, confirmPercent: confirmPercent ?? USUAL.confirmPercent, waitSeconds },
        }),
    ...(stopPercent === null ? {} : { stopRule: { percent: stopPercent, of: stopOf ?? USUAL.stopOf } }),
  }
}

/** Numbers are numbers there. */
const wireFilter = ({ minAttempts, ...filter }: LetterFilter): object => ({
  ...filter,
  ...(minAttempts === undefined ? {} : { minAttempts: Number(minAttempts) }),
})

/** How refusals of the server name the fields. */
const PARAMETERS: readonly (readonly [prefix: string, field: DraftField])[] = [
  ['queue', 'queue'],
  ['rate', 'rate'],
  ['canary', 'canary'],
  ['stopRule', 'stopRule'],
  ['order', 'order'],
  ['repair.patch', 'patch'],
  ['repair.mapping', 'mapping'],
  ['repair.headers', 'headers'],
  ['reason', 'reason'],
]

/** The field that a refused parameter stands in; null: none of them. */
export function fieldOf(parameter: string | null): DraftField | null {
  const [, field] =
    PARAMETERS.find(
      ([name]) =>
        parameter === name || parameter?.startsWith(`${name}.`) || parameter?.startsWith(`${name}[`),
    ) ?? []
  return field ?? null
}
