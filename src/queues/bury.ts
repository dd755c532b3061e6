/**
 * Death: the one place where items leave their queue for good without having been completed. In the transaction of
 * whatever made them die they become letters, or reopen the letters they were sent back from; after a crash an item
 * lies in exactly one place. The letters file them; here is said what they died of, where their letters lie and how their
 * queue gives up their rows.
 */

import { type Instant, instant } from '../core/clock.ts'
import { MAX_MESSAGE_BYTES, storable } from '../core/content.ts'
import type { Log } from '../core/log.ts'
import { type Integer, sql } from '../db/database.ts'
import { givenByKey } from '../db/idioms.ts'
import { type HistoryEntry, recordHistory } from '../history/record.ts'
import { type Cause, type Death, bury as fileDeaths, PLAIN_RECORD, type Taking } from '../letters/bury.ts'
import { captureStatement } from '../letters/capture.ts'
import type { Grave } from '../letters/change.ts'
import type { Registers } from '../letters/drawers.ts'
import { engineSourceId } from '../letters/item-source-id.ts'
import { STATUS } from '../letters/letter.ts'
import { relocateLying } from '../letters/lying/move.ts'
import { emptiestPartition, instantSum, negated, sumOfInstants } from './counts.ts'
import { type Cycle, insistOn } from './cycle.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import { type MessageNames, readMessageNames } from './engine-queues.ts'
import type { DeathReason, FailedRun, GivenError } from './queue.ts'
import {
  allocateSerials,
  itemIdIn,
  type Partition,
  type QueueRecord,
  readEngineOf,
  readQueue,
} from './records.ts'
import { SHELF } from './schema.ts'
import type { ItemFacts } from './sql/inspect.ts'
import { deadlineOf, type Origin, removeRelapsed } from './sql/move.ts'
import { removeAny } from './sql/remove.ts'

/** What burying needs beside the cycle. */
export interface Undertaking {
  readonly log: Log
  readonly registers: Registers
}

/** 'held': the queue names a dead queue that does not exist, and nothing was changed. */
export type BurialOutcome = 'buried' | 'held'

/**
 * Makes letters of dying items, in the dead queue that is configured now, or in none without one. Where the queue says so
 * then, they are deleted, but for those whose failure is on record or that were sent back from a letter. Order is kept.
 * All lie on one shelf, and all are leased or none is.
 */
export async function bury(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  undertaking: Undertaking,
): Promise<BurialOutcome> {
  const { tx, queue } = cycle
  const [deadQueue, engine] = await Promise.all([
    queue.deadQueue === '' ? null : readQueue(tx, queue.deadQueue),
    readEngineOf(tx, queue.queueName),
  ])
  if (queue.deadQueue !== '' && deadQueue === null) return 'held'
  const grave = deadQueue && {
    deadQueue,
    partition: await emptiestPartition(tx, deadQueue, (part) => cycle.changes.readyOf(part)),
  }

  const letters = dying.filter(({ item }) => item.isLetter)
  if (letters.length > 0) await buryLetters(cycle, partition, letters, grave)
  const items = dying.filter(({ item }) => !item.isLetter)
  const isDeleted = ({ item, run, error }: Dying): boolean =>
    queue.onDeath === 'delete' && grave === null && run === null && error === null && item.caseId === null
  const kept = items.filter((each) => !isDeleted(each))
  if (kept.length > 0) await makeLetters(cycle, partition, { shelf, engine }, kept, grave, undertaking)
  const forgotten = items.filter(isDeleted)
  if (forgotten.length > 0) await forget(cycle, partition, shelf, forgotten, undertaking.log)
  return 'buried'
}

/** Where letters are laid: a partition of a dead queue. */
interface Graveyard {
  readonly deadQueue: QueueRecord
  readonly partition: Partition
}

async function makeLetters(
  cycle: Cycle,
  partition: Partition,
  { shelf, engine }: { readonly shelf: number; readonly engine: string | null },
  dying: readonly Dying[],
  grave: Graveyard | null,
  { registers }: Undertaking,
): Promise<void> {
  const { tx, changes, now } = cycle
  const to = grave && { deadQueue: grave.deadQueue.queueName, part: grave.partition.part }
  const serials = to === null ? [] : await allocateSerials(tx, dying.length)
  const graves = to === null ? [] : serials.map((serial) => ({ ...to, serial, laidAt: now }))
  const deaths = await deathsOf(cycle, partition, shelf, dying, { engine, graves })
  const { part, number } = partition
  const from = { part, shelf, leased: dying[0]?.item.leased ?? false, partition: number }
  const buried = await fileDeaths(cycle, registers, takingItems(cycle, from, to), deaths)
  insistOn(dying.length, buried.taken + buried.reopened)

  changes.add(part, departure(dying, shelf))
  if (to === null) return
  const laid = buried.captured + buried.reopened
  changes.add(to.part, { ready: laid, dead: laid, created: instantSum(now, laid) })
  cycle.arrived(to.deadQueue, to.part, serials[0] ?? 0)
}

