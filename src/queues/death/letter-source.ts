/**
 * The way back of letters into queues. An item is put at the tail in the transaction that claims the letter and carries the letter's
 * number as its case. The store copies the content, so no payload leaves it.
 */
import { later } from '../../core/clock.ts'
import { usFromNs } from '../../core/duration.ts'
import { type BartlebyError, failure } from '../../core/errors.ts'
import { enterDeadQueue } from '../../letters/in-dead-queue/move.ts'
import { type InDeadQueue, type LetterId, letterId } from '../../letters/letter.ts'
import type {
  Departing,
  Edits,
  LetterSource,
  Reading,
  Refused,
  Rendered,
  Restoring,
  Sent,
  TakenBack,
} from '../../letters/source.ts'
import type { OfficeWork } from '../../letters/work.ts'
import { type Integer, type Session, type Statement, sql, type Transaction } from '../../store/database.ts'
import { runGiven } from '../../store/idioms.ts'
import { CountChanges, count, emptiestPartition, instantSum } from '../counts.ts'
import { makeEngineQueue } from '../engines/engine-queues.ts'
import { allocateSerials, itemIdIn, type QueueRecord, readEngineOf, readQueue } from '../records.ts'
import { SHELF } from '../schema.ts'
import { removeAny } from '../sql/remove.ts'
import type { Announce } from '../verbs/put.ts'
import { placesIn } from '../verbs/removed.ts'
import { assignCases } from './cases.ts'
import { departureOf } from './dead-queue.ts'

export const queueLetterSource = (name: LetterSource['name'], announce: Announce): LetterSource => ({
  name,
  render,
  send: (work, rendered) => send(work, rendered, announce),
  takeBack,
  disown,
  async moved(work, letters, act) {
    if (act === 'discard' || act === 'expire') departures(letters).write(work.tx)
    else if (act !== 'remove') await enterDeadQueues(work, letters, announce)
  },
})

const render = (read: Reading, letters: readonly Departing[], edits: Edits) =>
  read('queues.render', async (session) => {
    const wayOf = ({ engine, originalQueue }: Departing): string => `${engine} ${originalQueue}`
    const refusals = new Map<string, BartlebyError | null>()
    for (const [way, [letter]] of Map.groupBy(letters, wayOf))
      if (letter !== undefined) refusals.set(way, await refusalOf(session, letter))
    return letters.map((letter): Rendered | Refused => {
      const refusal = refusals.get(wayOf(letter)) ?? null
      if (refusal !== null) return { letter, refusal }
      return { letter, queue: letter.originalQueue ?? '', edit: edits.get(letter.id) ?? null }
    })
  })

async function refusalOf(
  session: Session,
  { engine, originalQueue: queue }: Departing,
): Promise<BartlebyError | null> {
  if (queue === null) return failure('letter_without_queue', { engine })
  // An engine's own queue is created when the letter is sent.
  const isThere =
    (await readQueue(session, queue)) !== null || (await readEngineOf(session, queue)) === engine
  return isThere ? null : failure('letter_queue_gone', { queue })
}

async function send(
  work: OfficeWork,
  rendered: readonly Rendered[],
  announce: Announce,
): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  for (const [queue, toQueue] of Map.groupBy(rendered, ({ queue }) => queue)) {
    const letters = toQueue.map(({ letter }) => letter)
    sent.push(...(await sendTo(work, queue, letters, announce)))
  }
  return sent
}

/** One row by its unique name; a deletion of the queue and this transaction wait for each other. */
const keepQueue = sql('queues.keep', 'SELECT id FROM bartleby.queues WHERE name = $1 FOR KEY SHARE')

async function kept(tx: Transaction, queueName: string): Promise<QueueRecord | null> {
  const [[row], queue] = await Promise.all([tx.rows(keepQueue, queueName), readQueue(tx, queueName)])
  return row === undefined ? null : queue
}

/** Into one partition, in order; the store copies the content. */
async function sendTo(
  work: OfficeWork,
  queueName: string,
  letters: readonly Departing[],
  announce: Announce,
): Promise<readonly Sent[]> {
  const { tx, now } = work
  let queue = await kept(tx, queueName)
  const [first] = letters
  if (queue === null && first !== undefined && (await makeEngineQueue(work, first.engine, queueName)))
    queue = await kept(tx, queueName)
  if (queue === null) throw failure('letter_queue_gone', { queue: queueName })
  const partition = await emptiestPartition(tx, queue)
  const { part } = partition
  const serials = await allocateSerials(tx, letters.length)
  const expireAt = later(now, usFromNs(queue.expireTimeoutNs))
  const rows = letters.map(({ id }, i) => ({ id, serial: serials[i] }))
  const inserted = await runGiven(tx, insertOfLetters, rows, part, now, expireAt)
  if (inserted !== letters.length) throw new Error('letters are gone although they were locked')
  const changes = departures(letters)
  changes.add(part, { ready: letters.length, created: instantSum(now, letters.length) })
  changes.write(tx)
  const [firstSerial] = serials
  if (firstSerial !== undefined)
    work.afterCommit(() => announce([{ queueName, part, firstSerial }], expireAt))
  return letters.map((letter, i) => ({
    letter,
    messageId: itemIdIn(partition, serials[i] ?? 0),
    queue: queueName,
  }))
}

