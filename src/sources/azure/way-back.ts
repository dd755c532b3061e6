/**
 * How letters go back to the queues of an account: claimed in the store and by the ETag of their entity, sent, settled, each step on file
 * before the next begins.
 *
 *   resting ──► claimed ──► sending ──► sent          a crash in `claimed` left nothing; in `sending` nobody knows
 *      ▲           │           └──────► uncertain      shown, and settled by who looks into the queue, or by what the engine writes
 *      └───────────┘
 *
 * Nothing repeats a send: not the client, not a recovery. Two servers, or eight callers, meet at the claim.
 */
import { randomUUID } from 'node:crypto'
import { type Instant, instant, later } from '../../core/clock.ts'
import { type BartlebyError, failure } from '../../core/errors.ts'
import { Rounds } from '../../core/rounds.ts'
import { sleep } from '../../core/waiting.ts'
import { change, NOBODY } from '../../letters/change.ts'
import { replaceEdit } from '../../letters/contents.ts'
import { markHeld } from '../../letters/in-dead-queue/move.ts'
import { type Edit, type Letter, type LetterId, RETRIED, type Sending, sentBy } from '../../letters/letter.ts'
import { lockLetter } from '../../letters/lists/detail.ts'
import { lockLetters } from '../../letters/locked.ts'
import type { Departing, Sent } from '../../letters/source.ts'
import { insistOnStatus } from '../../letters/transitions.ts'
import { inOffice, type OfficeWork } from '../../letters/work.ts'
import type { Transaction } from '../../store/database.ts'
import { type AzureTrouble, isTrouble, troubleOf } from './account.ts'
import { CLAIMED_BY, dlqEntity, stampOf } from './entity.ts'
import { marked, textOf } from './message.ts'
import { AZURE, type AzureParts, engineOf, noteOn } from './parts.ts'
import {
  type EntityRow,
  entitiesOf,
  heldEntities,
  noteUnwritten,
  putAtRest,
  putStamp,
  putState,
} from './register.ts'
import { STATE } from './schema.ts'
import { isHeld, settleArrived, takeChange } from './take-in.ts'
import { putColumns, readEntity } from './writes.ts'

/** Longer than two calls take, with their time-outs. */
const LEASE_US = 60_000_000n
/** Callers wait this long for a message of the same letter that is on its way. */
const BUSY_MS = 20_000
const LOOK_MS = 40
const MOST_TRIES = 5
const NEVER_EXPIRES = -1
const RECOVER_US = 5_000_000n

/** A letter that this attempt holds. */
interface Claim {
  readonly token: string
  readonly letter: Letter
  readonly row: EntityRow
  readonly queue: string
  readonly edit: Edit | null
  readonly sending: Sending
}

export class WayBack {
  readonly recovery: Rounds
  readonly #parts: AzureParts
  readonly #stopped = new AbortController()
  readonly #calls = new Set<Promise<unknown>>()
  readonly #live = new Set<string>()
  /** One attempt after the other for each letter of this server. */
  readonly #turns = new Map<LetterId, Promise<unknown>>()
  readonly #written: () => void

  /** `written` is told of acts on file that their entities do not say yet. */
  constructor(parts: AzureParts, written: () => void) {
    this.#parts = parts
    this.#written = written
    let isFirst = true
    this.recovery = new Rounds({
      ...{ name: 'azure.recovery', clock: parts.clock, log: parts.log, everyUs: RECOVER_US },
      act: async () => {
        // A file has one server at a time: on SQLite whoever held something before the start is gone.
        await this.#recover(isFirst && parts.db.dialect === 'sqlite')
        isFirst = false
      },
      trouble: 'azure: letters whose message was being sent could not be let go; it is tried again',
    })
  }

