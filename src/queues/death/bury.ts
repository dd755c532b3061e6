/**
 * Death: the one place where items leave their queue for good without having been completed. In the transaction of
 * whatever made them die they become letters, or reopen the letters they were sent back from; after a crash an item
 * lies in exactly one place. The letters file them; here is said what they died of, where their letters lie and how their
 * queue gives up their rows.
 */

import { type Instant, instant } from '../../core/clock.ts'
import { MAX_MESSAGE_BYTES, storable } from '../../core/content.ts'
import type { Log } from '../../core/log.ts'
import { engineSourceId } from '../../core/source-id.ts'
import { type HistoryEntry, recordHistory } from '../../history/record.ts'
import { type Cause, type Death, bury as fileDeaths, PLAIN_RECORD, type Taking } from '../../letters/bury.ts'
import { captureAlike, captureStatement } from '../../letters/capture.ts'
import { relocateLying } from '../../letters/in-dead-queue/move.ts'
import { sourceOfEngines } from '../../letters/kinds.ts'
import { STATUS } from '../../letters/letter.ts'
import type { Registers } from '../../letters/numbers/drawers.ts'
import { type Integer, sql } from '../../store/database.ts'
import { givenByKey } from '../../store/idioms.ts'
import {
  type CountChange,
  emptiestPartition,
  instantSum,
  micros,
  negated,
  seconds,
  sumOfInstants,
} from '../counts.ts'
import { type Cycle, insistOn, Mismatch } from '../cycles/cycle.ts'
import { type MessageNames, readMessageNames } from '../engines/engine-queues.ts'
import type { DeathReason, FailedRun, GivenError } from '../queue.ts'
import {
  allocateSerials,
  itemIdIn,
  type Partition,
  type QueueRecord,
  readEngineOf,
  readQueue,
} from '../records.ts'
import { SHELF } from '../schema.ts'
import { type ItemFacts, lockItems } from '../sql/inspect.ts'
import type { ContentRow } from '../sql/lease.ts'
import { type Origin, removeRelapsed } from '../sql/move.ts'
import { removeAny } from '../sql/remove.ts'
import { resolveFromDeadQueue } from './dead-queue.ts'
import type { DeathPlace } from './death-order.ts'

/** What burying needs beside the cycle. */
export interface Undertaking {
  readonly log: Log
  readonly registers: Registers
}

/** 'held': the queue names a dead queue that does not exist, and nothing was changed. */
type BurialOutcome = 'buried' | 'held'

/** Items that die in one partition. All are leased or none is, and all were read or none was. */
interface DyingThere {
  readonly partition: Partition
  readonly dying: readonly Dying[]
}

/**
 * Makes letters of dying items of a shelf, in the dead queue that is configured now, or in none without one. Where the queue says so
 * then, they are deleted, but for those whose failure is on record or that were sent back from a letter. Order is kept.
 */
export async function bury(
  cycle: Cycle,
  shelf: number,
  given: readonly DyingThere[],
  undertaking: Undertaking,
): Promise<BurialOutcome> {
  const { tx, queue } = cycle
  const there = given.filter(({ dying }) => dying.length > 0)
  if (there.length === 0) return 'buried'
  const [deadQueue, engine] = await Promise.all([
    queue.deadQueue === '' ? null : readQueue(tx, queue.deadQueue),
    readEngineOf(tx, queue.queueName),
  ])
  if (queue.deadQueue !== '' && deadQueue === null) {
    if (there.some(({ dying }) => dying[0]?.item.isUnread))
      throw new Mismatch('items that may not exist have no dead queue')
    return 'held'
  }
  const isDeleted = ({ item, run, error }: Dying): boolean =>
    queue.onDeath === 'delete' && deadQueue === null && run === null && error === null && item.caseId === null
  const sorted = await Promise.all(
    there.map(async ({ partition, dying }) => {
      const items = dying.filter(({ item }) => !item.isLetter)
      const kept = items.filter((each) => !isDeleted(each))
      return {
        partition,
        letters: dying.filter(({ item }) => item.isLetter),
        forgotten: items.filter(isDeleted),
        deaths: await deathsOf(cycle, partition, shelf, kept, engine),
      }
    }),
  )
  const placeOf = await place(
    cycle,
    sorted.flatMap(({ deaths }) => deaths),
    deadQueue !== null,
    undertaking.registers,
  )
  await lockRelapsed(cycle, shelf, there)
  for (const { partition, letters, forgotten, deaths } of sorted) {
    const grave = deadQueue && {
      deadQueue,
      partition: await emptiestPartition(tx, deadQueue, (part) => cycle.changes.readyOf(part)),
    }
    if (letters.length > 0) await buryLetters(cycle, partition, letters, grave)
    if (deaths.length > 0) await makeLetters(cycle, partition, shelf, deaths, placeOf, grave, undertaking)
    if (forgotten.length > 0) await forget(cycle, partition, shelf, forgotten, undertaking.log)
  }
  return 'buried'
}

