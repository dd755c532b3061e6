/** Where letters go, by what they are filed under. What a source finds out only when it renders a letter is known when it is sent. */
import { goesToQueues, type SourceName } from '../../letters/kinds.ts'
import { readDrawers } from '../../letters/numbers/find-drawers.ts'
import { readEngineOf } from '../../queues/records.ts'
import { type Integer, type Session, sql } from '../../store/database.ts'
import { isSending, type PlanRequest } from '../redrive.ts'

export interface Way {
  readonly source: SourceName
  readonly engine: string
  /** Queue, outbox, consumer or topic; '' where the action needs none. */
  readonly destination: string
  readonly exists: boolean
}

/** The place for rates and sentences: one queue is one place, whatever the source of its letters. */
export const placeOf = ({ source, destination }: Pick<Way, 'source' | 'destination'>): string =>
  `${goesToQueues(source) ? 'queue' : source} ${destination}`

const findQueue = sql('redrive.queueExists', 'SELECT id FROM bartleby.queues WHERE name = $1')

export async function queueExists(session: Session, name: string): Promise<boolean> {
  return (await session.rows<{ id: Integer }>(findQueue, name)).length > 0
}

/** Finds the ways of letters for one plan, each place and queue once. */
export class Ways {
  readonly #request: Pick<PlanRequest, 'action' | 'queue'>
  /** By drawer, and by place. */
  readonly #known = new Map<number, Way>()
  readonly #ofPlaces = new Map<number, Way>()
  readonly #queues = new Map<string, boolean>()
  /** Engines of queues that do not exist. */
  readonly #owners = new Map<string, string | null>()

  constructor(request: Pick<PlanRequest, 'action' | 'queue'>) {
    this.#request = request
  }

  of(drawer: number): Way {
    const way = this.#known.get(drawer)
    if (way === undefined) throw new Error(`a letter lies in drawer ${drawer}, which is not there`)
    return way
  }

  /** Learns where the letters of these drawers go, each once: drawer numbers are never reused. */
  async learn(session: Session, drawers: Iterable<number>): Promise<void> {
    const unknown = [...new Set(drawers)].filter((drawer) => !this.#known.has(drawer))
    if (unknown.length === 0) return
    for (const { number, place, source, engine, queue } of await readDrawers(session, unknown)) {
      const way = this.#ofPlaces.get(place) ?? {
        ...{ source, engine },
        ...(await this.#target(session, source, engine, queue)),
      }
      this.#ofPlaces.set(place, way)
      this.#known.set(number, way)
    }
  }

  async #target(
    session: Session,
    source: SourceName,
    engine: string,
    queue: string,
  ): Promise<Pick<Way, 'destination' | 'exists'>> {
    const { action } = this.#request
    if (!isSending(action)) return { destination: '', exists: true }
    if (action === 'move') {
      const destination = this.#request.queue ?? ''
      return { destination, exists: goesToQueues(source) && (await this.#exists(session, destination)) }
    }
    if (!goesToQueues(source)) return { destination: queue, exists: true }
    if (queue === '') return { destination: queue, exists: false }
    return { destination: queue, exists: await this.#takes(session, queue, engine) }
  }

  /** An engine's own queue is created by the first letter that goes back. */
  async #takes(session: Session, queue: string, engine: string): Promise<boolean> {
    if (await this.#exists(session, queue)) return true
    if (!this.#owners.has(queue)) this.#owners.set(queue, await readEngineOf(session, queue))
    return this.#owners.get(queue) === engine
  }

  async #exists(session: Session, queue: string): Promise<boolean> {
    const known = this.#queues.get(queue) ?? (await queueExists(session, queue))
    this.#queues.set(queue, known)
    return known
  }
}
