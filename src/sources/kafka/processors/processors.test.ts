import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { kafkaSettingsFor } from '../../../../test/world/kafka/settings.ts'
import { ConfigError } from '../../../core/settings/config-error.ts'
import { letterId } from '../../../letters/letter.ts'
import { dlqId, type EventFacts, STATE } from '../event.ts'
import type { ProcessorSettings } from '../settings/settings.ts'
import type { StoredEvent } from '../stored-event.ts'
import { type Decision, Processors } from './processors.ts'

let folder: string
const open: Processors[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bartleby-processors-'))
  // Whatever package lies above, what a .js file is depends on this one.
  writeFileSync(join(folder, 'package.json'), '{}')
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((processors) => processors.close()))
  rmSync(folder, { recursive: true, force: true })
})

const facts: EventFacts = {
  service: 'wps',
  originalTopic: 'orders',
  type: 'created',
  correlationId: 'dfdc7cf4-1c02-4ce4-a1a4-0b9b7d1a2e8b',
  mintedCorrelationId: null,
  originalEventId: null,
  readFrom: null,
  exception: { class: 'ValueError', message: 'boom' },
  family: 'hexkit',
  origin: {},
  attemptsReported: null,
  valueForm: 'json',
  reasons: [],
  warnings: ['header_duplicate'],
}

type Draft = Partial<Omit<StoredEvent, 'value' | 'key' | 'facts'>> & {
  readonly value?: string | Uint8Array | null
  readonly key?: string | Uint8Array | null
  readonly facts?: Partial<EventFacts>
}

const bytes = (given: string | Uint8Array | null): Uint8Array | null =>
  typeof given === 'string' ? Buffer.from(given) : given

const event = ({ value = '{"a": 1}', key = 'k1', facts: more = {}, ...draft }: Draft = {}): StoredEvent => ({
  letterId: letterId(1n),
  rowKey: 'row',
  state: STATE.pending,
  service: 'wps',
  originalTopic: 'orders',
  order: { orderTs: 1n, topic: 'wps_dlq', partition: 2, offset: 9_007_199_254_740_993n, intake: 1n },
  dlqId: dlqId('4706cc1b-5a2a-4f5a-9a3d-8a4d1c9b2f10'),
  timestampMs: 1_800_000_000_000n,
  key: bytes(key),
  value: bytes(value),
  editedValue: null,
  headers: [{ name: Buffer.from('type'), value: Buffer.from('created') }],
  facts: { ...facts, ...more },
  attempts: 1,
  eventId: null,
  ...draft,
})

const ANY = { service: null, topic: null, type: null }

const file = (name: string, code: string): string => {
  const path = join(folder, name)
  writeFileSync(path, code)
  return path
}

interface Given {
  readonly entries?: readonly Partial<ProcessorSettings>[]
  readonly timeoutMs?: number
}

const lines: string[] = []
beforeEach(() => lines.splice(0))

async function load(
  code: string | null,
  { entries = [{}], timeoutMs = 5_000 }: Given = {},
): Promise<Processors> {
  const module = code === null ? '' : file('processor.mjs', code)
  const say = ({ text }: { readonly text?: string }) => void lines.push(text ?? '')
  const processors = await Processors.load(
    kafkaSettingsFor({
      processorTimeoutMs: timeoutMs,
      processors: entries.map((entry) => ({ match: ANY, module, export: 'default', ...entry })),
    }),
    { debug: say, info: say, warn: say, error: say },
  )
  open.push(processors)
  return processors
}

const decisionOf = async (code: string, given: Draft = {}, timeoutMs = 5_000): Promise<Decision> =>
  (await load(code, { timeoutMs })).decide(event(given))

const valueIn = (decision: Decision): string | undefined =>
  decision.action === 'publish' && decision.change.value !== undefined
    ? Buffer.from(decision.change.value).toString('latin1')
    : undefined

const problemsOf = async (loading: Promise<unknown>): Promise<readonly string[]> => {
  try {
    await loading
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replaceAll(folder, ''))
    throw error
  }
}

const PUBLISH = { action: 'publish', change: {} }

