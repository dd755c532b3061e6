/** Items that die, as the letters see them: what they died of, how they are called, and how their queue gives up their rows. */
import { instant } from '../core/clock.ts'
import { idFromSerial, KSUID_LENGTH } from '../core/ksuid.ts'
import { type Integer, integerList, sql, type Transaction, textList } from '../db/database.ts'
import { cleanInstanceId, correlationIdIn, PUBLISHER, readMessage } from '../engines/message.ts'
import { type Cause, type Death, PLAIN_RECORD, type Taking } from '../letters/bury.ts'
import { captureStatement } from '../letters/capture.ts'
import type { Grave } from '../letters/change.ts'
import { engineSourceId } from '../letters/item-source-id.ts'
import { STATUS } from '../letters/letter.ts'
import { type Cycle, insistOn } from './cycle.ts'
import type { DeathReason, FailedRun, GivenError } from './queue.ts'
import type { Partition } from './records.ts'
import type { ItemFacts } from './sql/inspect.ts'
import {
  asRead,
  deadlineList,
  inOrder,
  type Origin,
  placeIn,
  removeRelapsed,
  serialList,
} from './sql/move.ts'

/** An item that dies. */
export interface Dying {
  readonly item: ItemFacts
  readonly reason: DeathReason
  /** The run that was its last; null when none is known. */
  readonly run: FailedRun | null
  /** What its consumer says instead of a run; else null. */
  readonly error: GivenError | null
}

/** The words for deaths that nobody gave an error for. */
const PLAIN: Readonly<Record<DeathReason, { readonly errorClass: string; readonly errorMessage: string }>> = {
  attempts: {
    errorClass: 'AttemptsExhausted',
    errorMessage: 'the last permitted attempt ended without completion',
  },
  expired: { errorClass: 'Expired', errorMessage: 'it was not completed before its expire deadline' },
  rejected: { errorClass: 'Rejected', errorMessage: 'a consumer rejected it' },
  failed: { errorClass: 'Failed', errorMessage: 'its worker failed for good' },
}

/** An error as letters keep it, with `words` for what was not given. */
export const describeGiven = (
  error: GivenError | null,
  words: { readonly errorClass: string; readonly errorMessage: string },
) => ({
  errorClass: error?.errorClass || words.errorClass,
  errorMessage: error?.errorMessage || words.errorMessage,
  errorStack: error?.errorStack || null,
})

/** What items of one queue die of: one cause for all that have nothing of their own to tell. `engine` is null in a plain queue. */
function causesIn(queue: string, engine: string | null): (dying: Dying) => Cause {
  const shared = new Map<string, Cause>()
  return ({ reason, run, error }) => {
    if (run !== null) return causeOfRun(queue, run)
    const words = describeGiven(error, PLAIN[reason])
    const key = error === null ? reason : JSON.stringify([reason, ...Object.values(words)])
    const known = shared.get(key)
    if (known !== undefined) return known
    const where = engine === null ? PLAIN_ENGINE : ({ source: 'engines', engine } as const)
    const cause = { ...where, queue, reason, ...words, failedBy: null, record: PLAIN_RECORD }
    shared.set(key, cause)
    return cause
  }
}

const PLAIN_ENGINE = { source: 'queues', engine: 'queues' } as const

const causeOfRun = (queue: string, run: FailedRun): Cause => ({
  source: 'engines',
  engine: run.engine,
  queue,
  reason: 'failed',
  errorClass: run.errorClass,
  errorMessage: run.errorMessage,
  errorStack: run.errorStack,
  failedBy: run.actor,
  record: {
    captured: run.operation,
    reopened: run.operation,
    status: 'Failed',
    durationMs: run.durationMs,
    actor: run.actor,
    input: run.input,
    output: run.output,
  },
})

/** An item that dies, with what its letter says. */
export interface ItemDeath extends Death {
  readonly item: ItemFacts
  readonly itemId: string
}

