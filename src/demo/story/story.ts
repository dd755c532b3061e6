/**
 * The story that a demo tells, an invented shop whose messages fail, and the part that each source has in it. Parts stand on this floor
 * and lie with their sources; the demo itself stands above all sources and knows none of them.
 */
import type { Clock, Instant } from '../../core/clock.ts'
import type { Service } from '../../core/rounds.ts'
import type { SourceName } from '../../letters/kinds.ts'
import type { LetterSummary } from '../../letters/letter.ts'
import type { Letters } from '../../letters/letters.ts'
import type { LeasedItem, QueueSettings } from '../../queues/queue.ts'
import type { Queues } from '../../queues/queues.ts'
import type { Session } from '../../store/database.ts'
import type { Chance } from './chance.ts'

/** A moment at which something is made up. */
export interface Occasion {
  /** Repeats itself in the past of every demo, and never in the present. */
  readonly chance: Chance
  readonly now: Instant
}

/** What all parts share. */
export interface DemoStory extends Occasion {
  /** Whether somebody is out of order. */
  isOut(who: string): boolean
  /** A partner of the shop on this machine, who answers as told, and else well; gives the address. */
  partner(path: string, replyTo: (body: string) => PartnerReply | null): string
  /** Lets time pass in the past. */
  passTime(us: bigint): void
  /** Lets it pass until it is so. What does not come about stays as it is: it is a demo's past. */
  until(isSo: () => Promise<boolean>): Promise<void>
}

export interface PartnerReply {
  readonly status: number
  readonly text: string
}

/** What parts have of the office, beside what their source adds to it. */
export interface DemoOffice {
  readonly queues: Queues
  readonly letters: Letters
  readonly clock: Clock
}

/** What a source brings to the demo; loaded for that alone. */
export interface SourceDemo<Section = never, Face extends object = object> {
  /** Its section of the configuration, made of the user's. Left out: the user's. */
  section?(given: Section, story: DemoStory): Section
  /** The groups that visitors are led to. */
  readonly signatures?: DemoSignatures
  /** Whether a store has something of it that is neither letter nor queue. */
  isInUse?(session: Session): Promise<boolean>
  /** Its part in an office that is open, with the queues that it needs. Nothing runs before it is started. */
  open(office: DemoOffice & Face, story: DemoStory): DemoPart | Promise<DemoPart>
}

/** The groups of letters that a tour of the demo leads to. */
export interface DemoSignatures {
  /** Its cause goes away: what is retried succeeds. */
  readonly healingSignature: string
  /** Its cause stays, and brings many at once. */
  readonly stormSignature: string
}

/** The part of a source. What is started and stopped are its workers and consumers in the present. */
export interface DemoPart extends Partial<Service> {
  /** What happens in the present: every other second one of all parts' by weight. Those of the shop add up to 100. */
  readonly happens?: readonly (Weighted & { act(): Promise<unknown> })[]
  /** Now and then, and soon, something unusual. */
  rarity?(): Promise<unknown>
  /** What died in the past, likewise; null: it dies later, by itself. */
  readonly died?: readonly (Weighted & { act(): Promise<PastGroup | null> })[]
  /** Every hour of the past, something that went well. */
  wentWell?(): Promise<unknown>
  /** What dies shortly before the visitor comes, in turn, and is left for them. */
  readonly lessons?: readonly (() => Promise<unknown>)[]
  readonly outages?: readonly Outage[]
  /** What many customers do while the payment gateway is out. */
  readonly storm?: { now(count: number): Promise<unknown>; past(count: number): Promise<PastGroup> }
  /** Whether a connection is at work: time that went on meanwhile would be taken for its time-out. */
  isBusy?(): boolean
}

interface Weighted {
  /** How often, compared with the others. */
  readonly weight: number
}

/** Somebody who is out of order now and then. */
export interface Outage {
  readonly who: string
  /** Of each round of twenty minutes in the present. */
  readonly fromSecond: number
  readonly toSecond: number
  /** Of every ten hours of the past, in which this died. */
  readonly past?: { readonly hour: number; died(count: number): Promise<PastGroup> }
}

/** Letters that died together, and how to do the work that a retry of them brings. */
export interface PastGroup {
  readonly letters: readonly LetterSummary[]
  /** null: there is no way back. */
  readonly workOn: (() => Promise<unknown>) | null
}

/** Who stops answering in the storm. */
export const GATEWAY = 'gateway'

/** What the reference of a demo's queues says: its store is known by that. */
export const MARK = 'bartleby demo: everything in this store is invented'

type QueueTerms = Pick<QueueSettings, 'queueName' | 'leaseTimeout' | 'expireTimeout'> & Partial<QueueSettings>

/** Makes the queues that are missing. */
export async function makeQueues({ queues }: DemoOffice, wanted: readonly QueueTerms[]): Promise<void> {
  const known = new Set((await queues.list()).map(({ queueName }) => queueName))
  for (const queue of wanted)
    if (!known.has(queue.queueName))
      await queues.create({ requestedPartitions: 1, reference: MARK, ...queue })
}

const LONGEST_LEASE_MS = 30_000

/** Items that are there, in the past. */
export async function leaseInPast(
  { queues }: DemoOffice,
  queueName: string,
  batchSize: number,
): Promise<readonly LeasedItem[]> {
  const request = { queueName, clientId: 'demo-past', batchSize }
  // Were there nothing, time that stands still would never end the wait.
  const { items } = await queues.lease(request, AbortSignal.timeout(LONGEST_LEASE_MS))
  return items
}

/** Messages to a partner that is out of order in the past, sent and waited for until they are letters. */
export async function dieAtPartner(
  { letters }: DemoOffice,
  story: DemoStory,
  { source, count, send }: { source: SourceName; count: number; send: () => Promise<unknown> },
): Promise<PastGroup> {
  const captured = async (): Promise<number> => {
    const { totals } = await letters.ledger.counts({ source }, ['source'])
    return totals.Pending + totals.Resolved + totals.Expired
  }
  const before = await captured()
  for (let sent = 0; sent < count; sent++) await send()
  await story.until(async () => (await captured()) >= before + count)
  const { items } = await letters.list({ source, status: 'Pending' }, { limit: count })
  // Of all that were sent back in the past, only these may still be on their way.
  const isConfirmed = async () => (await letters.ledger.standing()).unconfirmed === 0
  return { letters: items, workOn: () => story.until(isConfirmed) }
}
