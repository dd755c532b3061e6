import { describe, expect, it } from 'vitest'
import { servicesWith } from './kafka-services.ts'

const listed = (name: string) => ({
  name,
  dlqTopic: `${name}_dlq`,
  retryTopic: `retry-${name}`,
  profile: 'hexkit',
  aliases: [],
  originalTopics: [],
  types: [],
})

describe('services of Kafka', () => {
  it('have the pending letters of their topics; those that are not listed come last', () => {
    const counts = {
      items: [
        { originalQueue: '~unknown/~unknown', count: 2 },
        { originalQueue: 'wps/orders', count: 6 },
        { originalQueue: 'wps/users', count: 3 },
        { originalQueue: null, count: 1 },
      ],
      totals: { Pending: 12, Resolved: 0, Expired: 0 },
    }
    const rows = servicesWith([listed('ifrs'), listed('wps')], counts)
    expect(rows.map(({ name, pending, settings }) => [name, pending, settings?.dlqTopic ?? null])).toEqual([
      ['ifrs', 0, 'ifrs_dlq'],
      ['wps', 9, 'wps_dlq'],
      ['~unknown', 2, null],
    ])
    expect(rows[1]?.topics).toEqual([
      { queue: 'wps/orders', topic: 'orders', pending: 6 },
      { queue: 'wps/users', topic: 'users', pending: 3 },
    ])
  })
})
