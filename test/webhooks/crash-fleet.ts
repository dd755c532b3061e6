/** Servers in processes of their own on one store, some of which are killed and replaced. Each has a name, which its calls carry. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { WebhookSettings } from '../../src/sources/webhooks/settings.ts'
import type { Random } from '../world/random.ts'
import {
  type DeepPartial,
  overlaid,
  type SpawnedServer,
  type StandbyServer,
  standbyServer,
} from '../world/server.ts'
import { nowMs } from './crash-recorder.ts'

export interface FleetOrder {
  readonly store: string
  /** How many serve at the same time. */
  readonly size: number
  /** How many are killed, at most. */
  readonly kills: number
  readonly webhooks: DeepPartial<WebhookSettings>
}

interface Standby {
  readonly name: string
  readonly server: StandbyServer
}

interface Member {
  readonly name: string
  readonly server: SpawnedServer
}

export class Fleet {
  readonly #order: FleetOrder
  readonly #folder: string
  readonly #members: Member[] = []
  readonly #replacing = new Set<Promise<void>>()
  /** Servers that have loaded their program and wait: starting takes longer than anything else here. */
  readonly #standby: Promise<Standby>[] = []
  #names = 0
  /** When servers were killed, by their names. */
  readonly killedMs = new Map<string, number>()
  /** How servers ended that nobody had killed. */
  readonly deaths: string[] = []

  private constructor(order: FleetOrder, folder: string) {
    this.#order = order
    this.#folder = folder
    process.once('exit', this.#atExit)
  }

  static async start(order: FleetOrder): Promise<Fleet> {
    const fleet = new Fleet(order, await mkdtemp(join(tmpdir(), 'bartleby-fleet-')))
    try {
      const adding = Array.from({ length: order.size }, () => fleet.#add())
      await Promise.all(adding)
    } catch (error) {
      await fleet.discard()
      throw error
    }
    fleet.#prepare()
    return fleet
  }

  /** Those that serve. */
  get urls(): readonly string[] {
    return this.#members.map(({ server }) => server.url)
  }

  /** Kills one of them without a word; another takes its place, which `replaced` waits for. */
  async kill(random: Random): Promise<void> {
    const [member] = this.#members.splice(random.whole(0, this.#members.length - 1), 1)
    if (member === undefined) return
    this.killedMs.set(member.name, nowMs())
    await member.server.kill9()
    const replaced = this.#add().finally(() => this.#replacing.delete(replaced))
    this.#replacing.add(replaced)
    this.#prepare()
  }

  /** Resolves when as many serve as in the beginning. */
  async replaced(): Promise<void> {
    await Promise.all(this.#replacing)
  }

  /** Asks all to end; gives their exit codes. */
  async stop(): Promise<readonly (number | null)[]> {
    await this.replaced()
    return Promise.all(this.#members.splice(0).map(({ server }) => server.term()))
  }

  /** Ends all that are left, however they are. */
  async discard(): Promise<void> {
    await Promise.allSettled(this.#replacing)
    await Promise.all(this.#members.splice(0).map(({ server }) => server.kill9()))
    for (const standby of this.#standby.splice(0)) await (await standby).server.discard()
    process.off('exit', this.#atExit)
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** A test that was given up must not leave servers behind. */
  readonly #atExit = () => {
    for (const { server } of this.#members) process.kill(server.pid, 'SIGKILL')
  }

  async #add(): Promise<void> {
    const { name, server: standby } = await (this.#standby.shift() ?? this.#launch())
    const server = await standby.start()
    this.#members.push({ name, server })
    void server.ended.then((code) => {
      if (!this.killedMs.has(name) && code !== 0) this.deaths.push(`${name} ended with ${code}`)
    })
  }

  #prepare(): void {
    const { size, kills } = this.#order
    if (this.#names < size + kills) this.#standby.push(this.#launch())
  }

  async #launch(): Promise<Standby> {
    const { store, webhooks } = this.#order
    const name = `server-${++this.#names}`
    const config = join(this.#folder, `${name}.yaml`)
    const named = overlaid(webhooks, { delivery: { userAgent: name } })
    // JSON is YAML.
    await writeFile(config, JSON.stringify({ webhooks: named }))
    return { name, server: standbyServer({ store, config, testApi: false }) }
  }
}