describe('a processor', () => {
  it('may leave an event as it is', async () => {
    expect(await decisionOf(`export default () => ({ action: 'publish' })`)).toEqual(PUBLISH)
    expect(await decisionOf(`export default async () => ({ action: 'publish', change: {} })`)).toEqual(
      PUBLISH,
    )
  })

  it('may change everything that the guard lets through', async () => {
    const decision = await decisionOf(`export default ({ topic, type, key, payload }) => ({
      action: 'publish',
      change: { topic: topic + '2', type: type + '2', key: key + '2', payload: { ...payload, b: 'ü' }, correlationId: 'c' },
    })`)
    expect(decision).toMatchObject({
      action: 'publish',
      change: { topic: 'orders2', type: 'created2', key: 'k12', correlationId: 'c' },
    })
    expect(valueIn(decision)).toBe('{"a": 1, "b": "\\u00fc"}')
  })

  it('may give the bytes of the value', async () => {
    const code = `const all = Uint8Array.from({ length: 300 }, (_, byte) => byte)
      export default () => ({ action: 'publish', change: { rawValue: all.subarray(1, 256) } })`
    const decision = await decisionOf(code)
    expect(decision.action === 'publish' && decision.change.value).toEqual(
      Uint8Array.from({ length: 255 }, (_, byte) => byte + 1),
    )
  })

  it('may discard, with or without a reason', async () => {
    expect(await decisionOf(`export default () => ({ action: 'discard', reason: 'test data' })`)).toEqual({
      action: 'discard',
      reason: 'test data',
    })
    expect(await decisionOf(`export default () => ({ action: 'discard' })`)).toEqual({
      action: 'discard',
      reason: null,
    })
  })

  it('reads and writes numbers that JavaScript has no numbers for', async () => {
    const value = '{"big": 12345678901234567890, "odd": [NaN, -Infinity, 1e400], "small": 1}'
    const decision = await decisionOf(
      `export default ({ payload }) => ({
        action: 'publish',
        change: { payload: { ...payload, big: payload.big + 1n, was: typeof payload.big + typeof payload.small } },
      })`,
      { value },
    )
    expect(valueIn(decision)).toBe(
      '{"big": 12345678901234567891, "odd": [NaN, -Infinity, Infinity], "small": 1, "was": "bigintnumber"}',
    )
  })

  it('sees all of the event', async () => {
    const code = `import { inspect } from 'node:util'
      export default (event) => ({ action: 'discard', reason: inspect(event, { depth: 9, breakLength: 1000 }) })`
    const decision = await decisionOf(code, {
      key: Buffer.from([0xff]),
      value: 'no JSON',
      headers: [
        { name: Buffer.from('a'), value: null },
        { name: Buffer.from('a'), value: new Uint8Array(0) },
        { name: Buffer.from([0xff]), value: Buffer.from('x') },
      ],
      originalTopic: '~unknown',
      facts: { reasons: ['key_not_ascii'] },
      attempts: 3,
    })
    const shown = decision.action === 'discard' ? decision.reason : null
    for (const part of [
      `service: 'wps'`,
      'topic: null',
      `type: 'created'`,
      'key: null',
      'payload: undefined',
      'rawKey: Uint8Array(1) [ 255 ]',
      'rawValue: Uint8Array(7) [',
      `{ name: 'a', value: null }`,
      `{ name: 'a', value: Uint8Array(0) [] }`,
      `{ name: 'base64:/w==', value: Uint8Array(1) [ 120 ] }`,
      `correlationId: 'dfdc7cf4-1c02-4ce4-a1a4-0b9b7d1a2e8b'`,
      'originalEventId: null',
      'timestamp: 2027-01-15T08:00:00.000Z',
      `position: { topic: 'wps_dlq', partition: 2, offset: 9007199254740993n }`,
      `exception: { class: 'ValueError', message: 'boom' }`,
      'attempts: 3',
      `reasons: [ 'key_not_ascii' ]`,
      `warnings: [ 'header_duplicate' ]`,
    ]) {
      expect(shown).toContain(part)
    }
    expect(shown).not.toContain('4706cc1b')
  })

  it('sees what an operator made of the value, and the key that will be used', async () => {
    const code = `export default ({ payload, key }) => ({ action: 'discard', reason: payload.a + key })`
    const edited = { editedValue: Buffer.from('{"a":"edited "}'), facts: { originalKey: 'b2xk' } }
    expect(await decisionOf(code, edited)).toMatchObject({ reason: 'edited old' })
  })

  it('cannot change what later runs see', async () => {
    const processors = await load(`
      const quietly = (change) => { try { change() } catch {} }
      export const when = (event) => { event.rawValue?.fill(1); event.timestamp.setTime(0); return true }
      export default (event) => {
        const shown = JSON.stringify([event.payload, event.headers[0].name, [...event.rawValue], event.timestamp, event.reasons])
        quietly(() => { event.payload.a.push(2) })
        quietly(() => { event.payload.b = 1 })
        quietly(() => { event.headers[0].name = 'x' })
        quietly(() => { event.reasons.push('x') })
        quietly(() => { event.service = 'x' })
        event.rawValue.fill(0)
        event.timestamp.setTime(0)
        return { action: 'discard', reason: shown + event.service + JSON.stringify(event.payload) }
      }`)
    const given = event({ value: '{"a": [1]}' })
    const before = structuredClone(given.value)
    const first = await processors.decide(given)
    expect(first.action === 'discard' && first.reason).toMatch(
      /"2027-01-15T08:00:00.000Z",\[\]\]wps{"a":\[1\]}$/,
    )
    expect(await processors.decide(given)).toEqual(first)
    expect(Buffer.from(given.value ?? '')).toEqual(Buffer.from(before ?? ''))
  })

  it('is given bytes of its own, whatever they were part of', async () => {
    const pool = Buffer.from('secret {"a": 1} secret')
    const decision = await decisionOf(
      `export default ({ rawValue }) => ({ action: 'discard', reason: String(rawValue.buffer.byteLength) })`,
      { value: pool.subarray(7, 15) },
    )
    expect(decision).toMatchObject({ reason: '8' })
  })

  it('takes payloads that are nested deeply', async () => {
    const value = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    const decision = await decisionOf(
      `export default ({ payload }) => ({ action: 'publish', change: { payload } })`,
      {
        value,
      },
    )
    expect(valueIn(decision)).toBe(value)
  })
})