  async stop(): Promise<void> {
    this.#stopped.abort(new Error('the server stops'))
    await Promise.all([this.recovery.stop(), Promise.allSettled(this.#calls)])
  }

  /** Sends a letter back; throws what keeps it from going. */
  async send(letter: Departing, edit: Edit | null, sending: Sending): Promise<Sent> {
    const before = this.#turns.get(letter.id)
    const call = (async () => {
      await before?.catch(() => {})
      return this.#send(letter, edit, sending)
    })()
    this.#turns.set(letter.id, call)
    this.#calls.add(call)
    try {
      return await call
    } finally {
      this.#calls.delete(call)
      if (this.#turns.get(letter.id) === call) this.#turns.delete(letter.id)
    }
  }

  async #send(letter: Departing, edit: Edit | null, sending: Sending): Promise<Sent> {
    const patience = AbortSignal.any([AbortSignal.timeout(BUSY_MS), this.#stopped.signal])
    for (let tries = 0; ; ) {
      if (this.#stopped.signal.aborted) throw failure('service_stopping')
      const claim = await this.#claim(letter, edit, sending)
      if (claim === 'busy') {
        if (!(await sleep(LOOK_MS, patience))) throw failure('letter_entity_busy')
        continue
      }
      this.#live.add(claim.token)
      try {
        if (!(await this.#mark(claim))) {
          if (++tries === MOST_TRIES) throw failure('letter_entity_busy')
          continue
        }
        return await this.#deliver(claim)
      } finally {
        this.#live.delete(claim.token)
      }
    }
  }

  /** Takes the letter in the store, unless its message is on its way. */
  #claim(departing: Departing, edit: Edit | null, sending: Sending): Promise<Claim | 'busy'> {
    const { db, clock, settings } = this.#parts
    const { id, engine } = departing
    return inOffice(db, clock, 'azure.claim', async (work) => {
      const letter = await lockLetter(work.tx, id)
      if (letter === null) throw failure('letter_unknown', { engine, rowKey: departing.sourceId })
      const row = (await entitiesOf(work.tx, [id])).get(id)
      if (row === undefined)
        throw failure('letter_entity_gone', { table: settings.dlqTableName, rowKey: letter.reference })
      if (isHeld(row)) {
        if (row.leaseUntil !== null && row.leaseUntil < work.now) await this.#letGo(work, letter, row)
        return 'busy'
      }
      insistOnStatus(letter, 'retry')
      const queue = departing.originalQueue ?? letter.originalQueue
      if (queue === null) throw failure('letter_without_queue', { engine })
      if (row.state === STATE.uncertain) throw failure('letter_send_unknown', { queue })
      this.#messageOf(letter, edit, queue)
      const token = randomUUID()
      await putState(work.tx, row.sourceId, {
        state: STATE.claimed,
        claim: token,
        leaseUntil: later(work.now, LEASE_US),
      })
      await markHeld(work.tx, id, true)
      return { token, letter, row, queue, edit, sending }
    })
  }

  /** Claims the entity by its ETag; false when others have changed it, which is taken in by then. A poisoned message has none. */
  async #mark(claim: Claim): Promise<boolean> {
    const { row, token, letter } = claim
    const { partitionKey, rowKey } = row
    if (partitionKey === null || rowKey === null) return true
    const parts = this.#parts
    try {
      const raw = await readEntity(parts, { partitionKey, rowKey })
      const stamp = stampOf(raw)
      if (stamp.etag !== row.etag) {
        await this.#release(claim, null)
        const entity = dlqEntity(raw)
        await takeChange(parts, {
          ...entity,
          sourceId: row.sourceId,
          engine: engineOf(parts, entity.partitionKey),
        })
        return false
      }
      const marked = await putColumns(parts, raw, { Status: 'Pending', ResolvedBy: `${CLAIMED_BY}${token}` })
      await parts.db.session('azure.marked', (session) => putStamp(session, row.sourceId, marked))
      return true
    } catch (error) {
      const trouble = troubleOf(error)
      await this.#release(claim, trouble.kind === 'changed' || trouble.kind === 'gone' ? null : trouble)
      if (trouble.kind === 'changed') return false
      if (trouble.kind === 'gone')
        throw failure('letter_entity_gone', { table: parts.settings.dlqTableName, rowKey })
      throw isTrouble(error) ? refusalOf(trouble, letter.originalQueue ?? '') : error
    }
  }

  /** Writes down what is about to leave, sends it, and writes down what came of it. */
  async #deliver(claim: Claim): Promise<Sent> {
    const { account, clock } = this.#parts
    const { letter, edit, queue } = claim
    const text = this.#messageOf(letter, edit, queue)
    if (!(await this.#intend(claim))) throw failure('letter_entity_busy')
    let receipt: { readonly messageId: string; readonly insertedOn: Date }
    try {
      receipt = await account.call((abortSignal) =>
        account.queue(queue).sendMessage(text, { messageTimeToLive: NEVER_EXPIRES, abortSignal }),
      )
    } catch (error) {
      const trouble = troubleOf(error)
      await this.#settleUnsent(claim, trouble)
      throw trouble.isCertain ? refusalOf(trouble, queue) : failure('letter_send_unknown', { queue })
    }
    const sentAt = instant(BigInt(receipt.insertedOn.getTime()) * 1_000n)
    await this.#settle(
      claim,
      receipt.messageId,
      Number.isNaN(receipt.insertedOn.getTime()) ? clock.now() : sentAt,
    )
    this.#written()
    return { letter, messageId: receipt.messageId, queue }
  }

  #intend(claim: Claim): Promise<boolean> {
    const { db, clock, account } = this.#parts
    const { letter, token, edit, sending } = claim
    const { id, engine } = letter
    return inOffice(db, clock, 'azure.intend', async (work) => {
      const row = await this.#held(work, claim)
      if (row === null) return false
      if (edit?.payload != null) await replaceEdit(work.tx, id, edit.payload)
      if (letter.redrive !== (sending.redrive?.number ?? null))
        await change(work, 'intend', [{ id, engine }], { ...NOBODY, redrive: sending.redrive })
      await putState(work.tx, row.sourceId, {
        ...{ state: STATE.sending, claim: token, leaseUntil: later(work.now, LEASE_US) },
        // The service tells its time in seconds.
        sentAt: later(account.atService(work.now), -1_000_000n),
      })
      return true
    })
  }

  /** The queue has it. When others gave us up, we still know better than they did. */
  #settle({ letter, token, queue, sending }: Claim, messageId: string, sentAt: Instant): Promise<void> {
    const { db, clock, counters } = this.#parts
    const { id, engine } = letter
    const { actor, notes, redrive, settled } = sending
    return inOffice(db, clock, 'azure.settle', async (work) => {
      await lockLetters(work.tx, [id])
      const row = (await entitiesOf(work.tx, [id])).get(id)
      work.afterCommit(() => counters.add('sent'))
      if (row?.claim !== token || (row.state !== STATE.sending && row.state !== STATE.uncertain)) return
      await markHeld(work.tx, id, false)
      await putState(work.tx, row.sourceId, { state: STATE.sent, claim: token, sentAt })
      const details = { messageId, queue, ...sentBy(redrive) }
      await change(work, 'retry', [{ id, engine, sentAs: messageId, sentTo: queue, details }], {
        ...{ actor, notes: notes ?? RETRIED, redrive },
      })
      await noteUnwritten(work.tx, [id], work.now)
      await settled?.(work, { messageId, queue })
    })
  }

  /** It is what it was before when it certainly did not leave; else nobody knows. */
  #settleUnsent(claim: Claim, trouble: AzureTrouble): Promise<void> {
    const { db, clock, counters } = this.#parts
    const { letter, token, queue, edit } = claim
    return inOffice(db, clock, 'azure.unsent', async (work) => {
      const row = await this.#held(work, claim)
      if (row === null) return
      const about = { actor: claim.sending.actor, details: { queue, claim: token }, error: trouble.message }
      if (!trouble.isCertain) return this.#leaveUncertain(work, letter, row, about)
      if (edit?.payload != null) await replaceEdit(work.tx, letter.id, letter.editedPayload)
      await this.#rest(work, letter, row)
      await noteOn(work, letter, 'failed', about)
      work.afterCommit(() => counters.add('unsent'))
    })
  }

  async #leaveUncertain(
    work: OfficeWork,
    letter: Letter,
    row: EntityRow,
    about: { readonly actor: string; readonly details: object; readonly error: string },
  ): Promise<void> {
    await markHeld(work.tx, letter.id, false)
    await putState(work.tx, row.sourceId, { state: STATE.uncertain, claim: row.claim, sentAt: row.sentAt })
    await noteOn(work, letter, 'uncertain', about)
    work.afterCommit(() => this.#parts.counters.add('uncertain'))
  }

  /** Nothing was sent; the entity may still say that it is claimed. */
  async #rest(work: OfficeWork, { id }: Pick<Letter, 'id'>, row: EntityRow): Promise<void> {
    await markHeld(work.tx, id, false)
    await putState(work.tx, row.sourceId, { state: STATE.resting })
    await noteUnwritten(work.tx, [id], work.now)
    work.afterCommit(() => this.#written())
  }

  /** Gives a claim back before anything left. `trouble`: nobody knows whether the entity was marked. */
  #release(claim: Claim, trouble: AzureTrouble | null): Promise<void> {
    const { db, clock } = this.#parts
    return inOffice(db, clock, 'azure.release', async (work) => {
      const row = await this.#held(work, claim)
      if (row === null) return
      if (trouble !== null) return this.#rest(work, claim.letter, row)
      await markHeld(work.tx, claim.letter.id, false)
      await putState(work.tx, row.sourceId, { state: STATE.resting })
    })
  }

  /** The entity of a claim, its letter locked; null when the claim is lost. */
  async #held({ tx }: OfficeWork, { letter: { id }, token }: Claim): Promise<EntityRow | null> {
    await lockLetters(tx, [id])
    const row = (await entitiesOf(tx, [id])).get(id)
    return row?.claim === token && isHeld(row) ? row : null
  }

