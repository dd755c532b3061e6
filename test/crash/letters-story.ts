/**
 * A client with a queue of its own, whose letters nobody else touches: it captures, lets items die, retries, discards,
 * expires, restores, completes, and keeps a ledger of what it was told. It ends when its server is gone.
 */
import { expect } from 'vitest'
import { Clerk, isLoss, storedIn } from '../world/clerk.ts'
import { apiCall, type Detail, type Key, type Listed, pathTo, type Reply } from '../world/office-api.ts'
import type { Random } from '../world/random.ts'
import { type Answer, type Json, jsonCodec, type Wire } from '../world/wire.ts'
import { Ledger, type Sight, type State, type Verb } from './letters-ledger.ts'

/** Short, so that what was leased when a server died comes back within a round. */
const LEASE_TIMEOUT = '300ms'

type Turn = 'gone' | undefined

/** Somebody holds the letter or its item: a lease that an earlier turn forgot. */
const HELD = ['letter_leased', 'letter_in_flight']
const OVERTAKEN = /does not exist|is not marked as leased|no items are in the queue/

export class Story {
  readonly ledger = new Ledger()
  readonly name: string
  readonly #random: Random
  readonly #keys = new Map<string, Key>()
  /** Payloads of which something was asked since the last look. */
  readonly #dirty = new Set<string>()
  #wire: Wire | undefined
  #made = 0
  successes = 0

  constructor(name: string, random: Random) {
    this.name = name
    this.#random = random
  }

  /** Goes on at this server. */
  attach(wire: Wire): void {
    this.#wire = wire
  }

  async createQueues(): Promise<void> {
    await this.#clerk.createPair(this.name, { lease_timeout: LEASE_TIMEOUT })
  }

  /** Acts at random until it is told to stop or the server is gone. */
  async go(stopping: () => boolean): Promise<void> {
    while (!stopping() && (await this.#turn()) !== 'gone');
  }

  get #clerk(): Clerk {
    return new Clerk(this.#wire ?? expect.fail('the story has a server'), this.name)
  }

  async #turn(): Promise<Turn> {
    const draw = this.#random.whole(0, 99)
    if (draw < 15) return this.#produce()
    if (draw < 25) return this.#capture()
    if (draw < 50) return this.#work()
    if (draw < 57) return this.#take()
    if (draw < 77) return this.#act('retry', (state) => state.status === 'Pending')
    if (draw < 84) return this.#act('discard', (state) => state.status === 'Pending')
    if (draw < 90) return this.#act('expire', (state) => state.status === 'Pending')
    return this.#act('restore', (state) => state.status === 'Resolved' || state.status === 'Expired')
  }

  #fresh(): string {
    return `${this.name} ${this.#made++}`
  }

