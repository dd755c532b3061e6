/**
 * Which engines exist. Without a context engines are open: every valid name is one from its first letter, run or definition on. With a
 * context there are its presets, as the configuration extends or replaces them, and other names are refused. Bartleby's own names, its
 * sources and the office, always exist. Searches also find every name that the store has seen, because letters outlive definitions.
 */
import { shorten } from '../../api/query.ts'
import { failure, refuse } from '../../core/errors.ts'
import { readSettings } from '../../core/settings/read.ts'
import { readOperationKinds } from '../../history/entry.ts'
import { historyHasEngine } from '../../history/record.ts'
import { kindOf, sourceKinds } from '../../letters/kinds.ts'
import { ACTS, OFFICE, REDRIVE_ACTS } from '../../letters/letter.ts'
import type { Database, Session } from '../../store/database.ts'
import { type EngineQueue, readEngineQueues } from '../records.ts'
import {
  DirectorySchema,
  type EngineContext,
  type EngineSettings,
  NAME_FORM,
  NAME_PATTERN,
  problemsOfDefinitions,
  problemWithName,
} from './settings.ts'

export interface EngineDefinition {
  /** null: nothing to lease; runs are recorded and letters captured all the same. */
  readonly queue: string | null
  readonly operations: readonly string[]
}

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

/** Sources that are engines themselves, and the office, for acts that concern no single engine. */
export const ownEngines = (): readonly string[] => [
  ...sourceKinds().flatMap(({ name, hasEngines }) => (hasEngines ? [] : name)),
  OFFICE,
]

/** Bartleby's own engines, and open ones. */
const UNDEFINED: EngineDefinition = { queue: null, operations: [] }

export interface KnownEngine extends EngineDefinition {
  readonly name: string
}

export class EngineDirectory {
  /** null: engines are open. */
  readonly context: EngineContext | null
  readonly #definitions: ReadonlyMap<string, EngineDefinition>
  readonly #seen: SeenEngines

  constructor({ context, definitions = {} }: EngineSettings = {}, seen = new SeenEngines()) {
    const given: EngineSettings = context === undefined ? { definitions } : { context, definitions }
    const settings = readSettings(DirectorySchema, given, 'engines', problemsOfDefinitions)
    this.context = context ?? null
    this.#seen = seen
    const known = new Map<string, EngineDefinition>(
      context === undefined ? [] : Object.entries(PRESETS[context]),
    )
    for (const [name, { queue = null, operations }] of Object.entries(settings.definitions))
      known.set(name, { queue, operations })
    for (const name of ownEngines()) known.set(name, UNDEFINED)
    this.#definitions = known
  }

