/**
 * Broadcasts: a message is answered when it and its jobs are durable. Those of the same moment share a transaction; of equal ids of a
 * channel one is accepted, whichever server it came to.
 */

import { Batcher } from '../../../core/batcher.ts'
import type { Instant } from '../../../core/clock.ts'
import type { Xid } from '../../../core/xid.ts'
import { StoreUnavailable } from '../../../store/database.ts'
import { CountChanges } from '../numbers/counts.ts'
import { Refused } from '../refusal.ts'
import { checkTexts, given } from '../registry/texts.ts'
import type { Parts } from '../settings.ts'
import type { MessageContent } from '../webhook.ts'
import { insertJobs, jobBlock, pushedTo, readAudience } from './dispatch.ts'
import { insertMessages, type NewMessage, storedAmong } from './message-insert.ts'
import { type Credentials, type Sender, Senders } from './senders.ts'

export type { Credentials, Sender } from './senders.ts'

type BroadcastParts = Pick<Parts, 'db' | 'clock' | 'xids' | 'onJobs'>

export interface MessageDraft {
  /** Null: a new one is made. */
  readonly messageId: string | null
  readonly content: MessageContent
  /** Null: at once. */
  readonly scheduledFor: Instant | null
}

/** Of one transaction: about 16 MB of payload, or 5,000 jobs, which are some 50 ms on SQLite. */
const MOST_WEIGHT = 16_000_000
const WEIGHT_OF_JOB = 3_200
const MOST_MESSAGES = 500

export class Broadcasts {
  readonly #parts: BroadcastParts
  readonly #senders: Senders
  readonly #storing: Batcher<NewMessage, boolean>
  /** Consumers per channel as last seen, for the weight of batches. */
  readonly #audiences = new Map<number, number>()

  constructor(parts: BroadcastParts) {
    this.#parts = parts
    this.#senders = new Senders(parts.db)
    this.#storing = new Batcher((messages) => this.#store(messages), {
      atOnce: parts.db.dialect === 'postgres' ? 2 : 1,
      most: MOST_MESSAGES,
      mostWeight: MOST_WEIGHT,
      meetsAll: (error) => error instanceof StoreUnavailable,
    })
  }

  authorise(credentials: Credentials): Promise<Sender> {
    return this.#senders.authorise(credentials)
  }

  /** Durable when it returns, with its jobs unless it is for later. */
  async accept(sender: Sender, draft: MessageDraft) {
    const { content, scheduledFor } = draft
    if (content.payload.length === 0) throw new Refused('body_empty')
    const id = this.#parts.xids.next()
    const messageId = given(draft.messageId) ?? id
    checkTexts(messageId)
    const { channel, producer } = sender
    const message = { id, channel, messageId, producer, content, scheduledFor }
    const scheduled = scheduledFor !== null
    const jobs = scheduled ? 0 : (this.#audiences.get(channel) ?? 0)
    const stored = await this.#storing.do(message, content.payload.length + jobs * WEIGHT_OF_JOB)
    if (!stored) throw new Refused(scheduled ? 'scheduled_duplicate' : 'message_duplicate')
    return { messageId, scheduled }
  }

  idle(): Promise<void> {
    return this.#storing.idle()
  }

  /** False where the id was taken. */
  async #store(messages: readonly NewMessage[]): Promise<readonly boolean[]> {
    const { db, clock, xids, onJobs } = this.#parts
    const { stored, audience, pushed } = await db.transaction('webhooks.broadcast', async (tx) => {
      const immediate = messages.filter(({ scheduledFor }) => scheduledFor === null)
      const audience = await readAudience(
        tx,
        immediate.map(({ channel }) => channel),
      )
      const now = clock.now()
      const placed = messages.map((message) => {
        const { id, channel, content, scheduledFor } = message
        const { priority } = content
        const jobs = scheduledFor === null ? jobBlock(xids, audience, { id, channel, priority }) : null
        return { ...message, jobs }
      })
      const inserted = await insertMessages(tx, now, placed)
      const counts = new CountChanges()
      const fresh = placed.filter(({ id }) => inserted.has(id))
      for (const { channel, jobs } of fresh)
        counts.add(channel, jobs === null ? 'scheduled' : 'dispatched', 1)
      const blocks = fresh.flatMap(({ jobs }) => jobs ?? [])
      await insertJobs(tx, now, blocks, counts)
      counts.write(tx)
      // A commit without an answer may have happened: then the message in the way is this very one.
      const refused = messages.map(({ id }) => id).filter((id) => !inserted.has(id))
      const stored: ReadonlySet<Xid> = new Set([...inserted, ...(await storedAmong(tx, refused))])
      return { stored, audience, pushed: pushedTo(blocks) }
    })
    for (const [channel, addressees] of audience) this.#audiences.set(channel, addressees.length)
    if (pushed.size > 0) onJobs(pushed)
    return messages.map(({ id }) => stored.has(id))
  }
}
