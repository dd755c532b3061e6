import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BartlebyError } from '../core/errors.ts'
import type { QueueInfo } from './queue.ts'
import {
  checkComplete,
  checkDeadQueueName,
  checkLease,
  checkListQueues,
  checkLookupName,
  checkMerged,
  checkNewQueueName,
  checkProduce,
  checkQueueName,
  checkRetry,
  listLimit,
  parseExtension,
  parseSettings,
  peekLimit,
} from './validate.ts'

function codeOf(check: () => unknown): string {
  try {
    check()
    return 'fine'
  } catch (error) {
    if (error instanceof BartlebyError) return error.code
    throw error
  }
}

const items = (count: number) => Array.from({ length: count }, () => ({}))
const ids = (count: number) => Array.from({ length: count }, String)
const produce = (requestTimeout: string | undefined, count = 1) =>
  codeOf(() =>
    checkProduce({
      queueName: 'q',
      ...(requestTimeout === undefined ? {} : { requestTimeout }),
      items: items(count),
    }),
  )
const lease = (requestTimeout: string, clientId = 'c', batchSize = 1) =>
  codeOf(() => checkLease({ queueName: 'q', clientId, batchSize, requestTimeout }))
const complete = (requestTimeout: string, count = 1) =>
  codeOf(() => checkComplete({ queueName: 'q', requestTimeout, ids: ids(count) }))

describe('request timeouts', () => {
  it('of produce are more than 10 ms and less than 15 m', () => {
    expect(['10ms', '10.001ms', '14m59.999s', '15m'].map((text) => produce(text))).toEqual([
      'request_timeout_too_short',
      'fine',
      'fine',
      'request_timeout_too_long',
    ])
  })

  it('of lease and complete may be 15 m', () => {
    expect([lease('15m'), lease('15m1ns'), complete('15m'), complete('15m1ns'), complete('1ns')]).toEqual([
      'fine',
      'request_timeout_too_long',
      'fine',
      'request_timeout_too_long',
      'fine',
    ])
  })

  it('may be left out in the library, but not be empty or zero', () => {
    expect(produce(undefined)).toBe('fine')
    for (const text of ['', '0', '0ms']) {
      expect([produce(text), lease(text), complete(text)]).toEqual(Array(3).fill('request_timeout_required'))
    }
  })
})

describe('the first failure', () => {
  it('of produce: form of the timeout, its range, number of items', () => {
    expect(produce('5x', 0)).toBe('request_timeout_malformed')
    expect(produce('16m', 0)).toBe('request_timeout_too_long')
    expect(produce('5s', 0)).toBe('produce_empty')
    expect(produce('5s', 1_001)).toBe('produce_too_many')
    expect(produce('5s', 1_000)).toBe('fine')
  })

  it('of lease: form of the timeout, client, batch, range of the timeout', () => {
    expect(lease('5x', ' ', 0)).toBe('request_timeout_malformed')
    expect(lease('16m', ' \t', 0)).toBe('client_id_empty')
    expect(lease('16m', 'c', 0)).toBe('batch_size_too_small')
    expect(lease('16m', 'c', 1_001)).toBe('batch_size_too_large')
    expect(lease('', 'c', 1_000)).toBe('request_timeout_required')
  })

  it('of complete: form of the timeout, number of ids, range of the timeout', () => {
    expect(complete('5x', 0)).toBe('request_timeout_malformed')
    expect(complete('16m', 0)).toBe('complete_empty')
    expect(complete('16m', 1_001)).toBe('complete_too_many')
    expect(codeOf(() => checkRetry({ queueName: 'q', items: [] }))).toBe('retry_empty')
  })
})

describe('names of queues', () => {
  it('are looked up leniently and made strictly', () => {
    expect(codeOf(() => checkLookupName('two words'))).toBe('fine')
    expect(codeOf(() => checkLookupName('\u3000'))).toBe('queue_name_empty')
    expect(codeOf(() => checkLookupName('a~b'))).toBe('queue_name_tilde')
    expect(codeOf(() => checkQueueName('two words'))).toBe('queue_name_whitespace')
    expect(codeOf(() => checkQueueName(`${'ü'.repeat(256)}x`))).toBe('queue_name_too_long')
    expect(codeOf(() => checkQueueName('ü'.repeat(256)))).toBe('fine')
  })

  it('have no control characters when they are made; those of earlier versions can still be deleted', () => {
    for (const name of ['\u001b[2J', 'a\u0001b', 'a\u007f']) {
      expect(codeOf(() => checkNewQueueName(name))).toBe('queue_name_control')
      expect(codeOf(() => checkQueueName(name))).toBe('fine')
    }
  })

  it('of dead queues: length, white space, tilde, itself', () => {
    expect(codeOf(() => checkDeadQueueName('x'.repeat(501), 'q'))).toBe('dead_queue_too_long')
    expect(codeOf(() => checkDeadQueueName('a b~', 'q'))).toBe('dead_queue_whitespace')
    expect(codeOf(() => checkDeadQueueName('a~', 'q'))).toBe('dead_queue_tilde')
    expect(codeOf(() => checkDeadQueueName('q', 'q'))).toBe('dead_queue_self')
  })
})