  async #produce(): Promise<Turn> {
    const payloads = Array.from({ length: this.#random.whole(1, 4) }, () => this.#fresh())
    const items = payloads.map((utf8) => ({ utf8 }))
    return this.#queueCall('produce', payloads, '/v1/queue.produce', {
      queue_name: this.name,
      request_timeout: '1m',
      items,
    })
  }

  async #capture(): Promise<Turn> {
    const payload = this.#fresh()
    const body = {
      engine: 'http',
      originalQueue: this.name,
      originalMessage: payload,
      errorMessage: 'reported',
      sourceId: payload,
    }
    const { turn, reply } = await this.#officeCall('capture', payload, 'POST', '/api/dlq', body, [201])
    if (reply !== undefined) this.#keys.set(payload, reply.data as Listed) // the reply of a capture
    return turn
  }

  /** Leases what is on the queue; some of it completes, some dies, some is forgotten. */
  async #work(): Promise<Turn> {
    const leased = await this.#lease(this.name, this.#random.whole(1, 6))
    if (leased === 'gone' || leased.length === 0) return leased === 'gone' ? 'gone' : undefined
    const chosen = leased.filter(() => this.#random.chance(0.85))
    const middle = this.#random.whole(0, chosen.length)
    return (await this.#end('complete', chosen.slice(0, middle))) ?? this.#end('die', chosen.slice(middle))
  }

  async #end(verb: 'complete' | 'die', leased: readonly { id: string; payload: string }[]): Promise<Turn> {
    if (leased.length === 0) return undefined
    const payloads = leased.map(({ payload }) => payload)
    const ids = leased.map(({ id }) => id)
    return verb === 'complete'
      ? this.#queueCall(verb, payloads, '/v1/queue.complete', {
          queue_name: this.name,
          request_timeout: '1m',
          ids,
        })
      : this.#queueCall(verb, payloads, '/v1/queue.retry', {
          queue_name: this.name,
          items: ids.map((id) => ({ id, dead: true })),
        })
  }

  /** Takes letters from the dead queue and is done with them. */
  async #take(): Promise<Turn> {
    const queue_name = `${this.name}-dead`
    const leased = await this.#lease(queue_name, 2)
    if (leased === 'gone' || leased.length === 0) return leased === 'gone' ? 'gone' : undefined
    const payloads = leased.map(({ payload }) => payload)
    const ids = leased.map(({ id }) => id)
    return this.#queueCall('take', payloads, '/v1/queue.complete', { queue_name, request_timeout: '1m', ids })
  }

  async #act(
    verb: 'retry' | 'discard' | 'expire' | 'restore',
    legal: (state: State) => boolean,
  ): Promise<Turn> {
    const candidates = this.ledger.those(legal)
    const payload = candidates[this.#random.whole(0, candidates.length - 1)]
    if (payload === undefined) return undefined
    const key = await this.#keyOf(payload)
    if (key === 'gone') return 'gone'
    if (verb === 'retry') return (await this.#officeCall(verb, payload, 'POST', pathTo(key, '/retry'))).turn
    const status = { discard: 'Resolved', expire: 'Expired', restore: 'Pending' }[verb]
    const body = { status, resolutionNotes: verb }
    return (await this.#officeCall(verb, payload, 'PATCH', pathTo(key), body)).turn
  }

  /** The key of a letter; those of queue letters are looked up when they are first needed. */
  async #keyOf(payload: string): Promise<Key | 'gone'> {
    const known = this.#keys.get(payload)
    if (known !== undefined) return known
    try {
      await this.#learnKeys()
    } catch (error) {
      if (isLoss(error)) return 'gone'
      throw error
    }
    return this.#keys.get(payload) ?? expect.fail(`'${payload}' died and has no letter`)
  }

  async #learnKeys(): Promise<Listed[]> {
    const letters = await this.#clerk.walk({ originalQueue: this.name })
    const known = new Set([...this.#keys.values()].map(({ rowKey }) => rowKey))
    for (const letter of letters.filter(({ rowKey }) => !known.has(rowKey))) {
      const { originalMessage } = await this.#detail(letter)
      const other = this.#keys.get(originalMessage)
      if (other !== undefined)
        expect.fail(`'${originalMessage}' has two letters: ${other.rowKey}, ${letter.rowKey}`)
      this.#keys.set(originalMessage, { engine: letter.engine, rowKey: letter.rowKey })
    }
    return letters
  }

  async #detail(key: Key): Promise<Detail> {
    const { data } = await this.#clerk.expects([200], 'GET', pathTo(key))
    return data as Detail // the reply of a letter's page
  }

  async #lease(queue: string, batchSize: number) {
    try {
      return (await this.#clerk.lease(queue, batchSize)).items
    } catch (error) {
      if (isLoss(error)) return 'gone' as const
      throw error
    }
  }

  async #queueCall(
    verb: Verb,
    payloads: readonly string[],
    path: '/v1/queue.produce' | '/v1/queue.complete' | '/v1/queue.retry',
    body: Json,
  ): Promise<Turn> {
    for (const payload of payloads) this.#dirty.add(payload)
    let answer: Answer
    try {
      answer = await this.#clerk.wire.call(jsonCodec, path, body)
    } catch (error) {
      return this.#lost(error, verb, payloads)
    }
    if (answer.status === 200) return this.#applied(verb, payloads)
    expect(String(answer.body.message), `${path} ${verb}`).toMatch(OVERTAKEN)
    return undefined
  }

  async #officeCall(
    verb: Verb,
    payload: string,
    method: 'POST' | 'PATCH',
    path: string,
    body?: object,
    fine: readonly number[] = [200],
  ): Promise<{ turn: Turn; reply?: Reply }> {
    this.#dirty.add(payload)
    let reply: Reply
    try {
      reply = await apiCall(this.#clerk.wire, method, path, body === undefined ? {} : { body })
    } catch (error) {
      return { turn: this.#lost(error, verb, [payload]) }
    }
    if (fine.includes(reply.status)) return { turn: this.#applied(verb, [payload]), reply }
    expect(HELD, `${verb} of '${payload}': ${JSON.stringify(reply.error)}`).toContain(reply.error?.code)
    return { turn: undefined }
  }

  #applied(verb: Verb, payloads: readonly string[]): undefined {
    this.successes++
    this.ledger.settle(verb, payloads, 'applied')
  }

  #lost(error: unknown, verb: Verb, payloads: readonly string[]): 'gone' {
    if (!isLoss(error)) throw error
    this.ledger.settle(verb, payloads, 'unknown')
    return 'gone'
  }

  /** Holds the ledger against the store; `thorough` looks at every letter and not only at what was asked about. */
  async audit(thorough: boolean): Promise<string[]> {
    const complaints: string[] = []
    const queued = await this.#payloadsIn(this.name)
    const dead = await this.#payloadsIn(`${this.name}-dead`)
    const letters = await this.#learnKeys()
    const byKey = new Map(letters.map((letter) => [letter.rowKey, letter]))
    const known = new Set(this.ledger.payloads())
    for (const [place, payloads] of [['queue', queued] as const, ['dead queue', dead] as const]) {
      if (new Set(payloads).size !== payloads.length) complaints.push(`something is twice in the ${place}`)
    }
    for (const payload of [...queued, ...dead, ...this.#keys.keys()]) {
      if (!known.has(payload)) complaints.push(`'${payload}' is there and nobody made it`)
    }
    for (const payload of known) {
      const key = this.#keys.get(payload)
      const letter = key === undefined ? undefined : byKey.get(key.rowKey)
      if (key !== undefined && letter === undefined) complaints.push(`the letter of '${payload}' is lost`)
      const place = { queued: queued.includes(payload), dead: dead.includes(payload) }
      const status = letter?.status ?? 'none'
      const [only] = this.ledger.states(payload)
      const acts =
        thorough || this.#dirty.has(payload) || only === undefined ? await this.#acts(key) : only.acts
      const seen: Sight = { ...place, status, acts }
      const complaint = this.ledger.observe(payload, seen)
      if (complaint !== null) complaints.push(complaint)
    }
    this.#dirty.clear()
    return complaints
  }

  async #acts(key: Key | undefined): Promise<string[]> {
    if (key === undefined) return []
    const { history } = await this.#detail(key)
    return history.map(({ operation }) => operation).reverse()
  }

  async #payloadsIn(queue_name: string): Promise<string[]> {
    const stored = await storedIn(this.#clerk.wire, '/v1/storage/items.list', { queue_name })
    return stored.map(({ payload }) => payload)
  }
}
