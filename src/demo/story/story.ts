/**
 * The story of a demo, an invented shop whose messages fail, and the part of each source in it. Parts lie with their
 * sources; the demo stands above all sources and knows none.
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

export interface Occasion {
  /** The same in the past of every demo, never in the present. */
  readonly chance: Chance
  readonly now: Instant
}

export interface DemoStory extends Occasion {
  isOut(who: string): boolean
  /** A partner on this machine; null answers well. Gives its address. */
  partner(path: string, replyTo: (body: string) => PartnerReply | null): string
  /** In the past. */
  passTime(us: bigint): void
  /** Lets time pass until it is so, or gives up: it is a demo's past. */
  until(isSo: () => Promise<boolean>): Promise<void>
}

export interface PartnerReply {
  readonly status: number
  readonly text: string
}

/** The office, beside what a part's source adds to it. */
export interface DemoOffice {
  readonly queues: Queues
  readonly letters: Letters
  readonly clock: Clock
}

/** A source's part of the demo; loaded for that alone. */
export interface SourceDemo<Section = never, Face extends object = object> {
  /** Its section of the configuration. Left out: the user's. */
  section?(given: Section, story: DemoStory): Section
  readonly signatures?: DemoSignatures
  /** A store has something of it that is neither letter nor queue. */
  isInUse?(session: Session): Promise<boolean>
  /** Makes the queues it needs. Nothing runs before it is started. */
  open(office: DemoOffice & Face, story: DemoStory): DemoPart | Promise<DemoPart>
}

/** Groups that a tour of the demo leads to. */
export interface DemoSignatures {
  /** Retries succeed. */
  readonly healingSignature: string
  /** Its cause brings many at once. */
  readonly stormSignature: string
}

/** Starting and stopping are for its workers and consumers in the present. */
export interface DemoPart extends Partial<Service> {
  /** In the present: every other second one of all parts' by weight. Those of the shop add up to 100. */
  readonly happens?: readonly (Weighted & { act(): Promise<unknown> })[]
  /** Now and then something unusual. */
  rarity?(): Promise<unknown>
  /** Deaths in the past, by weight; null: it dies later, by itself. */
  readonly died?: readonly (Weighted & { act(): Promise<PastGroup | null> })[]
  /** Every hour of the past, a success. */
  wentWell?(): Promise<unknown>
  /** Deaths shortly before the visitor comes, in turn. */
  readonly lessons?: readonly (() => Promise<unknown>)[]
  readonly outages?: readonly Outage[]
  /** While the payment gateway is out. */
  readonly storm?: { now(count: number): Promise<unknown>; past(count: number): Promise<PastGroup> }
  /** A connection is at work: time that passes would be its time-out. */
  isBusy?(): boolean
}

interface Weighted {
  readonly weight: number
}

export interface Outage {
  readonly who: string
  readonly fromSecond: number
  readonly toSecond: number
  /** Of every ten hours of the past. */
  readonly past?: { readonly hour: number; died(count: number): Promise<PastGroup> }
}

/** Letters that died together, and the work that a retry brings. */
export interface PastGroup {
  readonly letters: readonly LetterSummary[]
  /** Null: no way back. */
  readonly workOn: (() => Promise<unknown>) | null
}

/** Out in the storm. */
export const GATEWAY = 'gateway'

/** Reference of a demo's queues, by which its store is known. */
export const MARK = 'bartleby demo: everything in this store is invented'

type QueueTerms = Pick<QueueSettings, 'queueName' | 'leaseTimeout' | 'expireTimeout'> & Partial<QueueSettings>

export async function makeQueues({ queues }: DemoOffice, wanted: readonly QueueTerms[]): Promise<void> {
  const known = new Set((await queues.list()).map(({ queueName }) => queueName))
  for (const queue of wanted)
    if (!known.has(queue.queueName))
      await queues.create({ requestedPartitions: 1, reference: MARK, ...queue })
}

const LONGEST_LEASE_MS = 30_000

/** In the past. */
export async function leaseInPast(
  { queues }: DemoOffice,
  queueName: string,
  batchSize: number,
): Promise<readonly LeasedItem[]> {
  const request = { queueName, clientId: 'demo-past', batchSize }
  // With nothing there, time that stands still would never end the wait.
  const { items } = await queues.lease(request, AbortSignal.timeout(LONGEST_LEASE_MS))
  return items
}

/** Messages to a partner that is out, waited for until they are letters. */
export async function dieAtPartner(
  { letters }: DemoOffice,
  story: DemoStory,
  { source, count, send }: { source: SourceName; count: number; send: () => Promise<unknown> },
): Promise<PastGroup> {
  const captured = async (): Promise<number> => {
    const { totals } = await letters.numbers.counts({ source }, ['source'])
    return totals.Pending + totals.Resolved + totals.Expired
  }
  const before = await captured()
  for (let sent = 0; sent < count; sent++) await send()
  await story.until(async () => (await captured()) >= before + count)
  const { items } = await letters.list({ source, status: 'Pending' }, { limit: count })
  // Only these may still be on their way.
  const isConfirmed = async () => (await letters.numbers.summary()).unconfirmed === 0
  return { letters: items, workOn: () => story.until(isConfirmed) }
}
