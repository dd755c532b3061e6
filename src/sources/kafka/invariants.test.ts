import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { KafkaWorld } from '../../../test/world/kafka/world.ts'
import { stores } from '../../../test/world/stores.ts'
import { verifyStore } from '../../verify/verify.ts'
import type { StoredEvent } from './stored-event.ts'

/** The events of the store that is broken. */
interface Fates {
  readonly pending: StoredEvent
  readonly published: StoredEvent
  readonly uncertain: StoredEvent
  readonly publishing: StoredEvent
  readonly discarded: StoredEvent
  /** Died three times. */
  readonly chained: StoredEvent
}

interface Breakage {
  readonly title: string
  readonly breaks: readonly string[]
  readonly sql: (fates: Fates) => string
  readonly mend: (fates: Fates) => string
  /** What the first row says. */
  readonly row?: (fates: Fates) => Record<string, string>
}

const event = (set: string, { letterId }: StoredEvent): string =>
  `UPDATE bartleby.kafka_events SET ${set} WHERE letter_id = ${letterId};`
const letter = (set: string, { letterId }: StoredEvent): string =>
  `UPDATE bartleby.letters SET ${set} WHERE id = ${letterId};`
const partition = (set: string): string =>
  `UPDATE bartleby.kafka_partitions SET ${set} WHERE topic = 'wps_dlq';`
const send = (set: string, { letterId }: StoredEvent): string =>
  `UPDATE bartleby.kafka_sends SET ${set} WHERE letter_id = ${letterId};`

const BREAKAGES: readonly Breakage[] = [
  {
    title: 'a letter without its event, and an event without its letter',
    breaks: ['K1', 'K2'],
    sql: ({ pending }) => event('letter_id = -letter_id', pending),
    mend: ({ pending }) =>
      `UPDATE bartleby.kafka_events SET letter_id = -letter_id WHERE letter_id = -${pending.letterId};`,
    row: ({ pending }) => ({ letter: `-${pending.letterId}`, event: pending.dlqId }),
  },
  {
    title: 'an event that is discarded while its letter is pending',
    breaks: ['K1'],
    sql: ({ pending }) => event('state = 5', pending),
    mend: ({ pending }) => event('state = 0', pending),
    row: ({ pending }) => ({ letter: String(pending.letterId), status: 'Pending', state: 'discarded' }),
  },
  {
    title: 'an event that is pending while its letter is resolved',
    breaks: ['K1'],
    sql: ({ discarded }) => event('state = 0', discarded),
    mend: ({ discarded }) => event('state = 5', discarded),
    row: ({ discarded }) => ({ letter: String(discarded.letterId), resolution: 'discard', state: 'pending' }),
  },
  {
    title: 'a letter that is not marked while its event is on its way',
    breaks: ['K1'],
    sql: ({ publishing }) => letter('leased = 0', publishing),
    mend: ({ publishing }) => letter('leased = 1', publishing),
    row: ({ publishing }) => ({ letter: String(publishing.letterId), leased: '0', state: 'publishing' }),
  },
  {
    title: 'an event in another queue than its letter',
    breaks: ['K1'],
    sql: ({ pending }) => event("service = 'ucs'", pending),
    mend: ({ pending }) => event("service = 'wps'", pending),
    row: ({ pending }) => ({ letter: String(pending.letterId), queue: 'wps/orders', event: 'ucs/orders' }),
  },
  {
    title: 'a record that was received and is nowhere',
    breaks: ['K2'],
    sql: () => partition('received = received + 1'),
    mend: () => partition('received = received - 1'),
    row: () => ({ partition: 'wps_dlq:0', received: '9', duplicates: '1' }),
  },
  {
    title: 'a record that became a letter and is not in the register',
    breaks: ['K2'],
    sql: () => partition('created = created + 1, received = received + 1'),
    mend: () => partition('created = created - 1, received = received - 1'),
    row: () => ({ partition: 'wps_dlq:0', created: '6', reopened: '2', records: '7' }),
  },
  {
    title: 'records of a partition without books',
    breaks: ['K2'],
    sql: () => `UPDATE bartleby.kafka_partitions SET topic = 'wps_other' WHERE topic = 'wps_dlq';`,
    mend: () => `UPDATE bartleby.kafka_partitions SET topic = 'wps_dlq' WHERE topic = 'wps_other';`,
  },
  {
    title: 'an event whose record is that of another letter',
    breaks: ['K2'],
    sql: ({ pending }) =>
      `UPDATE bartleby.kafka_records SET letter_id = -letter_id WHERE dlq_id = '${pending.dlqId}';`,
    mend: ({ pending }) =>
      `UPDATE bartleby.kafka_records SET letter_id = -letter_id WHERE dlq_id = '${pending.dlqId}';`,
    row: ({ pending }) => ({ letter: String(pending.letterId), event: pending.dlqId }),
  },
  {
    title: 'two events of a service on their way',
    breaks: ['K1', 'K3', 'S1'],
    sql: ({ pending }) => `DROP INDEX bartleby.kafka_in_flight; ${event('state = 1', pending)}`,
    mend: ({ pending }) => `${event('state = 0', pending)}
      CREATE UNIQUE INDEX kafka_in_flight ON bartleby.kafka_events (service) WHERE state IN (1, 2);`,
    row: ({ pending }) => ({ letter: String(pending.letterId), state: 'claimed' }),
  },
  {
    title: 'a published event whose publish is uncertain',
    breaks: ['K3'],
    sql: ({ published }) => send('outcome = 1', published),
    mend: ({ published }) => send('outcome = 2', published),
    row: ({ published }) => ({ letter: String(published.letterId), state: '4' }),
  },
  {
    title: 'an uncertain event whose publish is published',
    breaks: ['K3'],
    sql: ({ uncertain }) => send('outcome = 2', uncertain),
    mend: ({ uncertain }) => send('outcome = 1', uncertain),
    row: ({ uncertain }) => ({ letter: String(uncertain.letterId), state: '3' }),
  },
  {
    title: 'a letter that was sent under another id than its event',
    breaks: ['K3'],
    sql: ({ published }) => letter("sent_as = 'x' || sent_as", published),
    mend: ({ published }) => letter('sent_as = substr(sent_as, 2)', published),
    row: ({ published }) => ({ letter: String(published.letterId) }),
  },
  {
    title: 'a chain that misses a record',
    breaks: ['K3'],
    sql: ({ chained }) => `UPDATE bartleby.kafka_chain SET letter_id = -letter_id
      WHERE letter_id = ${chained.letterId} AND number = 1;`,
    mend: () => 'UPDATE bartleby.kafka_chain SET letter_id = -letter_id WHERE letter_id < 0;',
    row: ({ chained }) => ({ letter: String(chained.letterId), attempts: '3', links: '1' }),
  },
  {
    title: 'a publish of a letter that has no event',
    breaks: ['K3'],
    sql: ({ discarded }) => send('letter_id = -letter_id', discarded),
    mend: ({ discarded }) =>
      `UPDATE bartleby.kafka_sends SET letter_id = -letter_id WHERE letter_id = -${discarded.letterId};`,
    row: ({ discarded }) => ({ letter: `-${discarded.letterId}` }),
  },
]

