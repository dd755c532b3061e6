/** A server that is killed again and again on one store, and followed by one that has loaded its program and waits. */
import { expect } from 'vitest'
import { type ServerOptions, type SpawnedServer, type StandbyServer, standbyServer } from './server.ts'
import { Wire } from './wire.ts'

export class MortalServer {
  readonly #options: ServerOptions
  #next: StandbyServer | undefined
  #server: SpawnedServer | undefined
  #wire: Wire | undefined

  constructor(store: string) {
    this.#options = { store, testApi: false }
    this.#next = standbyServer(this.#options)
  }

  get server(): SpawnedServer {
    return this.#server ?? expect.fail('the server does not run')
  }

  get wire(): Wire {
    return this.#wire ?? expect.fail('the server does not run')
  }

  /** Lets the one that waits serve, and the next one wait, unless this is the last. */
  async start({ isLast = false } = {}): Promise<SpawnedServer> {
    this.#next ??= standbyServer(this.#options)
    const starting = this.#next.start()
    this.#next = isLast ? undefined : standbyServer(this.#options)
    this.#server = await starting
    this.#wire = new Wire(this.#server.url)
    return this.#server
  }

  /** Kills it as a crash would; `clients` end when their server is gone. */
  async kill(clients: () => Promise<unknown> = async () => {}): Promise<void> {
    await this.#server?.kill9()
    await clients()
    await this.#wire?.close()
  }

  async end(): Promise<void> {
    await this.kill()
    await this.#next?.discard()
  }
}
