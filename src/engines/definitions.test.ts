import { describe, expect, it } from 'vitest'
import { EngineDirectory } from './definitions.ts'

const OWN = ['queues', 'outbox', 'webhooks', 'kafka', 'http', 'office']

describe('the directory of engines', () => {
  it('knows the presets of its context and the engines of Bartleby itself', () => {
    const publisher = ['provisioning', 'hmac', 'tls', 'spn', 'update-publisher', 'alerts']
    expect(new EngineDirectory().names()).toEqual([...publisher, ...OWN])
    expect(new EngineDirectory({ context: 'managed-app' }).names()).toEqual([
      'update',
      'health',
      'alerts',
      ...OWN,
    ])
  })

  it('adds definitions and puts them in the place of presets', () => {
    const directory = new EngineDirectory({
      definitions: {
        billing: { queue: 'billing-queue', operations: ['charge'] },
        hmac: { operations: ['turn'] },
      },
    })
    expect(directory.definitionOf('billing')).toEqual({ queue: 'billing-queue', operations: ['charge'] })
    expect(directory.definitionOf('hmac')).toEqual({ queue: null, operations: ['turn'] })
  })

  it('shows the acts on letters beside an engine’s own operations', () => {
    const directory = new EngineDirectory()
    expect(directory.operationsOf('spn')).toEqual(expect.arrayContaining(['rotate', 'capture', 'retry']))
    expect(directory.definitionOf('kafka')).toEqual({ queue: null, operations: [] })
    expect(directory.operationsOf('kafka')).toContain('capture')
    expect(directory.operationsOf('office')).toContain('remove')
  })

  it('refuses what it does not know, with what it knows', () => {
    const directory = new EngineDirectory({ context: 'managed-app' })
    expect(() => directory.check('hmac')).toThrow(
      "engine is unknown; 'hmac' is none of update, health, alerts, queues, outbox, webhooks, kafka, http, office",
    )
    expect(() => directory.checkOwnOperation('health', 'capture')).toThrow(
      "operation is unknown; 'capture' is none of check, aggregate",
    )
    expect(() => directory.checkOperation('health', 'rotate')).toThrow(/none of check, aggregate, capture/)
    expect(() => directory.checkOperation(null, 'rotate')).toThrow(/operation is unknown/)
    expect(() => directory.checkOperation('health', 'capture')).not.toThrow()
  })

  it('refuses names that are malformed or taken', () => {
    const defining = (name: string) => () =>
      new EngineDirectory({ definitions: { [name]: { operations: ['x'] } } })
    for (const name of ['', '-a', 'A', 'a b', 'a'.repeat(65)]) expect(defining(name)).toThrow(TypeError)
    for (const name of OWN) expect(defining(name)).toThrow(/one of Bartleby's own names/)
    expect(defining(`${'a'.repeat(63)}-`)).not.toThrow()
  })
})
