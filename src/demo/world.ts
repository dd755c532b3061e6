/** The invented world of a demo: its time, chance, outages, and partners who answer on a port of this machine. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as rest } from 'node:timers/promises'
import { type Clock, type Instant, later } from '../core/clock.ts'
import { SystemClock } from '../core/system-clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { Chance } from './story/chance.ts'
import type { DemoPart, DemoStory, PartnerReply } from './story/story.ts'

/** A clock that begins in the past, is moved to the present, and then runs with the system's. */
export class CatchUpClock extends TestClock {
  readonly #system: Clock
  #isBehind = true

  constructor(behindUs: bigint, system: Clock = new SystemClock()) {
    super(system)
    this.#system = system
    this.freeze(later(system.now(), -behindUs))
  }

  get present(): Instant {
    return this.#system.now()
  }

  /** At most to the present; rings alarms in the order of deadlines. */
  moveTo(at: Instant): void {
    const { present } = this
    if (this.#isBehind && at > this.now()) this.freeze(at < present ? at : present)
  }

  release(): void {
    this.moveTo(this.present)
    this.#isBehind = false
    this.thaw()
  }
}

/** The past is the same in every demo. The present is not: after a restart its reports would be known already. */
const PAST_SEED = 1853

/** Deliveries use a real connection: the clock moves in steps that wait for them. */
const STEP_US = 4_000_000n
const STEP_MS = 3
const MOST_STEPS = 500

const WELL: PartnerReply = { status: 204, text: '' }

export class World implements DemoStory {
  readonly clock: CatchUpClock
  readonly chance = new Chance(PAST_SEED)
  readonly out = new Set<string>()
  parts: readonly DemoPart[] = []
  readonly #partners = new Map<string, (body: string) => PartnerReply | null>()
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  constructor(clock: CatchUpClock) {
    this.clock = clock
  }

  get now(): Instant {
    return this.clock.now()
  }

  isOut(who: string): boolean {
    return this.out.has(who)
  }

  setOut(who: string, isOut: boolean): void {
    if (isOut) this.out.add(who)
    else this.out.delete(who)
  }

  partner(path: string, replyTo: (body: string) => PartnerReply | null): string {
    this.#partners.set(path, replyTo)
    // It listens on a port.
    const { port } = this.#server.address() as AddressInfo
    return `http://127.0.0.1:${port}${path}`
  }

  passTime(us: bigint): void {
    this.clock.moveTo(later(this.now, us))
  }

  async until(isSo: () => Promise<boolean>): Promise<void> {
    for (let steps = 0; steps < MOST_STEPS && !(await isSo()); steps++) {
      if (!this.parts.some((part) => part.isBusy?.())) this.passTime(STEP_US)
      await rest(STEP_MS)
    }
  }

  beginPresent(): void {
    this.clock.release()
    this.chance.restart(Number(this.now % 0xffff_ffffn))
  }

  async listen(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#server.once('error', reject)
    this.#server.listen(0, '127.0.0.1', resolve)
    await promise
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#server.close(() => resolve())
    this.#server.closeAllConnections()
    await promise
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const replyTo = this.#partners.get(request.url ?? '')
      const { status, text } = replyTo?.(Buffer.concat(chunks).toString()) ?? WELL
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text)
    } catch {
      // The sender has gone.
      response.destroy()
    }
  }
}