/** Letters that a consumer rejects are resolved; where their queue has a dead queue of its own by now, they move there. */
async function buryLetters(
  cycle: Cycle,
  partition: Partition,
  dying: readonly Dying[],
  grave: Graveyard | null,
): Promise<void> {
  const serials = serialsOf(dying).sort((a, b) => a - b)
  const runs = dying.flatMap(({ run }) => (run === null ? [] : failedRun(run, cycle.now)))
  await recordHistory(cycle.tx, runs)
  if (grave === null) {
    const resolving = { act: 'discard', by: null, leasedOnly: true } as const
    const resolved = await resolveFromDeadQueue(cycle, partition, serials, resolving)
    insistOn(dying.length, resolved.serials.size)
    cycle.changes.add(partition.part, resolved.change)
    return
  }
  const tail = await allocateSerials(cycle.tx, dying.length)
  const { part } = grave.partition
  const moves = serials.map((serial, i) => ({ serial, tail: tail[i] ?? 0 }))
  const to = { part, deadQueue: grave.deadQueue.queueName, at: cycle.now }
  insistOn(dying.length, await relocateLying(cycle.tx, partition.part, moves, to))
  cycle.changes.add(partition.part, { ...departure(dying, SHELF.queue), dead: -dying.length })
  cycle.changes.add(part, {
    ready: dying.length,
    dead: dying.length,
    created: instantSum(cycle.now, dying.length),
  })
  cycle.arrived(grave.deadQueue.queueName, part, tail[0] ?? 0)
}

/** The row of a run that failed, unless it is that of a death. */
export const failedRun = (run: FailedRun, at: Instant): HistoryEntry => ({
  ...run,
  status: 'Failed',
  createdAt: at,
  error: storable(run.errorMessage, MAX_MESSAGE_BYTES),
})

/** Deletes items as their queue says, and says so. */
async function forget(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  log: Log,
): Promise<void> {
  const { change } = await removeAny(cycle.tx, partition.part, serialsOf(dying), [shelf])
  const { ready = 0, leased = 0, held = 0 } = change
  insistOn(dying.length, -(ready + leased + held))
  cycle.changes.add(partition.part, change)
  cycle.afterCommit(() => {
    for (const { item, reason } of dying) {
      const id = itemIdIn(partition, item.serial)
      log.info(
        { queue: cycle.queue.queueName, id, reason },
        'item deleted: it died, and its queue has no dead queue and says on_death: delete',
      )
    }
  })
}

function departure(dying: readonly Dying[], shelf: number) {
  const leased = dying.filter(({ item }) => item.leased)
  return {
    ready: shelf === SHELF.queue ? leased.length - dying.length : 0,
    leased: -leased.length,
    held: shelf === SHELF.held ? -dying.length : 0,
    created: negated(sumOfInstants(dying.map(({ item }) => item.createdAt))),
    deadline: negated(deadlineSum(leased)),
  }
}

const deadlineSum = (leased: readonly Dying[]) =>
  sumOfInstants(leased.flatMap(({ item }) => item.leaseDeadline ?? []))

const serialsOf = (dying: readonly Dying[]): number[] => dying.map(({ item }) => item.serial)

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
interface ItemDeath extends Death {
  readonly item: ItemFacts
  readonly itemId: string
}

const NAMELESS: MessageNames = { instanceId: null, correlationId: null }
const NO_NAMES: ReadonlyMap<number, MessageNames> = new Map()

/** The deaths of items that lie in one place; the one at `i` goes to the `i`th grave, if it gets one. */
async function deathsOf(
  { tx, queue }: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  { engine, graves }: { readonly engine: string | null; readonly graves: readonly Grave[] },
): Promise<ItemDeath[]> {
  const causeOf = causesIn(queue.queueName, engine)
  const serials = dying.map(({ item }) => item.serial)
  const names = engine === null ? NO_NAMES : await readMessageNames(tx, partition.part, shelf, serials)
  return dying.map((each, i) => {
    const { item, run } = each
    const itemId = itemIdIn(partition, item.serial)
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

/**
 * Deletes the items by primary key; the capture files them, if all are as they were read. `$3` has the deadline of each, its note, its id, its serial in the dead queue's
 * part `$7`, which is NULL when there is no dead queue, and its source id where that is another than its id. A source id that an imported
 * item of the dead queue has is skipped. Letters are numbered here, in the order of the items, which the joins of the capture do not keep.
 */
const takeAll = captureStatement(
  'items.bury',
  `gone AS (
     DELETE FROM bartleby.items AS item
     WHERE item.part = $4 AND item.shelf = $5 AND item.id = ANY($2::bigint[]) AND item.leased = $6
     RETURNING $3::jsonb -> item.id::text AS given, item.*
   ), taken AS (
     SELECT coalesce(case_id, nextval('bartleby.letter_ids')) AS letter_id, (given ->> 1)::int AS note,
       coalesce(given ->> 4, given ->> 2) AS source_id,
       (SELECT true FROM bartleby.items AS holder
        WHERE holder.part = $7 AND holder.source_id = convert_to(given ->> 2, 'UTF8')) IS NOT NULL AS skipped,
       created_at AS item_created_at, $8::bigint AS laid_at, (given ->> 3)::bigint AS serial, $7::int AS part,
       attempts AS dequeue_count, $10::int AS partition, $9::text AS dead_queue, encoding, kind, reference,
       NULL::bytea AS headers, payload
     FROM (SELECT * FROM gone WHERE coalesce(lease_deadline, 0)::text = given ->> 0 ORDER BY id) AS gone
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
const takingItems = (
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
    const [serials, given] = givenByKey(
      ['id', 'deadline', 'note', 'item_id', 'serial', 'source_id'],
      deaths.map(({ item, itemId, sourceId, grave }, i) => ({
        id: item.serial,
        deadline: deadlineOf(item),
        note: notes[i],
        item_id: itemId,
        serial: grave?.serial,
        source_id: sourceId === itemId ? null : sourceId,
      })),
    )
    const values = [
      serials,
      given,
      from.part,
      from.shelf,
      from.leased ? 1 : 0,
      grave?.part ?? null,
      grave === null ? null : now,
      grave?.deadQueue ?? null,
      from.partition,
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
