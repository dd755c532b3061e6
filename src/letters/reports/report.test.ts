import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { EngineDirectory } from '../../queues/engines/engine-directory.ts'
import { readReport } from './report.ts'

const context = {
  engines: new EngineDirectory({ context: 'publisher' }),
  now: instant(1_800_000_000_000_000n),
  correlationId: 'of-the-request',
  actor: 'worker-7',
}
const LEAST = { engine: 'hmac', originalMessage: '{}', errorMessage: 'no key', sourceId: 'a-1' }
const read = (changes: object = {}) => readReport({ ...LEAST, ...changes }, context)

describe('a failure that is reported as JSON', () => {
  it('needs an engine, a message, an error and a source id; the rest has defaults', () => {
    expect(read()).toEqual({
      source: 'http',
      engine: 'hmac',
      instanceId: 'publisher',
      correlationId: 'of-the-request',
      sourceId: 'a-1',
      originalQueue: 'hmac-rotation-queue',
      encoding: '',
      kind: '',
      reference: '',
      headers: null,
      payload: Buffer.from('{}'),
      dequeueCount: 1,
      firstFailureAt: null,
      lastFailureAt: null,
      errorClass: '',
      errorMessage: 'no key',
      errorStack: null,
      failedBy: 'worker-7',
      actor: 'worker-7',
    })
  })

  it('has no queue when its engine has none and it names none', () => {
    expect(read({ engine: 'update-publisher' }).originalQueue).toBeNull()
    expect(read({ engine: 'update-publisher', originalQueue: 'updates' }).originalQueue).toBe('updates')
  })

  it('is taken whole', () => {
    const report = read({
      instanceId: 'eu-1',
      originalMessage: 'AP8=',
      originalMessageEncoding: 'base64',
      errorClass: 'TypeError',
      errorStack: 'at rotate',
      dequeueCount: 5,
      firstFailureAtUtc: '2027-01-01T00:00:00.123456Z',
      lastFailureAtUtc: '2027-01-02T00:00:00+01:00',
      correlationId: 'own',
      headers: { trace: 'abc' },
    })
    expect(report).toMatchObject({
      instanceId: 'eu-1',
      payload: Buffer.of(0, 255),
      dequeueCount: 5,
      correlationId: 'own',
      headers: Buffer.from('{"trace":"abc"}'),
    })
    expect((report.lastFailureAt ?? 0n) - (report.firstFailureAt ?? 0n)).toBe(82_800_000_000n - 123_456n)
  })

  it('keeps an error text as it is, with null characters and half characters: the capture cleans it', () => {
    expect(read({ errorMessage: 'a\0b\ud800' }).errorMessage).toBe('a\0b\ud800')
  })

  it.each([
    [{ engine: undefined }, 'engine is invalid; it is missing'],
    [{ engine: 'nope' }, "engine is unknown; 'nope' is none of provisioning, hmac"],
    [
      { engine: 'queues' },
      "engine is invalid; 'queues' is Bartleby's own; report to another engine or 'http'",
    ],
    [
      { engine: 'office' },
      "engine is invalid; 'office' is Bartleby's own; report to another engine or 'http'",
    ],
    [{ sourceId: undefined }, 'sourceId is invalid; it is missing'],
    [{ sourceId: '' }, 'sourceId is invalid; it is empty'],
    [{ sourceId: 'x'.repeat(513) }, 'sourceId is invalid; it has 513 characters'],
    [{ sourceId: 'a\0' }, 'sourceId is invalid; it holds the null character'],
    [{ originalMessage: undefined }, 'originalMessage is invalid; it is missing'],
    [{ originalMessage: { a: 1 } }, 'originalMessage is invalid; give a text'],
    [{ originalMessageEncoding: 'hex' }, 'originalMessageEncoding is invalid; it is none of utf8, base64'],
    [{ errorMessage: undefined }, 'errorMessage is invalid; it is missing'],
    [{ errorMessage: 5 }, 'errorMessage is invalid; give a text'],
    [{ errorClass: 5 }, 'errorClass is invalid; give a text'],
    [{ errorStack: [] }, 'errorStack is invalid; give a text'],
    [{ dequeueCount: 0 }, "dequeueCount is invalid; it is '0', give a whole number from 1"],
    [{ dequeueCount: 1.5 }, "dequeueCount is invalid; it is '1.5'"],
    [{ dequeueCount: 2 ** 31 }, 'dequeueCount is invalid'],
    [{ firstFailureAtUtc: 'yesterday' }, "firstFailureAtUtc is invalid; 'yesterday' is not"],
    [{ lastFailureAtUtc: 5 }, 'lastFailureAtUtc is invalid; it is a number'],
    [
      { firstFailureAtUtc: '2027-01-02T00:00:00Z', lastFailureAtUtc: '2027-01-01T00:00:00Z' },
      'firstFailureAtUtc is invalid; it is later than lastFailureAtUtc',
    ],
    [{ headers: ['a'] }, 'headers is invalid; give an object of texts'],
    [{ headers: { a: 1 } }, "headers is invalid; 'a' is no text"],
    [{ instanceId: 7 }, 'instanceId is invalid; it is a number, give a text'],
    [{ originalQueue: '' }, 'originalQueue is invalid; it is empty'],
    [{ correlationId: 'x'.repeat(257) }, 'correlationId is invalid; it has 257 characters'],
    [{ errormessage: 'typo' }, 'errormessage is invalid; it is none of engine, instanceId'],
  ])('is refused by the name of the field: %o', (changes, message) => {
    expect(() => read(changes)).toThrow(message)
  })
})