describe('a processor that fails', () => {
  const failing: readonly (readonly [what: string, code: string, message: string | RegExp])[] = [
    ['throws', `export default () => { throw new RangeError('no such order') }`, 'no such order'],
    ['throws a text', `export default () => { throw 'a text' }`, 'a text'],
    ['rejects', `export default async () => { throw new Error('later') }`, 'later'],
    ['returns nothing', 'export default () => {}', 'the processor returned undefined, not a result'],
    ['returns null', 'export default () => null', 'the processor returned null, not a result'],
    ['returns a text', `export default () => 'publish'`, 'the processor returned a string, not a result'],
    ['returns a list', 'export default () => []', 'the processor returned an array, not a result'],
    ['gives no action', 'export default () => ({})', /without action/],
    ['gives another action', `export default () => ({ action: 'drop' })`, /an action that does not exist/],
    [
      'gives a reason that is none',
      `export default () => ({ action: 'discard', reason: 1 })`,
      /^reason is a number/,
    ],
    [
      'gives a stray key',
      `export default () => ({ action: 'publish', payload: {} })`,
      /^the result has no 'payload'/,
    ],
    [
      'wants other headers',
      `export default () => ({ action: 'publish', change: { headers: [] } })`,
      /^change has no 'headers'/,
    ],
    [
      'gives a change that is none',
      `export default () => ({ action: 'publish', change: null })`,
      /^change of the result/,
    ],
    [
      'gives a key that is no text',
      `export default () => ({ action: 'publish', change: { key: 1n } })`,
      'change.key is a bigint, not a string',
    ],
    [
      'gives a topic that is no text',
      `export default () => ({ action: 'publish', change: { topic: null } })`,
      'change.topic is null, not a string',
    ],
    [
      'gives two values',
      `export default () => ({ action: 'publish', change: { payload: 1, rawValue: new Uint8Array(1) } })`,
      /both payload and rawValue/,
    ],
    [
      'gives bytes that are none',
      `export default () => ({ action: 'publish', change: { rawValue: 'text' } })`,
      /^change.rawValue is a string/,
    ],
    [
      'gives a payload that is no JSON',
      `const a = {}; a.a = a; export default () => ({ action: 'publish', change: { payload: a } })`,
      /a cycle/,
    ],
    [
      'gives a result that bites',
      `export default () => ({ get action() { throw new Error('ouch') } })`,
      'ouch',
    ],
    ['ends the process', 'export default () => process.exit(0)', /process\.exit/],
    [
      'leaves a promise behind that fails',
      `export default () => new Promise(() => { Promise.reject(new Error('left behind')) })`,
      /unhandled: left behind/,
    ],
    [
      'fails later, where nobody listens',
      `export default () => new Promise(() => setTimeout(() => { throw new Error('in a timer') }, 1))`,
      /unhandled: in a timer/,
    ],
    [
      'has a when that throws',
      `export const when = () => { throw new Error('x') }; export default () => {}`,
      'x',
    ],
    [
      'has a when that does not know',
      `export const when = async () => false; export default () => {}`,
      /neither/,
    ],
  ]
  // All of them in one thread, which some of them end: each is an entry of its own, for a type of its own.
  let processors: Processors
  let shared: string
  beforeAll(async () => {
    shared = mkdtempSync(join(tmpdir(), 'bartleby-processors-'))
    const entries = failing.map(([, code], index) => {
      const module = join(shared, `${index}.mjs`)
      writeFileSync(module, code)
      return { module, export: 'default', match: { ...ANY, type: [String(index)] } }
    })
    processors = await Processors.load(kafkaSettingsFor({ processors: entries }))
  })
  afterAll(async () => {
    await processors.close()
    rmSync(shared, { recursive: true, force: true })
  })

  it.each(failing.map((row, index) => [...row, index] as const))('%s', async (_, _code, message, index) => {
    const given = event({ facts: { type: String(index) } })
    const decision = await processors.decide(given)
    expect(decision.action).toBe('failed')
    const told = 'message' in decision ? decision.message : ''
    if (typeof message === 'string') expect(told).toBe(message)
    else expect(told).toMatch(message)
    expect(told).not.toContain(shared)
    // And the next one is tried as if nothing had been.
    expect(await processors.decide(given)).toEqual(decision)
  })

  it('says no more than fits', async () => {
    const decision = await decisionOf(`export default () => { throw new Error('x'.repeat(1e6)) }`)
    expect('message' in decision && decision.message.length).toBe(2_001)
    const discarded = await decisionOf(
      `export default () => ({ action: 'discard', reason: 'x'.repeat(1e6) })`,
    )
    expect(discarded.action === 'discard' && discarded.reason?.length).toBe(1_000)
  })

  it.each([
    ['heap', 'const kept = []; export default () => { for (;;) kept.push(Array(1e6).fill(kept.length)) }'],
    ['buffers', 'const kept = []; export default () => { for (;;) kept.push(Buffer.alloc(1 << 20, 1)) }'],
  ])('by its appetite for memory is ended: %s', async (_, code) => {
    const decision = await decisionOf(code, {}, 60_000)
    expect(decision).toEqual({ action: 'failed', message: 'the processor used too much memory' })
  })
})

