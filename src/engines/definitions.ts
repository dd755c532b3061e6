/**
 * Which engines there are: the presets of a context, what the configuration adds to them or puts in their place, and
 * Bartleby's own: its sources, so that every letter has an engine, and the office itself. An engine or operation that is not defined is refused
 * with the list of those that are.
 */
import { failure } from '../core/errors.ts'
import { ACTS, OFFICE, REDRIVE_ACTS, SOURCE_OPERATIONS, SOURCES } from '../letters/letter.ts'
import type { EngineQueue } from '../queues/engine-queues.ts'

export const ENGINE_CONTEXTS = ['publisher', 'managed-app'] as const
export type EngineContext = (typeof ENGINE_CONTEXTS)[number]

/** What an engine works on and what its runs are called. */
export interface EngineDefinition {
  /** null: it has no queue; its runs are recorded and its letters captured, but there is nothing to lease. */
  readonly queue: string | null
  readonly operations: readonly string[]
}

/** A definition as a configuration writes it: a queue that is left out is none. */
export interface EngineSetting {
  readonly queue?: string | null | undefined
  readonly operations: readonly string[]
}

export interface EngineSettings {
  readonly context?: EngineContext
  readonly definitions?: Readonly<Record<string, EngineSetting>>
}

/** Names of engines and operations. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9-]{0,63}$/
export const NAME_FORM = "1 to 64 of 'a'-'z', '0'-'9' and '-', the first one not '-'"

const ALERTS: EngineDefinition = { queue: 'monitor-alerts-queue', operations: ['process'] }

export const PRESETS: Readonly<Record<EngineContext, Readonly<Record<string, EngineDefinition>>>> = {
  publisher: {
    provisioning: {
      queue: 'webhook-queue',
      operations: ['webhook-received', 'instance-registered', 'bootstrap-complete'],
    },
    hmac: { queue: 'hmac-rotation-queue', operations: ['rotate', 'notify'] },
    tls: { queue: 'tls-rotation-queue', operations: ['renew', 'distribute'] },
    spn: { queue: 'spn-rotation-queue', operations: ['rotate'] },
    'update-publisher': { queue: null, operations: ['evaluate', 'notify'] },
    alerts: ALERTS,
  },
  'managed-app': {
    update: { queue: 'update-notifications-queue', operations: ['process', 'component-update'] },
    health: { queue: 'health-notifications-queue', operations: ['check', 'aggregate'] },
    alerts: ALERTS,
  },
}

/**
 * Sources of letters that are engines themselves (each letter of another engine has the source 'engines' or 'http'),
 * and the office, for what it does that concerns no single engine.
 */
export const OWN_ENGINES: readonly string[] = [...SOURCES.filter((source) => source !== 'engines'), OFFICE]

/** Every source's name is taken: a letter of engine 'kafka' must be one that Kafka gave. */
export const RESERVED_NAMES: readonly string[] = [...SOURCES, OFFICE]

const OWN: EngineDefinition = { queue: null, operations: [] }

export class EngineDirectory {
  readonly context: EngineContext
  readonly #definitions: ReadonlyMap<string, EngineDefinition>

  /** Refuses names that are malformed or taken, with the name of the key. */
  constructor({ context = 'publisher', definitions = {} }: EngineSettings = {}) {
    this.context = context
    const known = new Map<string, EngineDefinition>(Object.entries(PRESETS[context]))
    for (const [name, { queue = null, operations }] of Object.entries(definitions)) {
      const problem = problemWithName(name) ?? problemWithOperations(operations)
      if (problem !== null) throw new TypeError(`engines.definitions.${name}: ${problem}`)
      known.set(name, { queue, operations: [...operations] })
    }
    for (const name of OWN_ENGINES) known.set(name, OWN)
    this.#definitions = known
  }

  /** All engines: presets and definitions, then Bartleby's own. */
  names(): readonly string[] {
    return [...this.#definitions.keys()]
  }

  has(name: string): boolean {
    return this.#definitions.has(name)
  }

  /** The engine's queue and its own operations; refuses an unknown engine. */
  definitionOf(name: string): EngineDefinition {
    const definition = this.#definitions.get(name)
    if (definition === undefined) {
      throw failure('engine_unknown', { engine: shown(name), known: this.names().join(', ') })
    }
    return definition
  }

  /** The queues of the engines that have one. */
  queues(): readonly EngineQueue[] {
    return [...this.#definitions].flatMap(([engine, { queue }]) => (queue === null ? [] : { engine, queue }))
  }

  /** What history may show of an engine: its own operations, then the acts on its letters. */
  operationsOf(name: string): readonly string[] {
    const words = SOURCES.flatMap((source) => (source === name ? (SOURCE_OPERATIONS[source] ?? []) : []))
    const redrives = name === OFFICE ? REDRIVE_ACTS.map((act) => `redrive.${act}`) : []
    return [...new Set([...this.definitionOf(name).operations, ...words, ...redrives, ...ACTS])]
  }

  /** What history may show of any engine. */
  operations(): readonly string[] {
    return [...new Set(this.names().flatMap((name) => this.operationsOf(name)))]
  }

  /** Refuses an unknown engine. */
  check(name: string): void {
    this.definitionOf(name)
  }

  /** Refuses an operation that history cannot show of the engine, or of any engine when none is named. */
  checkOperation(engine: string | null, operation: string): void {
    refuseUnknown(operation, engine === null ? this.operations() : this.operationsOf(engine))
  }

  /** Refuses an operation that is not the engine's own: acts on letters are recorded by Bartleby alone. */
  checkOwnOperation(engine: string, operation: string): void {
    refuseUnknown(operation, this.definitionOf(engine).operations)
  }
}

function refuseUnknown(operation: string, known: readonly string[]): void {
  if (known.includes(operation)) return
  throw failure('operation_unknown', {
    operation: shown(operation),
    known: known.join(', ') || 'no operation',
  })
}

/** Why an engine cannot be called that, or null when it can. */
export function problemWithName(name: string): string | null {
  if (!NAME_PATTERN.test(name)) return `an engine's name is ${NAME_FORM}`
  return RESERVED_NAMES.includes(name) ? `'${name}' is one of Bartleby's own names` : null
}

function problemWithOperations(operations: readonly string[]): string | null {
  const bad = operations.find((operation) => !NAME_PATTERN.test(operation))
  if (operations.length > 0 && bad === undefined) return null
  return `operations must be a list of at least one name, each ${NAME_FORM}`
}

const SHOWN_CHARACTERS = 128

const shown = (text: string): string =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