describe('settings', () => {
  const merged: QueueInfo = {
    queueName: 'q',
    // The two times play no part in the checks.
    createdAt: 0n as QueueInfo['createdAt'],
    updatedAt: 0n as QueueInfo['updatedAt'],
    leaseTimeoutNs: 1_000n,
    expireTimeoutNs: 1_000n,
    deadQueue: '',
    reference: '',
    maxAttempts: 0,
    requestedPartitions: 1,
    namespace: '_system',
    onDeath: 'letter',
  }
  const check = (change: Partial<QueueInfo>, isNew = true) =>
    codeOf(() => checkMerged({ ...merged, ...change }, isNew))

  it('have timeouts of at least a microsecond when they are new, and never negative ones', () => {
    expect(check({})).toBe('fine')
    expect(check({ leaseTimeoutNs: 999n })).toBe('lease_timeout_empty')
    expect(check({ expireTimeoutNs: 0n })).toBe('expire_timeout_empty')
    expect(check({ leaseTimeoutNs: -1n })).toBe('lease_timeout_negative')
    expect(check({ expireTimeoutNs: -1n }, false)).toBe('expire_timeout_negative')
    expect(check({ leaseTimeoutNs: 1_001n })).toBe('lease_exceeds_expire')
  })

  it('have bounded attempts, partitions and references', () => {
    expect(check({ maxAttempts: 65_536 })).toBe('fine')
    expect(check({ maxAttempts: 65_537 })).toBe('max_attempts_too_large')
    expect(check({ maxAttempts: -1 })).toBe('max_attempts_negative')
    expect(check({ requestedPartitions: 0 })).toBe('partitions_too_few')
    expect(check({ reference: 'x'.repeat(2_001), maxAttempts: -1 })).toBe('reference_too_long')
  })

  it('say which timeout is malformed, expire_timeout first', () => {
    const parse = (leaseTimeout: string, expireTimeout: string) =>
      codeOf(() => parseSettings({ queueName: 'q', leaseTimeout, expireTimeout }))
    expect(parse('x', 'x')).toBe('expire_timeout_malformed')
    expect(parse('x', '1m')).toBe('lease_timeout_malformed')
    expect(parse('1111111111111111', 'x')).toBe('lease_timeout_too_long_text')
  })
})

describe('pages and limits', () => {
  it('default to 1000 items and 10 peeked', () => {
    expect([
      listLimit(undefined),
      listLimit(0),
      listLimit(20_000),
      peekLimit(undefined),
      peekLimit(0),
    ]).toEqual([1_000, 1_000, 20_000, 10, 10])
    expect(codeOf(() => peekLimit(1_001))).toBe('limit_too_large')
    expect(codeOf(() => checkListQueues({ limit: 65_537, pivot: '~' }))).toBe('limit_too_large')
    expect(codeOf(() => checkListQueues({ limit: -1, pivot: '~' }))).toBe('limit_negative')
    expect(codeOf(() => checkListQueues({ pivot: '~' }))).toBe('pivot_tilde')
  })

  it('an extension without a timeout takes the queue’s own', () => {
    expect([parseExtension(undefined), parseExtension(''), parseExtension('0s')]).toEqual([null, null, null])
    expect(parseExtension('2s')).toBe(2_000_000_000n)
    expect(codeOf(() => parseExtension('-2s'))).toBe('lease_timeout_negative')
  })
})

it('whatever is asked, a check passes or names its code', () => {
  const anything = fc.oneof(fc.string(), fc.constantFrom('', '5m', '-1s', '9999999h', '1e3s'))
  fc.assert(
    fc.property(anything, anything, fc.integer(), (one, other, number): void => {
      codeOf(() => checkLease({ queueName: one, clientId: other, batchSize: number, requestTimeout: one }))
      codeOf(() =>
        parseSettings({ queueName: one, leaseTimeout: other, expireTimeout: one, namespace: other }),
      )
      codeOf(() => checkListQueues({ pivot: one, limit: number, namespace: other }))
      codeOf(() => checkDeadQueueName(one, other))
    }),
  )
})
