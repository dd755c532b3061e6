/**
 * How entities and poisoned messages become letters, once each, and how a change that others made in Azure reaches the letter. A failure of
 * a message that was sent back reopens its letter: by the mark in the message, else by its correlation id, and that only if exactly one
 * sent letter of the engine and queue has it.
 */
import type { Instant } from '../../core/clock.ts'
import { textBytes } from '../../core/content.ts'
import { bury, PLAIN_RECORD } from '../../letters/bury.ts'
import { type GivenDeath, takingGiven } from '../../letters/capture.ts'
import { change } from '../../letters/change.ts'
import { markHeld } from '../../letters/in-dead-queue/move.ts'
import { type Letter, type LetterId, type LetterStatus, letterId, RETRIED } from '../../letters/letter.ts'
import { readLetterById } from '../../letters/lists/detail.ts'
import { type CaseRow, lockLetters, lockLettersOf } from '../../letters/locked.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import { CLAIMED_BY, type DlqEntity } from './entity.ts'
import { type FoundMessage, markOf } from './message.ts'
import { AZURE, type AzureParts, noteOn } from './parts.ts'
import {
  type EntityRow,
  endWrite,
  entitiesNamed,
  entitiesOf,
  moveEntity,
  noteUnwritten,
  putAtRest,
  putStamp,
  registerEntities,
  sentWith,
  writeOf,
} from './register.ts'
import { STATE } from './schema.ts'

/** What is taken in: a row of the DLQ table, or a message of a poison queue, which has no keys and no ETag. */
export interface Incoming extends FoundMessage, Omit<DlqEntity, 'partitionKey' | 'rowKey' | 'etag'> {
  readonly sourceId: string
  readonly engine: string
  readonly partitionKey: string | null
  readonly rowKey: string | null
  readonly etag: string | null
}

/** What came of it. `later`: the message of a letter is on its way, and what died of it has to wait for the end of that. */
export interface TakenIn {
  readonly captured: number
  readonly reopened: number
  readonly later: number
}

/** Takes in what is new, all or none. What is known is not looked at. */
export function takeNew(parts: AzureParts, incoming: readonly Incoming[]): Promise<TakenIn> {
  return inOffice(parts.db, parts.clock, 'azure.take', async (work) => {
    const known = await entitiesNamed(
      work.tx,
      incoming.map(({ sourceId }) => sourceId),
    )
    const fresh = [...new Map(incoming.map((each) => [each.sourceId, each])).values()].filter(
      ({ sourceId }) => !known.has(sourceId),
    )
    const { cases, later } = await casesOf(work, fresh)
    const now = fresh.filter((each) => !later.has(each))
    const { captured, reopened, letters } = await buryThese(work, parts, now, cases)
    await registerEntities(
      work.tx,
      now.map((each) => ({
        ...each,
        queue: each.originalQueue,
        letterId: letters.get(each.sourceId) ?? letterId(0),
      })),
    )
    for (const each of now) {
      const id = letters.get(each.sourceId)
      if (id !== undefined && each.status !== 'Pending')
        await actAsThey(work, { id, engine: each.engine }, each)
    }
    work.afterCommit(() => {
      parts.counters.add('taken', captured)
      parts.counters.add('reopened', reopened)
    })
    return { captured, reopened, later: later.size }
  })
}

/** The letters that these failures reopen. */
async function casesOf(
  work: OfficeWork,
  fresh: readonly Incoming[],
): Promise<{ cases: ReadonlyMap<string, LetterId>; later: ReadonlySet<Incoming> }> {
  const { tx } = work
  const cases = new Map<string, LetterId>()
  const taken = new Set<LetterId>()
  const marks = new Map(
    fresh.flatMap((each) => {
      const mark = each.status === 'Pending' ? markOf(each.payload) : null
      return mark === null ? [] : [[each.sourceId, letterId(mark)]]
    }),
  )
  const marked =
    marks.size === 0 ? new Map<LetterId, EntityRow>() : await entitiesOf(tx, [...new Set(marks.values())])
  const sentOf = await sentWith(
    tx,
    fresh.map(({ correlationId }) => correlationId),
  )
  for (const each of fresh) {
    const mark = marks.get(each.sourceId)
    if (each.status !== 'Pending') continue
    if (mark !== undefined && marked.get(mark)?.engine === each.engine) {
      cases.set(each.sourceId, mark)
      continue
    }
    const sent = sentOf(each.correlationId, each.engine).filter(
      ({ queue, state, letterId }) =>
        queue === each.originalQueue && state === STATE.sent && !taken.has(letterId),
    )
    const [only] = sent
    if (only === undefined || sent.length > 1) continue
    taken.add(only.letterId)
    cases.set(each.sourceId, only.letterId)
  }
  const ids = [...new Set(cases.values())].sort((a, b) => (a < b ? -1 : 1))
  await lockLetters(tx, ids)
  const rows = await entitiesOf(tx, ids)
  const later = new Set<Incoming>()
  for (const each of fresh) {
    const id = cases.get(each.sourceId)
    const row = id === undefined ? undefined : rows.get(id)
    if (row === undefined) continue
    if (isHeld(row)) later.add(each)
    // It died of what we sent: so it had arrived.
    else if (row.state === STATE.uncertain) await settleArrived(work, row)
  }
  return { cases, later }
}