describe('a processor that takes too long', () => {
  it('is ended, and the next event gets another thread', async () => {
    const processors = await load(
      `export default ({ payload }) => { while (payload.a === 1); return { action: 'publish' } }`,
      { timeoutMs: 100 },
    )
    const slow = processors.decide(event())
    expect(await processors.decide(event({ value: '{"a": 2}' }))).toEqual(PUBLISH)
    expect(await slow).toEqual({ action: 'timeout', message: 'the processor took longer than 100 ms' })
    expect(await processors.decide(event({ value: '{"a": 2}' }))).toEqual(PUBLISH)
  })

  it('is told by its signal', async () => {
    const code = `export default (event, { signal, log }) => new Promise((resolve) => {
      signal.addEventListener('abort', () => { log('gave up: ' + signal.reason.message); resolve({ action: 'publish' }) })
    })`
    const processors = await load(code, { timeoutMs: 50 })
    expect(await processors.decide(event())).toMatchObject({ action: 'timeout' })
    await expect.poll(() => lines).toEqual(['gave up: the time for the processor is up'])
  })

  it('while others wait, takes none of their time', async () => {
    const code = `export default async () => { await new Promise((r) => setTimeout(r, 60)); return { action: 'publish' } }`
    const processors = await load(code, { timeoutMs: 500 })
    const decisions = await Promise.all(Array.from({ length: 20 }, () => processors.decide(event())))
    // Ten in a row on each of two threads take longer than one of them may.
    expect(decisions).toEqual(Array(20).fill(PUBLISH))
  })

  it('after it has decided holds up nobody', async () => {
    const code = `export default ({ payload }) => {
      if (payload.a === 1) setImmediate(() => { for (;;); })
      return { action: 'publish' }
    }`
    const processors = await load(code, { timeoutMs: 200 })
    expect(await processors.decide(event())).toEqual(PUBLISH)
    expect(await processors.decide(event())).toEqual(PUBLISH)
    expect(await processors.decide(event({ value: '{"a": 2}' }))).toEqual(PUBLISH)
  })

  it('does not hold up the end', async () => {
    const processors = await load('export default () => { for (;;); }', { timeoutMs: 60_000 })
    const runs = [1, 2, 3].map(() => processors.decide(event()))
    await processors.close()
    expect(await Promise.all(runs)).toEqual(
      Array(3).fill({ action: 'failed', message: 'the processors were closed' }),
    )
    expect(await processors.decide(event())).toMatchObject({ action: 'failed' })
  })
})