/** The deaths of items that lie in one place; the one at `i` goes to the `i`th grave, if it gets one. */
export async function deathsOf(
  { tx, queue }: Cycle,
  { part, idPrefix }: Partition,
  shelf: number,
  dying: readonly Dying[],
  { engine, graves }: { readonly engine: string | null; readonly graves: readonly Grave[] },
): Promise<ItemDeath[]> {
  const causeOf = causesIn(queue.queueName, engine)
  const serials = dying.map(({ item }) => item.serial)
  const names = engine === null ? NO_NAMES : await readMessageNames(tx, part, shelf, serials)
  return dying.map((each, i) => {
    const { item, run } = each
    const itemId = idFromSerial(idPrefix, item.serial)
    const cause = causeOf(each)
    const plain = {
      item,
      itemId,
      cause,
      caseId: item.caseId,
      sourceId: itemId,
      diedAs: itemId,
      attempts: item.attempts,
      grave: graves[i] ?? null,
    }
    // Without names: nothing is written about it that is not written about all that died of the same.
    if (cause.source === 'queues') return plain
    const sourceId = engineSourceId(itemId)
    const { instanceId, correlationId } = run ?? names.get(item.serial) ?? NAMELESS
    return {
      ...plain,
      sourceId,
      instanceId: instanceId ?? sourceId,
      ...(correlationId !== null && { correlationId }),
    }
  })
}

/** null: it does not say. */
interface MessageNames {
  readonly instanceId: string | null
  readonly correlationId: string | null
}

const NAMELESS: MessageNames = { instanceId: null, correlationId: null }
const NO_NAMES: ReadonlyMap<number, MessageNames> = new Map()

/** Beyond this nobody looks for names in a payload. */
const MAX_READ_BYTES = 65_536

/** Payloads by primary key, without those that are too long to be read. */
const readPayloads = sql('items.namingPayloads', {
  postgres: `SELECT id, payload FROM bartleby.items
             WHERE part = $1 AND shelf = $2 AND id = ANY($3::bigint[]) AND octet_length(payload) <= ${MAX_READ_BYTES}`,
  sqlite: `SELECT id, payload FROM items
           WHERE part = $1 AND shelf = $2 AND id IN (SELECT value FROM json_each($3)) AND length(payload) <= ${MAX_READ_BYTES}`,
})

/** The instance and the correlation that items name in their messages; those that name nothing may be left out. */
async function readMessageNames(
  tx: Transaction,
  part: number,
  shelf: number,
  serials: readonly number[],
): Promise<ReadonlyMap<number, MessageNames>> {
  const list = integerList(tx.dialect, serials)
  const rows = await tx.rows<{ id: Integer; payload: Uint8Array }>(readPayloads, part, shelf, list)
  return new Map(rows.map(({ id, payload }) => [Number(id), namesIn(payload)]))
}

function namesIn(payload: Uint8Array): MessageNames {
  const read = readMessage(payload)
  const message = read.ok ? read.message : null
  return { instanceId: instanceIdIn(message), correlationId: correlationIdIn(message) }
}

function instanceIdIn(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('instanceId' in message)) return null
  const { instanceId } = message
  if (typeof instanceId !== 'string') return null
  const clean = cleanInstanceId(instanceId)
  return clean === PUBLISHER && instanceId !== PUBLISHER ? null : clean
}

/**
 * Deletes the items by primary key; the capture files them. `$7` are their serials in the dead queue's part `$10`,
 * which is NULL when there is no dead queue. A source id that an imported item of the dead queue has is skipped; it is
 * looked for as a range, in the order of items_by_source, so that PostgreSQL does not read all items of the part. Letters
 * are numbered here, in the order of the items, which the joins of the capture do not keep.
 */
