/**
 * Which engines there are. Without a context engines are open: every valid name is one from its first letter, run or
 * definition on. With a context there are its presets, and what the configuration adds to them or puts in their place; any
 * other name is refused. Both have Bartleby's own: its sources, so that every letter has an engine, and the office itself.
 *
 * To look for, there is also every name that the store has seen: letters outlive the definition of their engine.
 */
import { failure, refuse } from '../../core/errors.ts'
import { kindOf, sourceKinds, sourceNames } from '../../letters/kinds.ts'
import { ACTS, OFFICE, REDRIVE_ACTS } from '../../letters/letter.ts'
import type { Session } from '../../store/database.ts'
import type { EngineQueue } from '../records.ts'
import { NOTHING_SEEN, type SeenEngines } from './seen-engines.ts'

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
  /** Left out: engines are open. */
  readonly context?: EngineContext | undefined
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
export const ownEngines = (): readonly string[] => [
  ...sourceKinds().flatMap(({ name, hasEngines }) => (hasEngines ? [] : name)),
  OFFICE,
]

/** Every source's name is taken: a letter of engine 'kafka' must be one that Kafka gave. */
export const reservedNames = (): readonly string[] => [...sourceNames(), OFFICE]

/** Of an engine of Bartleby's own, and of an open one. */
const UNDEFINED: EngineDefinition = { queue: null, operations: [] }

/** An engine as lists show it. */
export interface KnownEngine extends EngineDefinition {
  readonly name: string
}

export class EngineDirectory {
  /** null: engines are open. */
  readonly context: EngineContext | null
  readonly #definitions: ReadonlyMap<string, EngineDefinition>
  readonly #seen: SeenEngines

  /** Refuses names that are malformed or taken, with the name of the key. */
  constructor({ context, definitions = {} }: EngineSettings = {}, seen: SeenEngines = NOTHING_SEEN) {
    this.context = context ?? null
    this.#seen = seen
    const known = new Map<string, EngineDefinition>(
      context === undefined ? [] : Object.entries(PRESETS[context]),
    )
    for (const [name, { queue = null, operations }] of Object.entries(definitions)) {
      const problem = problemWithName(name) ?? problemWithOperations(operations)
      if (problem !== null) throw new TypeError(`engines.definitions.${name}: ${problem}`)
      known.set(name, { queue, operations: [...operations] })
    }
    for (const name of ownEngines()) known.set(name, UNDEFINED)
    this.#definitions = known
  }