describe('the example', () => {
  it('does what it says', async () => {
    const module = fileURLToPath(new URL('../../../../examples/kafka-processor.js', import.meta.url))
    const processors = await load(null, { entries: [{ module }] })
    const repaired = await processors.decide(event({ value: '{"total": 12345678901234567890}' }))
    expect(valueIn(repaired)).toBe('{"total": 12345678901234567890, "currency": "EUR"}')
    expect(lines).toEqual(['an order without a currency gets EUR'])
    expect(await processors.decide(event({ value: '{"currency": "CHF"}' }))).toEqual(PUBLISH)
    expect(await processors.decide(event({ value: '{"test": true}' }))).toMatchObject({ action: 'discard' })
    expect(await processors.decide(event({ value: 'null' }))).toEqual(PUBLISH)
  })
})

describe('which processor an event is for', () => {
  const named = (name: string, more = '') =>
    `${more}; export default () => ({ action: 'discard', reason: '${name}' })`

  it('is told by the first entry that fits', async () => {
    const one = file('one.mjs', named('one'))
    const two = file('two.mjs', named('two'))
    const processors = await load(null, {
      entries: [
        { module: one, match: { service: ['ucs', 'wps'], topic: null, type: ['deleted'] } },
        { module: two, match: { service: null, topic: ['orders'], type: null } },
        { module: one },
      ],
    })
    expect(await processors.decide(event())).toMatchObject({ reason: 'two' })
    expect(await processors.decide(event({ facts: { type: 'deleted' } }))).toMatchObject({ reason: 'one' })
    expect(await processors.decide(event({ originalTopic: '~unknown' }))).toMatchObject({ reason: 'one' })
  })

  it('is told by its module too', async () => {
    const first = file('first.mjs', named('first', 'export const when = ({ payload }) => payload.a === 1'))
    const second = file('second.mjs', named('second', 'export const when = ({ payload }) => payload.a === 2'))
    const processors = await load(null, { entries: [{ module: first }, { module: second }] })
    expect(await processors.decide(event())).toMatchObject({ reason: 'first' })
    expect(await processors.decide(event({ value: '{"a": 2}' }))).toMatchObject({ reason: 'second' })
    expect(await processors.decide(event({ value: '{"a": 3}' }))).toEqual(PUBLISH)
  })

  it('is no question for a thread when none fits', async () => {
    const processors = await load('export default () => process.exit()', {
      entries: [{ match: { service: ['ucs'], topic: null, type: null } }],
    })
    await processors.close()
    expect(await processors.decide(event())).toEqual(PUBLISH)
  })

  it('is never asked where there are none', async () => {
    const processors = await load(null, { entries: [] })
    expect(await processors.decide(event())).toEqual(PUBLISH)
  })
})