  /** Letters whose server is gone: claimed ones are free, of those that were being sent nobody knows. */
  async #recover(isAll: boolean): Promise<void> {
    const { db, clock } = this.#parts
    for (const { letterId, claim } of await db.session('azure.held', heldEntities)) {
      if (claim !== null && this.#live.has(claim)) continue
      await inOffice(db, clock, 'azure.recover', async (work) => {
        const letter = await lockLetter(work.tx, letterId)
        const row = (await entitiesOf(work.tx, [letterId])).get(letterId)
        if (letter === null || row === undefined || row.claim !== claim || !isHeld(row)) return
        const isOver = row.leaseUntil === null || row.leaseUntil < work.now
        if (isAll || isOver) await this.#letGo(work, letter, row)
      })
    }
  }

  async #letGo(work: OfficeWork, letter: Letter, row: EntityRow): Promise<void> {
    if (row.state === STATE.claimed) return this.#rest(work, letter, row)
    await this.#leaveUncertain(work, letter, row, {
      ...{ actor: AZURE, details: { queue: row.queue, claim: row.claim } },
      error: 'the server that was sending it did not say in time what came of it',
    })
  }

  /** Somebody has looked into the queue: the message of an uncertain letter arrived, or it did not. */
  async settleUncertain(id: LetterId, hasArrived: boolean, actor: string): Promise<void> {
    const { db, clock } = this.#parts
    await inOffice(db, clock, 'azure.settleUncertain', async (work) => {
      const letter = await lockLetter(work.tx, id)
      const row = (await entitiesOf(work.tx, [id])).get(id)
      if (letter === null || row?.state !== STATE.uncertain) throw failure('letter_send_known')
      await noteOn(work, letter, 'settled', { actor, details: { hasArrived, queue: row.queue } })
      if (hasArrived) {
        await settleArrived(work, row, actor)
        await putState(work.tx, row.sourceId, { state: STATE.sent, claim: row.claim, sentAt: row.sentAt })
      } else await this.#rest(work, letter, row)
    })
    this.#written()
  }

  /** The text that would be sent; refuses what no queue takes. */
  #messageOf(letter: Letter, edit: Edit | null, queue: string): string {
    const { settings } = this.#parts
    const content = edit?.payload ?? letter.editedPayload ?? letter.payload
    const payload = settings.mark ? marked(content, letter.id, letter.version) : content
    return textOf(
      payload,
      settings.queues.encoding === 'as-found' ? letter.encoding : settings.queues.encoding,
      queue,
    )
  }

  /** What a preview shows: the bytes that the engine would get. */
  contentOf(letter: Pick<Letter, 'id' | 'version'>, content: Uint8Array): Uint8Array {
    return this.#parts.settings.mark ? marked(content, letter.id, letter.version) : content
  }
}

/** What the office says when the account did not take a message. */
export function refusalOf(trouble: AzureTrouble, queue: string): BartlebyError {
  if (trouble.kind === 'gone') return failure('letter_queue_gone', { queue })
  if (trouble.kind === 'refused') return failure('letter_message_refused', { reason: trouble.message })
  return failure('letter_azure_away', { reason: trouble.message })
}

/** Letters that an act takes out of the hands of a send; refuses while one is under way. */
export async function letBe(tx: Transaction, ids: readonly LetterId[]): Promise<void> {
  const rows = await entitiesOf(tx, ids)
  if ([...rows.values()].some(isHeld)) throw failure('letter_entity_busy')
  await putAtRest(tx, ids)
}