  /** Engines that are defined: presets and definitions, then Bartleby's own. */
  names(): readonly string[] {
    return [...this.#definitions.keys()]
  }

  /** Whether the engine is defined. */
  has(name: string): boolean {
    return this.#definitions.has(name)
  }

  /** All engines there are: those that are defined, those that the store has seen, and Bartleby's own. */
  async known(): Promise<readonly KnownEngine[]> {
    const defined = [...this.#definitions].map(([name, definition]) => ({ name, ...definition }))
    const taken = await this.#seen.queues()
    const others = (await this.#seen.names())
      .filter((name) => !this.has(name))
      .map((name) => ({ name, queue: queueAmong(taken, name), operations: [] }))
    const isOwn = ({ name }: KnownEngine): boolean => ownEngines().includes(name)
    return [...defined.filter((engine) => !isOwn(engine)), ...others, ...defined.filter(isOwn)]
  }

  /** The engine's queue and its own operations; an open engine has none by definition. Refuses what `check` refuses. */
  definitionOf(name: string): EngineDefinition {
    this.check(name)
    return this.#definitions.get(name) ?? UNDEFINED
  }

  /** The queue that is the engine's by its definition, or that a worker of it took; null when it has none. */
  async queueOf(name: string, session?: Session): Promise<string | null> {
    const definition = this.#definitions.get(name)
    if (definition !== undefined) return definition.queue
    return queueAmong(await this.#seen.queues(session), name)
  }

  /** The queues of the engines that are defined with one. */
  queues(): readonly EngineQueue[] {
    return [...this.#definitions].flatMap(([engine, { queue }]) => (queue === null ? [] : { engine, queue }))
  }

  /** What history may show of an engine: its own operations, then the acts on its letters. */
  operationsOf(name: string): readonly string[] {
    const words = kindOf(name).operations ?? []
    const redrives = name === OFFICE ? REDRIVE_ACTS.map((act) => `redrive.${act}`) : []
    const own = this.#definitions.get(name)?.operations ?? []
    return [...new Set([...own, ...words, ...redrives, ...ACTS])]
  }

  /** What history may show of any engine that is defined. */
  operations(): readonly string[] {
    return [...new Set(this.names().flatMap((name) => this.operationsOf(name)))]
  }

  /** Refuses an engine that nothing can be filed under: one that is not defined, or where engines are open no valid name. */
  check(name: string): void {
    if (this.has(name)) return
    if (this.context !== null) throw unknownEngine(name, this.names())
    const problem = problemWithName(name)
    if (problem !== null) throw refuse('engine', `'${shown(name)}' is not allowed, ${problem}`)
  }

  /** Refuses to look for an engine that is neither defined nor was ever seen, with those that there are. */
  async checkKnown(name: string, session?: Session): Promise<void> {
    if (this.has(name) || (await this.#seen.has(name, session))) return
    throw unknownEngine(name, [...new Set([...this.names(), ...(await this.#seen.names(session))])])
  }

  /** Refuses to look for an operation that history cannot show of the engine, or of any engine when none is named. */
  async checkKnownOperation(engine: string | null, operation: string): Promise<void> {
    const defined = engine === null ? this.operations() : this.operationsOf(engine)
    if (defined.includes(operation)) return
    refuseUnknown(operation, [...new Set([...defined, ...(await this.#seen.operations(engine))])])
  }

  /**
   * Refuses an operation that is not the engine's own: acts on letters are recorded by Bartleby alone. An engine that is not
   * defined may call its runs anything else.
   */
  checkOwnOperation(engine: string, operation: string): void {
    const { operations } = this.definitionOf(engine)
    if (this.has(engine)) refuseUnknown(operation, operations)
    else refuseOpenOperation(operation)
  }
}

function refuseOpenOperation(operation: string): void {
  if (!NAME_PATTERN.test(operation)) {
    throw refuse('operation', `'${shown(operation)}' is not allowed, an operation's name is ${NAME_FORM}`)
  }
  if (ACTS.some((act) => act === operation)) {
    throw refuse('operation', `'${operation}' is an act on letters, which Bartleby records itself`)
  }
}

/** The queue that the engine took; of several, the one that an engine has unless it says otherwise. */
function queueAmong(taken: readonly EngineQueue[], name: string): string | null {
  const own = taken.filter(({ engine }) => engine === name).map(({ queue }) => queue)
  return own.find((queue) => queue === name) ?? own[0] ?? null
}

/** So many names are listed in a refusal. */
const LISTED_NAMES = 100

function unknownEngine(name: string, known: readonly string[]): Error {
  return failure('engine_unknown', { engine: shown(name), known: listed(known) })
}

function refuseUnknown(operation: string, known: readonly string[]): void {
  if (known.includes(operation)) return
  throw failure('operation_unknown', {
    operation: shown(operation),
    known: listed(known) || 'no operation',
  })
}

const listed = (names: readonly string[]): string =>
  names.length > LISTED_NAMES
    ? `${names.slice(0, LISTED_NAMES).join(', ')} and ${names.length - LISTED_NAMES} more`
    : names.join(', ')

/** Why an engine cannot be called that, or null when it can. */
export function problemWithName(name: string): string | null {
  if (!NAME_PATTERN.test(name)) return `an engine's name is ${NAME_FORM}`
  return reservedNames().includes(name) ? `'${name}' is one of Bartleby's own names` : null
}

function problemWithOperations(operations: readonly string[]): string | null {
  const bad = operations.find((operation) => !NAME_PATTERN.test(operation))
  if (operations.length > 0 && bad === undefined) return null
  return `operations must be a list of at least one name, each ${NAME_FORM}`
}

const SHOWN_CHARACTERS = 128

const shown = (text: string): string =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