  /** Presets and definitions, then Bartleby's own. */
  names(): readonly string[] {
    return [...this.#definitions.keys()]
  }

  has(name: string): boolean {
    return this.#definitions.has(name)
  }

  /** Defined engines, those that the store has seen, and Bartleby's own. */
  async known(): Promise<readonly KnownEngine[]> {
    const defined = [...this.#definitions].map(([name, definition]) => ({ name, ...definition }))
    const taken = await this.#seen.queues()
    const others = (await this.#seen.names())
      .filter((name) => !this.has(name))
      .map((name) => ({ name, queue: queueAmong(taken, name), operations: [] }))
    const isOwn = ({ name }: KnownEngine): boolean => ownEngines().includes(name)
    return [...defined.filter((engine) => !isOwn(engine)), ...others, ...defined.filter(isOwn)]
  }

  /** Queue and operations by definition; an open engine has none. Refuses what `check` refuses. */
  definitionOf(name: string): EngineDefinition {
    this.check(name)
    return this.#definitions.get(name) ?? UNDEFINED
  }

  /** The queue by definition, or the one that a worker took. */
  async queueOf(name: string, session?: Session): Promise<string | null> {
    const definition = this.#definitions.get(name)
    if (definition !== undefined) return definition.queue
    return queueAmong(await this.#seen.queues(session), name)
  }

  queues(): readonly EngineQueue[] {
    return [...this.#definitions].flatMap(([engine, { queue }]) => (queue === null ? [] : { engine, queue }))
  }

  /** Operations that history may show: the engine's own, then the acts on its letters. */
  operationsOf(name: string): readonly string[] {
    const words = kindOf(name).operations ?? []
    const redrives = name === OFFICE ? REDRIVE_ACTS.map((act) => `redrive.${act}`) : []
    const own = this.#definitions.get(name)?.operations ?? []
    return [...new Set([...own, ...words, ...redrives, ...ACTS])]
  }

  operations(): readonly string[] {
    return [...new Set(this.names().flatMap((name) => this.operationsOf(name)))]
  }

  /** Refuses an engine that nothing can be filed under. */
  check(name: string): void {
    if (this.has(name)) return
    if (this.context !== null) throw unknownEngine(name, this.names())
    const problem = problemWithName(name)
    if (problem !== null) throw refuse('engine', `'${shown(name)}' is not allowed, ${problem}`)
  }

  /** Refuses to search for an engine that is neither defined nor was ever seen. */
  async checkKnown(name: string, session?: Session): Promise<void> {
    if (this.has(name) || (await this.#seen.has(name, session))) return
    throw unknownEngine(name, [...new Set([...this.names(), ...(await this.#seen.names(session))])])
  }

  /** Refuses to search for an operation that history cannot show. */
  async checkKnownOperation(engine: string | null, operation: string): Promise<void> {
    const defined = engine === null ? this.operations() : this.operationsOf(engine)
    if (defined.includes(operation)) return
    refuseUnknown(operation, [...new Set([...defined, ...(await this.#seen.operations(engine))])])
  }

  /** Refuses an operation that is not the engine's own. Open engines may use any name but the acts on letters. */
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

/** The queue that the engine took; of several, the one of its own name. */
function queueAmong(taken: readonly EngineQueue[], name: string): string | null {
  const own = taken.filter(({ engine }) => engine === name).map(({ queue }) => queue)
  return own.find((queue) => queue === name) ?? own[0] ?? null
}

/** Names listed in a refusal. */
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

const shown = (text: string): string => shorten(text, 128)

const MAX_REMEMBERED = 10_000

/**
 * Engines that the store has seen, defined or not: every letter or run leaves an operation kind in history, which is never removed, and
 * every started worker its queue. Reads in the transaction of a given session. Without a store nothing was seen.
 */
export class SeenEngines {
  readonly #db: Database | null
  readonly #known = new Set<string>()

  constructor(db: Database | null = null) {
    this.#db = db
  }

  async has(engine: string, session?: Session): Promise<boolean> {
    // No name has U+0000, and PostgreSQL would refuse to look for it.
    if (engine.includes('\0')) return false
    if (this.#known.has(engine)) return true
    const found = await this.#in(session, false, async (at) => {
      if (await historyHasEngine(at, engine)) return true
      return (await readEngineQueues(at)).some((row) => row.engine === engine)
    })
    // A transaction may see rows that are rolled back later, so it teaches nothing.
    if (found && session === undefined && this.#known.size < MAX_REMEMBERED) this.#known.add(engine)
    return found
  }

  /** In alphabetical order. */
  names(session?: Session): Promise<readonly string[]> {
    return this.#in(session, [], async (at) => {
      const labels = [...(await readOperationKinds(at)).values(), ...(await readEngineQueues(at))]
      return [...new Set(labels.map(({ engine }) => engine))].sort()
    })
  }

  /** Operations in history, of one engine or of all. */
  operations(engine: string | null): Promise<readonly string[]> {
    return this.#in(undefined, [], async (at) => {
      const labels = [...(await readOperationKinds(at)).values()]
      const found = engine === null ? labels : labels.filter((label) => label.engine === engine)
      return [...new Set(found.map(({ operation }) => operation))].sort()
    })
  }

  queues(session?: Session): Promise<readonly EngineQueue[]> {
    return this.#in(session, [], readEngineQueues)
  }

  async #in<T>(session: Session | undefined, none: T, read: (at: Session) => Promise<T>): Promise<T> {
    if (session !== undefined) return read(session)
    return this.#db === null ? none : this.#db.session('engines.seen', read)
  }
}
