import { describe, expect, it } from 'vitest'
import { EngineDirectory, SeenEngines } from './engine-directory.ts'

const OWN = ['queues', 'outbox', 'webhooks', 'kafka', 'azure', 'http', 'office']
const PUBLISHER = ['provisioning', 'hmac', 'tls', 'spn', 'update-publisher', 'alerts']

/** A store that has seen these. */
const seen = (engines: Record<string, readonly string[]>, queues: Record<string, string> = {}): SeenEngines =>
  Object.assign(new SeenEngines(), {
    has: async (engine: string) => engine in engines,
    names: async () => Object.keys(engines),
    operations: async (engine: string | null) =>
      engine === null ? Object.values(engines).flat() : (engines[engine] ?? []),
    queues: async () => Object.entries(queues).map(([queue, engine]) => ({ queue, engine })),
  })

describe('the directory of engines with a context', () => {
  it('knows the presets of its context and the engines of Bartleby itself', () => {
    expect(new EngineDirectory({ context: 'publisher' }).names()).toEqual([...PUBLISHER, ...OWN])
    expect(new EngineDirectory({ context: 'managed-app' }).names()).toEqual([
      'update',
      'health',
      'alerts',
      ...OWN,
    ])
  })

  it('adds definitions and puts them in the place of presets', () => {
    const directory = new EngineDirectory({
      context: 'publisher',
      definitions: {
        billing: { queue: 'billing-queue', operations: ['charge'] },
        hmac: { operations: ['turn'] },
      },
    })
    expect(directory.definitionOf('billing')).toEqual({ queue: 'billing-queue', operations: ['charge'] })
    expect(directory.definitionOf('hmac')).toEqual({ queue: null, operations: ['turn'] })
  })

  it('shows the acts on letters beside an engine’s own operations', () => {
    const directory = new EngineDirectory({ context: 'publisher' })
    expect(directory.operationsOf('spn')).toEqual(expect.arrayContaining(['rotate', 'capture', 'retry']))
    expect(directory.definitionOf('kafka')).toEqual({ queue: null, operations: [] })
    expect(directory.operationsOf('kafka')).toContain('capture')
    expect(directory.operationsOf('office')).toContain('remove')
  })

  it('refuses what it does not know, with what it knows', async () => {
    const directory = new EngineDirectory({ context: 'managed-app' })
    const unknown =
      "engine is unknown; 'hmac' is none of update, health, alerts, queues, outbox, webhooks, kafka, azure, http, office"
    expect(() => directory.check('hmac')).toThrow(unknown)
    await expect(directory.checkKnown('hmac')).rejects.toThrow(unknown)
    expect(() => directory.checkOwnOperation('health', 'capture')).toThrow(
      "operation is unknown; 'capture' is none of check, aggregate",
    )
    await expect(directory.checkKnownOperation('health', 'rotate')).rejects.toThrow(
      /none of check, aggregate, capture/,
    )
    await expect(directory.checkKnownOperation(null, 'rotate')).rejects.toThrow(/operation is unknown/)
    await directory.checkKnownOperation('health', 'capture')
  })

  it('finds what is no longer defined, but files nothing under it', async () => {
    const directory = new EngineDirectory({ context: 'managed-app' }, seen({ billing: ['charge'] }))
    await directory.checkKnown('billing')
    await directory.checkKnownOperation('billing', 'charge')
    await directory.checkKnownOperation(null, 'charge')
    await expect(directory.checkKnown('other')).rejects.toThrow(/none of update, .*, office, billing$/)
    expect(() => directory.check('billing')).toThrow(/engine is unknown/)
  })
})

describe('the directory of engines without a context', () => {
  it('has no presets, and every valid name may be an engine', () => {
    const directory = new EngineDirectory()
    expect(directory.names()).toEqual(OWN)
    directory.check('hmac')
    directory.check('billing-2')
    expect(directory.definitionOf('billing')).toEqual({ queue: null, operations: [] })
    directory.checkOwnOperation('billing', 'anything-at-all')
  })

  it('refuses names that cannot be, and acts on letters as operations', () => {
    const directory = new EngineDirectory()
    for (const name of ['', '-a', 'A', 'a b', 'a'.repeat(65)]) {
      expect(() => directory.check(name)).toThrow(/engine is invalid; .* an engine's name is 1 to 64/)
    }
    expect(() => directory.check('engines')).toThrow(/one of Bartleby's own names/)
    expect(() => directory.checkOwnOperation('billing', 'Charge!')).toThrow(/an operation's name is/)
    expect(() => directory.checkOwnOperation('billing', 'capture')).toThrow(/Bartleby records itself/)
    expect(() => directory.checkOwnOperation('kafka', 'charge')).toThrow(/none of no operation/)
  })

  it('holds those that are defined to their definition', () => {
    const directory = new EngineDirectory({ definitions: { billing: { operations: ['charge'] } } })
    expect(directory.names()).toEqual(['billing', ...OWN])
    expect(() => directory.checkOwnOperation('billing', 'refund')).toThrow(/none of charge/)
  })

  it('looks only for what was seen, and lists it', async () => {
    const directory = new EngineDirectory(
      { definitions: { audit: { operations: ['check'] } } },
      seen({ billing: ['charge'], http: ['capture'] }, { invoices: 'billing' }),
    )
    await directory.checkKnown('billing')
    await expect(directory.checkKnown('payments')).rejects.toThrow(
      "engine is unknown; 'payments' is none of audit, queues, outbox, webhooks, kafka, azure, http, office, billing",
    )
    expect((await directory.known()).map(({ name, queue }) => [name, queue])).toEqual([
      ['audit', null],
      ['billing', 'invoices'],
      ...OWN.map((name) => [name, null]),
    ])
    expect(await directory.queueOf('billing')).toBe('invoices')
  })

  it('lists no more names in a refusal than can be read', async () => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`e${n}`, []]))
    await expect(new EngineDirectory({}, seen(many)).checkKnown('x')).rejects.toThrow(/ and 57 more$/)
  })
})

describe('a definition', () => {
  it('is refused under a name that is malformed or taken', () => {
    const defining = (name: string) => () =>
      new EngineDirectory({ definitions: { [name]: { operations: ['x'] } } })
    for (const name of ['', '-a', 'A', 'a b', 'a'.repeat(65)])
      expect(defining(name)).toThrow(/an engine's name is/)
    for (const name of OWN) expect(defining(name)).toThrow(/one of Bartleby's own names/)
    expect(defining(`${'a'.repeat(63)}-`)).not.toThrow()
  })
})