const takeAll = captureStatement(
  'items.bury',
  `gone AS (
     DELETE FROM bartleby.items AS item
     WHERE item.part = $2 AND item.shelf = $3 AND ${asRead('$4', '$5', '$6')}
     RETURNING ${placeIn('$4')} AS place, coalesce(item.case_id, nextval('bartleby.letter_ids')) AS letter_id,
       item.created_at, item.attempts, item.encoding, item.kind, item.reference, item.payload
   ), named AS MATERIALIZED (
     SELECT *, substring($8::bytea FROM (place - 1) * ${KSUID_LENGTH} + 1 FOR ${KSUID_LENGTH}) AS item_id FROM gone
   ), taken AS (
     SELECT letter_id, ($9::int[])[place] AS note, coalesce(($14::text[])[place], encode(item_id, 'escape')) AS source_id,
       (SELECT true FROM bartleby.items AS holder WHERE holder.part = $10
          AND holder.source_id >= item_id AND holder.source_id <= item_id
          ORDER BY holder.source_id LIMIT 1) IS NOT NULL AS skipped,
       created_at AS item_created_at, $11::bigint AS laid_at, ($7::bigint[])[place] AS serial, $10::int AS part,
       attempts AS dequeue_count, $13::int AS partition, $12::text AS dead_queue, encoding, kind, reference,
       NULL::bytea AS headers, payload
     FROM named
   )`,
)

const takeOne = sql(
  'items.take',
  {
    postgres: '',
    sqlite: `DELETE FROM items WHERE part = $1 AND shelf = $2 AND id = $3 AND leased = $4
             RETURNING created_at, attempts, encoding, kind, reference, payload`,
  },
  { bigints: true },
)
const readHolder = sql('items.sourceHolder', {
  postgres: '',
  sqlite: 'SELECT 1 AS found FROM items WHERE part = $1 AND source_id = CAST($2 AS BLOB)',
})

interface TakenItem {
  readonly created_at: Integer
  readonly attempts: Integer
  readonly encoding: Uint8Array | null
  readonly kind: Uint8Array | null
  readonly reference: Uint8Array | null
  readonly payload: Uint8Array | null
}

/** How items that lie in one place leave it; all must be as they were read. */
export const takingItems = (
  { tx, now }: Cycle,
  from: Origin & { readonly partition: number },
  grave: { readonly deadQueue: string; readonly part: number } | null,
): Taking<ItemDeath> => ({
  async end(deaths, letters) {
    // The letter of an item is resolved as long as the item is out. One that is pending was reported anew, and its item lost its case since.
    const out = deaths.filter(
      ({ caseId }) => caseId !== null && letters.get(caseId)?.status !== STATUS.Pending,
    )
    insistOn(deaths.length, out.length)
    const items = deaths.map(({ item }) => item)
    await removeRelapsed(tx, from, items)
  },
  all(deaths, notes) {
    const ordered = inOrder(deaths.map((death, i) => ({ ...death.item, death, note: notes[i] ?? 0 })))
    const isPlain = deaths.every(({ itemId, sourceId }) => itemId === sourceId)
    const values = [
      from.part,
      from.shelf,
      serialList(ordered),
      from.leased ? 1 : 0,
      deadlineList(ordered),
      integerList(
        tx.dialect,
        ordered.flatMap(({ death }) => death.grave?.serial ?? []),
      ),
      Buffer.from(ordered.map(({ death }) => death.itemId).join(''), 'latin1'),
      integerList(
        tx.dialect,
        ordered.map(({ note }) => note),
      ),
      grave?.part ?? null,
      grave === null ? null : now,
      grave?.deadQueue ?? null,
      from.partition,
      isPlain
        ? null
        : textList(
            tx.dialect,
            ordered.map(({ death }) => death.sourceId),
          ),
    ]
    return { statement: takeAll, values }
  },
  async each({ item, itemId }) {
    const [row] = await tx.rows<TakenItem>(takeOne, from.part, from.shelf, item.serial, from.leased ? 1 : 0)
    insistOn(1, row === undefined ? 0 : 1)
    if (row === undefined) return null
    if (grave !== null && (await tx.rows(readHolder, grave.part, itemId)).length > 0) return null
    return {
      itemCreatedAt: instant(BigInt(row.created_at)),
      dequeueCount: Number(row.attempts),
      partition: from.partition,
      encoding: row.encoding,
      kind: row.kind,
      reference: row.reference,
      headers: null,
      payload: row.payload,
    }
  },
})