describe('what a processor writes', () => {
  it('goes to the log, within bounds', async () => {
    const code = `export default (event, { log }) => {
      log('x'.repeat(5000)); log({ a: 1 }); log(Symbol('s')); console.log('by', 'console'); console.error(new Proxy({}, { get() { throw 1 } }))
      for (let i = 0; i < 500; i++) log('line ' + i)
      return { action: 'publish' }
    }`
    const processors = await load(code)
    expect(await processors.decide(event())).toEqual(PUBLISH)
    await expect.poll(() => lines.length).toBe(100)
    expect(lines[0]).toHaveLength(1_001)
    expect(lines.slice(1, 4)).toEqual(['{ a: 1 }', 'Symbol(s)', 'by console'])
    expect(lines[99]).toBe('and more, which is left out')
    await processors.decide(event())
    await expect.poll(() => lines.length).toBe(200)
  })
})

describe('modules', () => {
  it.each([
    ['processor.js', `module.exports = () => ({ action: 'publish' })`],
    ['processor.cjs', `module.exports = () => ({ action: 'publish' }); module.exports.when = () => true`],
    [
      'transpiled.cjs',
      `Object.defineProperty(exports, '__esModule', { value: true }); exports.default = () => ({ action: 'publish' })`,
    ],
    ['processor.mjs', `export default () => ({ action: 'publish' })`],
    [
      'processor.ts',
      `interface Event { readonly type: string }\nexport default ({ type }: Event): object => ({ action: 'publish', change: { type } })`,
    ],
  ])('may be %s', async (name, code) => {
    const processors = await load(null, { entries: [{ module: file(name, code) }] })
    expect(await processors.decide(event())).toMatchObject({ action: 'publish' })
  })

  it('may have several processors, also in CommonJS', async () => {
    const code = `const make = (reason) => () => ({ action: 'discard', reason })
      module.exports = { ...{ one: make('one') }, two: make('two') }`
    const module = file('several.cjs', code)
    const match = { service: null, topic: null, type: ['a'] }
    const processors = await load(null, {
      entries: [
        { module, export: 'one', match },
        { module, export: 'two' },
      ],
    })
    expect(await processors.decide(event({ facts: { type: 'a' } }))).toMatchObject({ reason: 'one' })
    expect(await processors.decide(event())).toMatchObject({ reason: 'two' })
  })

  it('stop the start when something is wrong with them, and all of it is told', async () => {
    const entries = [
      { module: join(folder, 'missing.js') },
      { module: file('bare.mjs', 'export const other = 1') },
      { module: file('bare.mjs', 'export const other = 1'), export: 'other' },
      { module: file('broken.mjs', 'export default (') },
      { module: file('throws.mjs', `throw new TypeError('at load')`) },
      { module: file('needy.mjs', `import './nowhere.mjs'; export default () => {}`) },
      { module: file('when.mjs', 'export const when = true; export default () => {}') },
      { module: file('enum.ts', 'enum A { B }; export default () => A') },
    ]
    expect(await problemsOf(load(null, { entries }))).toEqual([
      "kafka.processors[0].module: '/missing.js' does not exist",
      "kafka.processors[1].export: '/bare.mjs' has no export 'default'",
      "kafka.processors[2].export: 'other' of '/bare.mjs' is no function",
      expect.stringMatching(
        /^kafka\.processors\[3\]\.module: '\/broken\.mjs' cannot be loaded: SyntaxError: /,
      ),
      "kafka.processors[4].module: '/throws.mjs' cannot be loaded: TypeError: at load",
      expect.stringMatching(
        /^kafka\.processors\[5\]\.module: '\/needy\.mjs' cannot be loaded: .*nowhere\.mjs/,
      ),
      "kafka.processors[6].module: 'when' of '/when.mjs' is no function",
      expect.stringMatching(/^kafka\.processors\[7\]\.module: '\/enum\.ts' cannot be loaded: SyntaxError: /),
    ])
  })

  it.each([
    ['end the process', 'process.exit(); export default () => {}', /process\.exit/],
    ['never end to load', 'await new Promise(() => {}); export default () => {}', /ended its thread/],
  ])('stop the start when they %s', async (_, code, problem) => {
    expect(await problemsOf(load(code))).toEqual([expect.stringMatching(problem)])
  })

  it('are loaded in their thread alone', async () => {
    const code = `globalThis.bartlebyWasHere = true; export default () => ({ action: 'publish' })`
    await load(code)
    expect(globalThis).not.toHaveProperty('bartlebyWasHere')
  })
})