export const isHeld = ({ state }: Pick<EntityRow, 'state'>): boolean =>
  state === STATE.claimed || state === STATE.sending

/** A message of which nobody knew has arrived: its letter is Resolved, and the entity that it came from has to say so. */
export async function settleArrived(
  work: OfficeWork,
  { letterId: id, engine, claim, queue }: EntityRow,
  actor = AZURE,
): Promise<void> {
  const letter = await readLetterById(work.tx, id)
  if (letter?.status !== 'Pending') return
  await markHeld(work.tx, id, false)
  await change(
    work,
    'retry',
    [{ id, engine, sentAs: claim ?? '', sentTo: queue ?? '', details: { queue, found: 'it had arrived' } }],
    { actor, notes: RETRIED },
  )
  await noteUnwritten(work.tx, [id], work.now)
}

async function buryThese(
  work: OfficeWork,
  { registers }: AzureParts,
  incoming: readonly Incoming[],
  cases: ReadonlyMap<string, LetterId>,
) {
  const deaths = incoming.map((each) => deathOf(each, cases.get(each.sourceId) ?? null))
  const { captured, reopened, letters } = await bury(work, registers, takingGiven(), deaths)
  return { captured, reopened, letters: new Map([...letters].map(([death, id]) => [death.sourceId, id])) }
}

function deathOf(incoming: Incoming, caseId: LetterId | null, attempts = incoming.dequeueCount): GivenDeath {
  const { sourceId, engine, originalQueue, errorMessage, dequeueCount, payload } = incoming
  return {
    cause: {
      ...{ source: AZURE, engine, queue: originalQueue, reason: 'failed', errorClass: '', errorMessage },
      ...{ errorStack: null, failedBy: engine, record: { ...PLAIN_RECORD, actor: AZURE } },
    },
    ...{ caseId, sourceId, diedAs: sourceId, attempts, position: null, reportedCount: dequeueCount },
    instanceId: incoming.instanceId,
    correlationId: incoming.correlationId,
    firstFailureAt: incoming.firstFailureAt,
    lastFailureAt: incoming.lastFailureAt,
    item: {
      ...{ itemCreatedAt: null, dequeueCount, partition: null },
      encoding: textBytes(incoming.encoding),
      kind: null,
      // What people call it in Azure: lists show it, and search finds it.
      reference: textBytes(incoming.rowKey ?? ''),
      headers: Buffer.from(JSON.stringify(incoming.headers)),
      payload: payload.length === 0 ? null : payload,
    },
  }
}

type Followed = 'taken' | 'later'

/** Takes in that an entity is not what it was: others have changed it, or the engine has filed another failure on it. */
export function takeChange(parts: AzureParts, entity: Incoming): Promise<Followed> {
  return inOffice(parts.db, parts.clock, 'azure.follow', async (work) => {
    const { tx } = work
    const known = (await entitiesNamed(tx, [entity.sourceId])).get(entity.sourceId)
    if (known === undefined || entity.etag === null) return 'taken'
    const cases = await lockLettersOf(tx, [known.letterId])
    const row = (await entitiesNamed(tx, [entity.sourceId])).get(entity.sourceId)
    // Somebody has read it anew meanwhile.
    if (row === undefined || row.etag === entity.etag || entity.writtenAt < row.writtenAt) return 'taken'
    if (isHeld(row)) return 'later'
    await putStamp(tx, row.sourceId, { etag: entity.etag, writtenAt: entity.writtenAt })
    if (!row.isCurrent) return 'taken'
    const [before, letter] = [cases.get(row.letterId), await readLetterById(tx, row.letterId)]
    if (before === undefined || letter === null) await takeAnew(work, parts, entity)
    else await follow(work, parts, { row, before, letter, entity })
    work.afterCommit(() => parts.counters.add('changed'))
    return 'taken'
  })
}

