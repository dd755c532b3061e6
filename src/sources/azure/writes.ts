/**
 * Entities say what their letters do. Every act leaves a row in the transaction of the act, and these rounds write what the letter says
 * then: by ETag, as often as it takes, and whatever others wrote meanwhile is taken in first. Until it is done the act is *not yet written*.
 */
import { later } from '../../core/clock.ts'
import { Rounds } from '../../core/rounds.ts'
import { RETRIED } from '../../letters/letter.ts'
import { readLetterById } from '../../letters/lists/detail.ts'
import { AzureTrouble, isTrouble, troubleOf } from './account.ts'
import {
  type ActColumns,
  columnsOf,
  dlqEntity,
  type EntityKey,
  type RawEntity,
  replaced,
  saysSo,
  stampOf,
  typedColumns,
} from './entity.ts'
import { type AzureParts, engineOf } from './parts.ts'
import {
  dueWrites,
  type EntityRow,
  endWrite,
  entitiesNamed,
  type PendingWrite,
  postponeWrite,
  putStamp,
  writeOf,
} from './register.ts'
import { isHeld, takeChange } from './take-in.ts'

const EVERY_US = 1_000_000n
const LONGEST_US = 60_000_000n
const MOST = 64
const SIDE_BY_SIDE = 8
const MOST_TRIES = 5

export const writeRounds = (parts: AzureParts): Rounds =>
  new Rounds({
    ...{ name: 'azure.writes', clock: parts.clock, log: parts.log, everyUs: EVERY_US },
    act: (signal) => writeDue(parts, signal),
    trouble: 'azure: acts on letters could not be written to their entities; it is tried again',
  })

async function writeDue(parts: AzureParts, signal: AbortSignal): Promise<void> {
  const { db, clock, account } = parts
  if (account.slowUntil !== null) return
  for (;;) {
    const due = await db.session('azure.dueWrites', (session) => dueWrites(session, clock.now(), MOST))
    for (let from = 0; from < due.length && !signal.aborted; from += SIDE_BY_SIDE)
      await Promise.all(due.slice(from, from + SIDE_BY_SIDE).map((write) => writeOne(parts, write)))
    if (due.length < MOST || signal.aborted) return
  }
}

/** Writes an entity, or puts it off. What is being sent is written when that is over. */
async function writeOne(parts: AzureParts, write: PendingWrite): Promise<void> {
  const { db, clock, counters } = parts
  try {
    if (await tryWrite(parts, write)) counters.add('written')
  } catch (error) {
    const trouble = troubleOf(error)
    if (trouble.kind === 'gone') {
      // Nobody can be told any more.
      await db.session('azure.endWrite', (session) => endWrite(session, write))
      return
    }
    if (!isTrouble(error)) throw error
    const wait = trouble.retryAfterUs ?? backoffUs(write.attempts)
    await db.session('azure.postpone', (session) =>
      postponeWrite(session, write, later(clock.now(), wait), trouble.message),
    )
  }
}

const backoffUs = (attempts: number): bigint => {
  const us = 1_000_000n << BigInt(Math.min(attempts, 6))
  return us < LONGEST_US ? us : LONGEST_US
}

/** Whether the entity says it now. */
async function tryWrite(parts: AzureParts, { sourceId }: PendingWrite): Promise<boolean> {
  const { db } = parts
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const found = await db.session('azure.write', async (session) => {
      const [row, write] = [
        (await entitiesNamed(session, [sourceId])).get(sourceId),
        await writeOf(session, sourceId),
      ]
      const letter = row === undefined ? null : await readLetterById(session, row.letterId)
      return { row, write, letter }
    })
    const { row, write, letter } = found
    if (write === null) return false
    if (row === undefined || row.partitionKey === null || row.rowKey === null || letter === null) {
      await db.session('azure.endWrite', (session) => endWrite(session, write))
      return false
    }
    if (isHeld(row)) return false
    const key: EntityKey = { partitionKey: row.partitionKey, rowKey: row.rowKey }
    const raw = await readEntity(parts, key)
    const { etag } = stampOf(raw)
    if (row.isCurrent && etag !== row.etag && !saysSo(raw, columnsOf(letter))) {
      const entity = dlqEntity(raw)
      await takeChange(parts, { ...entity, sourceId, engine: engineOf(parts, entity.partitionKey) })
      const isOurs = (await db.session('azure.write', (session) => writeOf(session, sourceId))) !== null
      if (!isOurs) return false
      // Read again: the letter may be another by now, and our turn is over what they wrote.
      if ((await rowOf(parts, sourceId))?.etag !== etag) continue
    }
    const columns = wantedOf(row, columnsOf(letter), raw)
    const stamp = saysSo(raw, columns) ? stampOf(raw) : await putColumns(parts, raw, columns)
    await db.session('azure.written', async (session) => {
      await putStamp(session, sourceId, stamp)
      await endWrite(session, write)
    })
    return true
  }
  // Somebody writes it all the time: later, then.
  throw new AzureTrouble('changed', {
    code: 'UpdateConditionNotSatisfied',
    message: 'the entity is changed by others again and again',
    isCertain: true,
  })
}

const rowOf = ({ db }: AzureParts, sourceId: string): Promise<EntityRow | undefined> =>
  db.session('azure.entity', async (session) => (await entitiesNamed(session, [sourceId])).get(sourceId))

/** An entity whose letter died again under another key was sent back. */
const wantedOf = (row: EntityRow, columns: ActColumns, raw: RawEntity): Partial<ActColumns> => {
  if (row.isCurrent) return columns
  return dlqEntity(raw).status === 'Pending' ? { Status: 'Resolved', ResolutionNotes: RETRIED } : {}
}

export const readEntity = (
  { account }: AzureParts,
  { partitionKey, rowKey }: EntityKey,
): Promise<RawEntity> =>
  account.call((abortSignal) =>
    account.tables.dlq.getEntity<object>(partitionKey, rowKey, { disableTypeConversion: true, abortSignal }),
  )

/**
 * Writes columns of an entity that nobody changed since it was read. Merged where nothing has to go: a merge leaves every other column as
 * it is, with types that no client knows.
 */
export async function putColumns(
  parts: AzureParts,
  raw: RawEntity,
  columns: Partial<ActColumns>,
): Promise<ReturnType<typeof stampOf>> {
  const { account } = parts
  const { partitionKey, rowKey, etag } = stampOf(raw)
  const isRemoval = Object.entries(columns).some(
    ([name, value]) => value === null && raw[name] !== undefined && raw[name] !== null,
  )
  const entity = isRemoval ? replaced(raw, columns) : { partitionKey, rowKey, ...typedColumns(columns) }
  const { etag: now } = await account.call((abortSignal) =>
    account.tables.dlq.updateEntity(entity, isRemoval ? 'Replace' : 'Merge', { etag, abortSignal }),
  )
  return {
    partitionKey,
    rowKey,
    etag: now ?? '',
    writtenAt: timeIn(now) ?? account.atService(parts.clock.now()),
  }
}

/** The ETag of an entity is its Timestamp. */
function timeIn(etag: string | undefined) {
  const text = /datetime'([^']+)'/.exec(decodeURIComponent(etag ?? ''))?.[1]
  if (text === undefined) return null
  try {
    return stampOf({ partitionKey: '', rowKey: '', etag: '', timestamp: text }).writtenAt
  } catch {
    return null
  }
}