/** Gives all deaths their places in the dead queue and in time, at once: others wait for that. */
async function place(
  { tx, now, turn }: Cycle,
  deaths: readonly ItemDeath[],
  hasDeadQueue: boolean,
  { times }: Registers,
): Promise<(death: ItemDeath) => DeathPlace> {
  const give = async (those: readonly ItemDeath[]): Promise<DeathPlace[]> => {
    const serials = hasDeadQueue ? await allocateSerials(tx, those.length) : []
    return those.map(({ cause, instanceId }, i) => ({
      serial: serials[i] ?? null,
      capturedAt: instanceId === undefined ? null : times.take(cause.engine, instanceId, now),
    }))
  }
  const places = await (turn?.placesOf(deaths, hasDeadQueue, give) ?? give(deaths))
  const given = new Map(deaths.map(({ itemId }, i) => [itemId, places[i]]))
  return ({ itemId }) => given.get(itemId) ?? { serial: null, capturedAt: null }
}

/** Items before letters, as everybody locks them, and none before the turn: those that may have letters were only read so far. */
async function lockRelapsed({ tx }: Cycle, shelf: number, there: readonly DyingThere[]): Promise<void> {
  const ascending = there.toSorted((a, b) => a.partition.part - b.partition.part)
  await Promise.all(
    ascending.map(({ partition, dying }) => {
      const relapsed = dying.flatMap(({ item }) => (item.caseId === null ? [] : item.serial))
      return lockItems(tx, partition, relapsed, shelf)
    }),
  )
}

/** Where letters are laid: a partition of a dead queue. */
interface Graveyard {
  readonly deadQueue: QueueRecord
  readonly partition: Partition
}

async function makeLetters(
  cycle: Cycle,
  partition: Partition,
  shelf: number,
  unplaced: readonly ItemDeath[],
  placeOf: (death: ItemDeath) => DeathPlace,
  grave: Graveyard | null,
  { registers }: Undertaking,
): Promise<void> {
  const { changes, now } = cycle
  const to = grave && { deadQueue: grave.deadQueue.queueName, part: grave.partition.part }
  const deaths = unplaced.map((death) => {
    const { serial, capturedAt } = placeOf(death)
    return {
      ...death,
      ...(capturedAt !== null && { capturedAt }),
      grave: to === null || serial === null ? null : { ...to, serial, laidAt: now },
    }
  })
  const { part, number } = partition
  const { leased = false, isUnread = false } = deaths[0]?.item ?? {}
  const from = { part, shelf, leased, isUnread, partition: number }
  const taking = takingItems(cycle, from, to)
  const buried = await fileDeaths(cycle, registers, taking, deaths)
  insistOn(deaths.length, buried.taken + buried.reopened)

  changes.add(part, departure(taking.ended, shelf))
  // The statement is ours, and says them.
  const gone = [...taking.gone, ...(buried.rows as readonly Gone[])]
  changes.add(part, goneOf(from, buried.taken, gone))
  if (to === null) return
  const laid = buried.captured + buried.reopened
  changes.add(to.part, { ready: laid, dead: laid, created: instantSum(now, laid) })
  cycle.arrived(to.deadQueue, to.part, Math.min(...deaths.map(({ grave }) => grave?.serial ?? 0)))
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
  const items = dying.map(({ item }) => item)
  cycle.changes.add(partition.part, { ...departure(items, SHELF.queue), dead: -dying.length })
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

/** What a place loses with items that were read. */
function departure(items: readonly ItemFacts[], shelf: number): CountChange {
  const leased = items.filter((item) => item.leased)
  return {
    ready: shelf === SHELF.queue ? leased.length - items.length : 0,
    leased: -leased.length,
    held: shelf === SHELF.held ? -items.length : 0,
    created: negated(sumOfInstants(items.map(({ createdAt }) => createdAt))),
    deadline: negated(sumOfInstants(leased.flatMap(({ leaseDeadline }) => leaseDeadline ?? []))),
  }
}

/** Sums over items that a statement took away; `unlike` is how many have a case or were never delivered, and so do not die for certain. */
interface Gone extends Readonly<Record<'created_s' | 'created_us' | 'deadline_s' | 'deadline_us', Integer>> {
  readonly unlike: Integer
}
const GONE = `, ${seconds('item_created_at')} AS created_s, ${micros('item_created_at')} AS created_us,
  coalesce(${seconds('lease_deadline')}, 0) AS deadline_s, coalesce(${micros('lease_deadline')}, 0) AS deadline_us,
  count(*) FILTER (WHERE case_id IS NOT NULL OR dequeue_count = 0) AS unlike`

/** What a place loses with items that a statement took, all leased there or none. Those that were not read are like most. */
function goneOf({ shelf, leased, isUnread }: Place, count: number, rows: readonly Gone[]): CountChange {
  const sum = (column: keyof Gone) => rows.reduce((all, row) => all + BigInt(row[column]), 0n)
  const instants = (of: 'created' | 'deadline') =>
    negated(instantSum(instant(sum(`${of}_s`) * 1_000_000n + sum(`${of}_us`)), 1))
  if (isUnread) insistOn(0, Number(sum('unlike')))
  return {
    ready: shelf === SHELF.queue && !leased ? -count : 0,
    leased: leased ? -count : 0,
    held: shelf === SHELF.held ? -count : 0,
    created: instants('created'),
    // An import may give one to an item that is not leased.
    ...(leased && { deadline: instants('deadline') }),
  }
}

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
    const where = engine === null ? PLAIN_ENGINE : { source: sourceOfEngines(), engine }
    const cause = { ...where, queue, reason, ...words, failedBy: null, record: PLAIN_RECORD }
    shared.set(key, cause)
    return cause
  }
}