describe.each(stores)('what verify says of Kafka on $name', (kind) => {
  let kafka: KafkaWorld
  let fates: Fates

  beforeAll(async () => {
    kafka = await KafkaWorld.open(kind)
    const first = kafka.record()
    await kafka.take(first, first)
    const pending = await kafka.eventAt(first)
    const published = await kafka.dead()
    await kafka.publish(published)
    const uncertain = await kafka.dead({ topic: 'ucs_dlq', service: 'ucs' })
    await kafka.uncertain(uncertain, await kafka.publishing(uncertain))
    const discarded = await kafka.dead()
    await kafka.publish(discarded)
    await kafka.change(discarded, 'Pending')
    await kafka.change(discarded, 'Resolved')
    const chained = await kafka.dead()
    for (let i = 0; i < 2; i++) {
      await kafka.take(kafka.record({ originalEventId: await kafka.publish(chained) }))
    }
    const publishing = await kafka.dead()
    await kafka.publishing(publishing)
    fates = { pending, published, uncertain, publishing, discarded, chained }
  })

  afterAll(() => kafka?.close())

  const run = (text: string): Promise<void> =>
    kafka.db.transaction('test', (tx) =>
      kafka.db.script(tx, tx.dialect === 'sqlite' ? text.replaceAll('bartleby.', '') : text),
    )

  it('is that it keeps its promises', async () => {
    await kafka.expectVerified()
  })

  it.each(BREAKAGES)('is $breaks with $title', async ({ sql, mend, breaks, row }) => {
    await run(sql(fates))
    try {
      const { invariants } = await verifyStore(kafka.db, { clock: kafka.clock })
      const broken = invariants.filter((each) => each.broken > 0)
      expect(broken.map(({ invariant }) => invariant)).toEqual(breaks)
      const found = broken.find(({ invariant }) => invariant === breaks[0])
      if (row !== undefined) expect(found?.violations[0]).toMatchObject({ row: row(fates) })
    } finally {
      await run(mend(fates))
    }
    await kafka.expectVerified()
  })
})
