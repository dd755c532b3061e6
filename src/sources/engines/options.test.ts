import { describe, expect, it } from 'vitest'
import { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { type EngineOptions, termsOf } from './options.ts'

const directory = new EngineDirectory({ context: 'publisher' })
const least: EngineOptions = { name: 'hmac', operation: 'rotate', handler: () => null }
const terms = (changes: object = {}) => termsOf(directory, { ...least, ...changes })

describe('the options of an engine that is not defined', () => {
  const open = new EngineDirectory({ definitions: { billing: { queue: 'invoices', operations: ['issue'] } } })
  const openTerms = (changes: object) => termsOf(open, { ...least, name: 'mail', ...changes })

  it('may name its queue, which has its name otherwise, and any operation', () => {
    expect(openTerms({ operation: 'any-thing' })).toMatchObject({ name: 'mail', queueName: 'mail' })
    expect(openTerms({ queue: 'Outgoing.Mail' })).toMatchObject({ queueName: 'Outgoing.Mail' })
  })

  it.each([
    [{ name: 'queues' }, "engine option name: 'queues' is not allowed; allowed: a name that is not one of"],
    [{ name: 'engines' }, /'engines' is one of Bartleby's own names/],
    [{ name: 'Mail' }, /an engine's name is 1 to 64/],
    [{ queue: 'a b' }, /queue name is invalid/],
    [{ queue: 7 }, "engine option queue: '7' is not allowed"],
    [{ operation: 'Send' }, /an operation's name is/],
    [{ operation: 'retry' }, /'retry' is an act on letters/],
    [
      { name: 'billing', operation: 'issue', queue: 'other' },
      "engine option queue: 'other' is not allowed; allowed: leaving it out; the queue of 'billing' is defined as 'invoices'",
    ],
  ])('%j is refused', (changes, reason) => {
    expect(() => openTerms(changes)).toThrow(reason)
  })

  it('is held to its definition once it has one', () => {
    const own = openTerms({ name: 'billing', operation: 'issue', queue: 'invoices' })
    expect(own).toMatchObject({ queueName: 'invoices' })
  })
})

describe('the options of an engine', () => {
  it('have defaults for all but name, operation and handler', () => {
    expect(terms()).toMatchObject({
      queueName: 'hmac-rotation-queue',
      maxAttempts: 5,
      backoff: { baseMs: 10_000, factor: 2, maxMs: 600_000, jitter: 0.2 },
      concurrency: 8,
      timeoutUs: 120_000_000n,
    })
  })

  it.each([
    [{ name: 'nope' }, /^engine is unknown; 'nope' is none of provisioning, hmac, /],
    [
      { name: 'update-publisher', operation: 'notify' },
      /^engine option name: 'update-publisher' is not allowed/,
    ],
    [{ name: 'kafka' }, /^engine option name: 'kafka' is not allowed/],
    [{ operation: 'renew' }, "operation is unknown; 'renew' is none of rotate, notify"],
    [{ operation: 'capture' }, "operation is unknown; 'capture' is none of rotate, notify"],
    [{ handler: 'x' }, 'engine option handler: '],
    [{ instanceId: 'x' }, 'engine option instanceId: '],
    [
      { maxAttempts: 0 },
      "engine option maxAttempts: '0' is not allowed; allowed: a whole number from 1 to 65536",
    ],
    [{ maxAttempts: 1.5 }, 'engine option maxAttempts: '],
    [{ concurrency: 0 }, 'engine option concurrency: '],
    [
      { concurrency: 1_001 },
      "engine option concurrency: '1001' is not allowed; allowed: a whole number from 1 to 1000",
    ],
    [
      { timeout: '2 minutes' },
      "engine option timeout: '2 minutes' is not allowed; allowed: a duration above zero",
    ],
    [{ timeout: '0s' }, 'engine option timeout: '],
    [{ timeout: 5 }, 'engine option timeout: '],
    [{ retries: 3 }, 'engine option retries: unknown key; known keys here: name, queue, operation, '],
    [{ maxAttempt: 3 }, "engine option maxAttempt: unknown key; did you mean 'maxAttempts'?"],
    [
      { backoff: { minimum: '1s' } },
      'engine option backoff.minimum: unknown key; known keys here: base, factor, max, jitter',
    ],
    [
      { backoff: '10s' },
      "engine option backoff: '10s' is not allowed; allowed: an object with base, factor, max and jitter",
    ],
    [{ backoff: { base: '-1s' } }, 'engine option backoff.base: '],
    [{ backoff: { base: '1m', max: '10s' } }, "engine option backoff.max: '10s' is not allowed"],
    [{ backoff: { factor: 0.5 } }, 'engine option backoff.factor: '],
    [{ backoff: { factor: Number.NaN } }, 'engine option backoff.factor: '],
    [
      { backoff: { jitter: 1.1 } },
      "engine option backoff.jitter: '1.1' is not allowed; allowed: a number from 0 to 1",
    ],
  ])('refuse %o by name', (changes, problem) => {
    expect(() => terms(changes)).toThrow(problem)
  })
})