/** Items of cases, on items_by_case. */
const readSent = sql('items.ofCases', 'SELECT case_id FROM bartleby.items WHERE case_id = ANY($1::bigint[])')

/**
 * The same, locked; rows locked by others are skipped. Cycles lock items before letters, so waiting here for an item with its letter
 * locked would be a deadlock.
 */
const lockSent = sql(
  'items.lockOfCases',
  `SELECT case_id, part, shelf, id, leased, attempts FROM bartleby.items WHERE case_id = ANY($1::bigint[])
   FOR UPDATE SKIP LOCKED`,
)

interface SentItem {
  readonly case_id: Integer
  readonly part: Integer
  readonly shelf: Integer
  readonly id: Integer
  readonly leased: Integer
  readonly attempts: Integer
}

async function takeBack<Of extends Restoring>(
  { tx }: OfficeWork,
  letters: readonly Of[],
): Promise<readonly (TakenBack<Of> | Refused)[]> {
  const sent = letters.filter(({ isUnconfirmed }) => isUnconfirmed).map(({ id }) => id)
  const there = await itemsOf<Pick<SentItem, 'case_id'>>(tx, readSent, sent)
  const items = await itemsOf<SentItem>(tx, lockSent, [...there.keys()])
  const isFree = (item: SentItem): boolean => Number(item.leased) === 0
  await takeOut(tx, [...items.values()].filter(isFree))
  return letters.map((letter) => {
    const item = items.get(letter.id)
    if (there.has(letter.id) && (item === undefined || !isFree(item)))
      return { letter, refusal: failure('letter_in_flight', { queue: letter.sentTo ?? '' }) }
    return { letter, deliveries: Number(item?.attempts ?? 0) }
  })
}

async function itemsOf<Row extends Pick<SentItem, 'case_id'>>(
  tx: Transaction,
  statement: Statement,
  letters: readonly LetterId[],
): Promise<Map<LetterId, Row>> {
  const rows = letters.length === 0 ? [] : await tx.rows<Row>(statement, letters)
  return new Map(rows.map((row) => [letterId(row.case_id), row]))
}

/** The same, waited for, in the order in which cycles lock items: nothing that a cycle waits for is locked yet. */
const waitForSent = sql(
  'items.waitForCases',
  `SELECT case_id, part, shelf, id, leased, attempts FROM bartleby.items WHERE case_id = ANY($1::bigint[])
   ORDER BY part, id FOR UPDATE`,
)

async function disown({ tx }: OfficeWork, letters: readonly LetterId[]): Promise<void> {
  const items = await tx.rows<SentItem>(waitForSent, letters)
  const isLeased = ({ leased }: SentItem): boolean => Number(leased) === 1
  for (const [part, mine] of Map.groupBy(items.filter(isLeased), ({ part }) => Number(part)))
    await assignCases(
      tx,
      part,
      mine.map(({ id }) => ({ serial: Number(id), caseId: null })),
    )
  await takeOut(
    tx,
    items.filter((item) => !isLeased(item)),
  )
}

async function takeOut(tx: Transaction, items: readonly SentItem[]): Promise<void> {
  for (const [part, mine] of Map.groupBy(items, ({ part }) => Number(part))) {
    const serials = mine.map(({ id }) => Number(id)).sort((a, b) => a - b)
    const { change } = await removeAny(tx, part, serials, [
      ...new Set(mine.map(({ shelf }) => Number(shelf))),
    ])
    count(tx, part, change)
  }
}

function departures(letters: readonly InDeadQueue[]): CountChanges {
  const changes = new CountChanges()
  for (const { position } of letters)
    if (position !== null) changes.add(position.part, departureOf([position]))
  return changes
}

/** Puts letters at the tails of their dead queues, where these exist. */
async function enterDeadQueues(
  work: OfficeWork,
  letters: readonly InDeadQueue[],
  announce: Announce,
): Promise<void> {
  for (const [deadQueue, those] of Map.groupBy(letters, (letter) => letter.deadQueue)) {
    const places = await placesIn(work, announce, deadQueue, those.length)
    const [first] = places
    if (first === undefined) continue
    const serials = places.map(({ serial }) => serial)
    const ids = those.map(({ id }) => id)
    await enterDeadQueue(work.tx, ids, { part: first.part, serials, at: first.laidAt })
  }
}

const COLUMNS = `id, part, shelf, leased, attempts, created_at, expire_at, case_id, encoding, kind, reference, payload`

/** An operator's edit counts; an empty one is kept as NULL. */
const edited = (name: string): string =>
  `CASE WHEN letters.edited_${name} IS NULL THEN letters.${name} WHEN length(letters.edited_${name}) > 0 THEN letters.edited_${name} END`

/** Letters by primary key, each with its new serial; the item carries its letter as its case. */
const insertOfLetters = sql(
  'items.insertOfLetters',
  `INSERT INTO bartleby.items (${COLUMNS})
   SELECT given.serial, $3, ${SHELF.queue}, 0, 0, $4, $5, letters.id, ${edited('encoding')}, ${edited('kind')}, ${edited('reference')},
     CASE WHEN letters.edited = 1 THEN letters.edited_payload ELSE letters.payload END
   FROM unnest($1::bigint[], $2::bigint[]) AS given (id, serial), bartleby.letters
   WHERE letters.id = given.id AND letters.id = ANY($1::bigint[])`,
)