const PLAIN_ENGINE = { source: 'queues', engine: 'queues' } as const

const causeOfRun = (queue: string, run: FailedRun): Cause => ({
  source: sourceOfEngines(),
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

/** The deaths of items that lie in one place; where their letters lie is not said yet. */
async function deathsOf(
  { tx, queue }: Cycle,
  partition: Partition,
  shelf: number,
  dying: readonly Dying[],
  engine: string | null,
): Promise<ItemDeath[]> {
  const causeOf = causesIn(queue.queueName, engine)
  const serials = dying.map(({ item }) => item.serial)
  const names = engine === null ? NO_NAMES : await readMessageNames(tx, partition.part, shelf, serials)
  return dying.map((each) => {
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
      grave: null,
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
 * Deletes the items by primary key; the capture files them, and tells what was lost with them. `$3` has the note of each, its id, its serial in the dead queue's
 * part `$7`, which is NULL when there is no dead queue, and its source id where that is another than its id. A source id that an imported
 * item of the dead queue has is skipped; where nothing was imported, nothing is looked for. Letters are numbered here, in the order of the items, which the joins of the capture do not keep.
 * Items that were not read (`$11`) have new numbers even if they have cases: `unlike` then says so, where a number that is taken would only look like a lost race.
 */
const takeAll = captureStatement(
  'items.bury',
  `gone AS (
     DELETE FROM bartleby.items AS item
     WHERE item.part = $4 AND item.shelf = $5 AND item.id = ANY($2::bigint[]) AND item.leased = $6
     RETURNING $3::jsonb -> item.id::text AS given, item.*
   ), taken AS (
     SELECT coalesce(CASE WHEN NOT $11::boolean THEN case_id END, nextval('bartleby.letter_ids')) AS letter_id, (given ->> 0)::int AS note,
       coalesce(given ->> 3, given ->> 1) AS source_id,
       CASE WHEN (SELECT true FROM bartleby.items WHERE part = $7 AND source_id IS NOT NULL LIMIT 1)
         THEN (SELECT true FROM bartleby.items AS holder
               WHERE holder.part = $7 AND holder.source_id = convert_to(given ->> 1, 'UTF8')) END IS NOT NULL AS skipped,
       created_at AS item_created_at, $8::bigint AS laid_at, (given ->> 2)::bigint AS serial, $7::int AS part,
       attempts AS dequeue_count, $10::int AS partition, $9::text AS dead_queue, encoding, kind, reference,
       NULL::bytea AS headers, payload, lease_deadline, case_id
     FROM (SELECT * FROM gone ORDER BY id) AS gone
   )`,
  GONE,
)

/** Items by primary key; `$6` has the serial of each, its id and its serial in the dead queue. What is skipped is as above. */
const fileItems = captureAlike(
  'items.file',
  `SELECT $1 + asked.key AS letter_id, asked.value ->> 1 AS source_id, item.created_at AS item_created_at, $2 AS laid_at,
     asked.value ->> 2 AS serial, $3 AS part, item.attempts AS dequeue_count, $4 AS partition, $5 AS dead_queue, item.encoding, item.kind,
     item.reference, NULL AS headers, item.payload
   FROM json_each($6) AS asked CROSS JOIN items AS item
   WHERE item.id = asked.value ->> 0 AND item.part = $7 AND item.shelf = $8 AND item.leased = $9 AND NOT EXISTS (
     SELECT 1 FROM items AS holder WHERE holder.part = $3 AND holder.source_id = CAST(asked.value ->> 1 AS BLOB))`,
)
const THESE = 'part = $1 AND shelf = $2 AND id = ANY($3) AND leased = $4'
const tallyItems = sql(
  'items.tallyFiled',
  {
    sqlite: `SELECT count(*) AS taken${GONE.replaceAll('item_created_at', 'created_at').replace('dequeue_count', 'attempts')} FROM items WHERE ${THESE}`,
  },
  { bigints: true },
)
const removeItems = sql('items.removeFiled', { sqlite: `DELETE FROM items WHERE ${THESE}` })

const takeOne = sql(
  'items.take',
  {
    sqlite: `DELETE FROM items WHERE part = $1 AND shelf = $2 AND id = $3 AND leased = $4
             RETURNING created_at, lease_deadline, case_id, attempts, encoding, kind, reference, payload`,
  },
  { bigints: true },
)
const readHolder = sql('items.sourceHolder', {
  sqlite: 'SELECT 1 AS found FROM items WHERE part = $1 AND source_id = CAST($2 AS BLOB)',
})

interface TakenItem extends ContentRow {
  readonly created_at: Integer
  readonly lease_deadline: Integer | null
  readonly case_id: Integer | null
}

const goneWith = ({ created_at, lease_deadline, case_id, attempts }: TakenItem): Gone => ({
  ...{ created_s: 0, created_us: created_at, deadline_s: 0, deadline_us: lease_deadline ?? 0 },
  unlike: case_id === null && Number(attempts) > 0 ? 0 : 1,
})

/** Where items lie, whether all are leased there, and whether they die without having been read. */
interface Place extends Origin {
  readonly partition: number
  readonly isUnread: boolean
}

/** Items that leave their place. */
interface TakingItems extends Taking<ItemDeath> {
  /** Those that reopened their letters. */
  readonly ended: ItemFacts[]
  /** Sums over the others, on SQLite. */
  readonly gone: Gone[]
}

/** How items that lie in one place leave it; what reopens its letter must be as it was read. */
const takingItems = (
  { tx, now }: Cycle,
  from: Place,
  grave: { readonly deadQueue: string; readonly part: number } | null,
): TakingItems => ({
  ended: [],
  gone: [],
  async end(deaths, letters) {
    // The letter of an item is resolved as long as the item is out. One that is pending was reported anew, and its item lost its case since.
    const out = deaths.filter(
      ({ caseId }) => caseId !== null && letters.get(caseId)?.status !== STATUS.Pending,
    )
    insistOn(deaths.length, out.length)
    const items = deaths.map(({ item }) => item)
    await removeRelapsed(tx, from, items)
    this.ended.push(...items)
  },
  all(deaths, notes) {
    const [serials, given] = givenByKey(
      ['id', 'note', 'item_id', 'serial', 'source_id'],
      deaths.map(({ item, itemId, sourceId, grave }, i) => ({
        id: item.serial,
        note: notes[i] ?? 0,
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
      from.isUnread,
    ]
    return { statement: takeAll, values }
  },
  alike(deaths, first) {
    const given = deaths.map(({ item, itemId, grave }) => [item.serial, itemId, grave?.serial ?? null])
    const [laidAt, leased] = [grave === null ? null : now, from.leased ? 1 : 0]
    const serials = deaths.map(({ item }) => item.serial)
    return {
      statement: fileItems,
      values: [
        ...[first, laidAt, grave?.part ?? null, from.partition, grave?.deadQueue ?? null],
        ...[JSON.stringify(given), from.part, from.shelf, leased],
      ],
      remove: async () => {
        this.gone.push(...(await tx.rows<Gone>(tallyItems, from.part, from.shelf, serials, leased)))
        return tx.run(removeItems, from.part, from.shelf, serials, leased)
      },
    }
  },
  async each({ item, itemId }) {
    const [row] = await tx.rows<TakenItem>(takeOne, from.part, from.shelf, item.serial, from.leased ? 1 : 0)
    insistOn(1, row === undefined ? 0 : 1)
    if (row === undefined) return null
    this.gone.push(goneWith(row))
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