/** Its letter was removed long ago: one that is pending again has another. */
async function takeAnew(work: OfficeWork, parts: AzureParts, entity: Incoming): Promise<void> {
  if (entity.status !== 'Pending') return
  const { letters } = await buryThese(work, parts, [entity], new Map())
  const id = letters.get(entity.sourceId)
  if (id !== undefined) await moveEntity(work.tx, entity.sourceId, id)
}

interface Following {
  readonly row: EntityRow
  readonly before: CaseRow
  readonly letter: Letter
  readonly entity: Incoming
}

/** The later writer wins, by the service's own time; what the other did stands in history. A new failure is news in any case. */
async function follow(
  work: OfficeWork,
  parts: AzureParts,
  { row, before, letter, entity }: Following,
): Promise<void> {
  const { tx, now } = work
  const ours = await writeOf(tx, row.sourceId)
  if (entity.status === 'Pending' && entity.lastFailureAt > letter.lastFailureAt) {
    if (ours !== null) await endWrite(tx, ours)
    await failAgain(work, parts, letter, entity)
    return
  }
  // Left by a server that claimed it and died: the entity has to be put right.
  const isOwnClaim = entity.status === 'Pending' && entity.resolvedBy?.startsWith(CLAIMED_BY) === true
  if (isOwnClaim) {
    if (ours === null) await noteUnwritten(tx, [letter.id], now)
    return
  }
  const { status, notes, resolvedBy } = entity
  const about = {
    ...{ actor: theirs(entity), details: { status, notes, resolvedBy } },
    notes: `${status} in Azure${notes ? `: ${notes}` : ''}`,
  }
  if (ours !== null && isLater(parts, ours.actedAt, entity.writtenAt)) {
    if (!isSaidBy(letter, entity)) await noteOn(work, letter, 'overruled', about)
    return
  }
  if (ours !== null) await endWrite(tx, ours)
  if (status !== letter.status)
    await actAsThey(work, { id: letter.id, engine: letter.engine, before }, entity)
  else if (!isSaidBy(letter, entity)) await noteOn(work, letter, 'noted', about)
}

/** Whether the letter says all that its entity does. */
function isSaidBy(letter: Letter, entity: Incoming): boolean {
  const isSameWho =
    !entity.resolvedBy || [entity.resolvedBy, theirs(entity)].includes(letter.resolvedBy ?? '')
  const isSameWhy = (entity.notes ?? '') === (letter.notes ?? '') || isOurWording(letter, entity)
  return entity.status === letter.status && isSameWho && isSameWhy
}

const isLater = ({ account }: AzureParts, ourActAt: Instant, writtenAt: Instant): boolean =>
  account.atService(ourActAt) >= writtenAt

/** A retry with notes of its own is told in Azure with a word before them. */
const isOurWording = ({ resolution, notes }: Letter, entity: Incoming): boolean =>
  resolution === 'retry' && entity.notes === `${RETRIED}; ${notes}`

const theirs = ({ resolvedBy }: Pick<DlqEntity, 'resolvedBy'>): string =>
  `${AZURE}:${resolvedBy || 'unknown'}`

/** The engine has filed another failure on the same entity. */
async function failAgain(
  work: OfficeWork,
  { registers }: AzureParts,
  letter: Letter,
  entity: Incoming,
): Promise<void> {
  const { id, reportedCount, resolution } = letter
  const isContinued = resolution !== 'retry' && reportedCount !== null && entity.dequeueCount > reportedCount
  const death = deathOf(entity, id, entity.dequeueCount - (isContinued ? reportedCount : 0))
  await bury(work, registers, takingGiven(), [death])
  await putAtRest(work.tx, [id])
}

/** Gives a locked letter the status that its entity has. */
async function actAsThey(
  work: OfficeWork,
  letter: { readonly id: LetterId; readonly engine: string; readonly before?: CaseRow },
  entity: Pick<Incoming, 'status' | 'notes' | 'resolvedBy'>,
): Promise<void> {
  const { id, engine, before } = letter
  const how = { actor: theirs(entity), notes: entity.notes || null }
  const was: LetterStatus =
    before === undefined || before.status === 0 ? 'Pending' : before.status === 1 ? 'Resolved' : 'Expired'
  if (before !== undefined && was !== 'Pending')
    await change(work, 'restore', [{ id, engine, before, deliveries: 0 }], how)
  await putAtRest(work.tx, [id])
  if (entity.status === 'Expired') await change(work, 'expire', [{ id, engine }], how)
  else if (entity.status === 'Resolved' && entity.notes?.startsWith(RETRIED) === true)
    await change(work, 'complete', [{ id, engine }], how)
  else if (entity.status === 'Resolved') await change(work, 'discard', [{ id, engine }], how)
}
