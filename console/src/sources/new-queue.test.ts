import { describe, expect, it } from 'vitest'
import { ERRORS } from '../../../src/core/errors.ts'
import { createCommand, FRESH, fieldOf, requestOf } from './new-queue.ts'

describe('a refusal to create a queue', () => {
  it.each([
    ['queue_name_whitespace', 'name'],
    ['queue_exists', 'name'],
    ['lease_timeout_malformed', 'leaseTimeout'],
    ['lease_exceeds_expire', 'leaseTimeout'],
    ['expire_timeout_empty', 'expireTimeout'],
    ['max_attempts_too_large', 'maxAttempts'],
    ['partitions_too_many', 'partitions'],
    ['dead_queue_tilde', 'deadQueue'],
    ['dead_queue_unknown', 'deadQueue'],
    ['dead_queue_chained', 'deadQueue'],
    ['on_death_invalid', 'onDeath'],
    ['reference_too_long', 'reference'],
  ] as const)('%s is shown at %s', (code, field) => {
    const reason = ERRORS[code].message
    expect(fieldOf(reason)).toEqual({ field, reason })
  })

  it('that is about no field is shown beside them', () => {
    const { message } = ERRORS.store_write_failed
    expect(fieldOf(message)).toEqual({ field: null, reason: message })
  })
})

describe('a new queue', () => {
  const queue = {
    ...FRESH,
    name: 'orders',
    maxAttempts: 3,
    deadQueue: 'orders-dead',
    reference: "the shop's",
  }

  it('is sent with all its settings', () => {
    expect(requestOf(queue)).toEqual({
      queue_name: 'orders',
      lease_timeout: '1m',
      expire_timeout: '24h',
      max_attempts: 3,
      requested_partitions: 1,
      dead_queue: 'orders-dead',
      on_death: 'letter',
      reference: "the shop's",
    })
  })

  it('has a command that does the same, with what is as usual left out', () => {
    expect(createCommand(queue)).toBe(
      "bartleby queues create orders --max-attempts 3 --dead-queue orders-dead --reference 'the shop'\\''s'",
    )
    expect(createCommand({ ...FRESH, name: 'ticks', onDeath: 'delete' })).toBe(
      'bartleby queues create ticks --on-death delete',
    )
    expect(createCommand(FRESH)).toBe('bartleby queues create NAME')
  })
})
