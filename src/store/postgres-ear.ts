/** The connection that hears notifications. After a loss it comes back by itself; polling covers the gap. */
import pg from 'pg'
import type { Log } from '../core/log.ts'
import { atMost } from '../core/waiting.ts'
import { CONNECT_TIMEOUT_MS, lookBehind } from './postgres-connection.ts'

/** A silent server never answers a goodbye, and its connection would keep the process alive. */
const GOODBYE_MS = 1_000

export class Ear {
  readonly #connection: pg.ClientConfig
  readonly #log: Log
  readonly #heard = new Map<string, (payload: string) => void>()
  /** undefined: nobody listens yet, or a pooler stands between. */
  #ear: pg.Client | undefined
  #opened: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #closed = false

  constructor(connection: pg.ClientConfig, log: Log) {
    this.#connection = connection
    this.#log = log
  }

  async listen(channel: string, hear: (payload: string) => void): Promise<void> {
    this.#heard.set(channel, hear)
    if (this.#opened === undefined) {
      this.#opened = this.#open()
      return this.#opened
    }
    // Once it is known who is there: nobody listens through a pooler.
    await this.#opened
    // While the connection is lost this fails; the next one listens to all channels.
    if (this.#ear !== undefined) await listenTo(this.#ear, channel).catch(() => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    if (this.#ear === undefined) return
    await atMost(GOODBYE_MS, this.#ear.end())
    this.#ear.connection.stream.destroy()
  }

  async #open(): Promise<void> {
    const ear = new pg.Client({ ...this.#connection, application_name: 'bartleby-listen' })
    ear.on('notification', ({ channel, payload }) => this.#heard.get(channel)?.(payload ?? ''))
    // All of them: a server that shuts down reports an error and then closes; an unheard error ends the process.
    const lost = () => {
      if (this.#ear === ear) this.#reopen()
    }
    ear.on('error', lost)
    ear.on('end', lost)
    this.#ear = ear
    try {
      await ear.connect()
      const { isPooled } = await lookBehind(ear, CONNECT_TIMEOUT_MS)
      if (isPooled) return await this.#goDeaf(ear)
      for (const channel of this.#heard.keys()) await listenTo(ear, channel)
    } catch {
      await ear.end().catch(() => {})
    }
  }

  /** A pooler would give the listening connection to somebody else. */
  async #goDeaf(ear: pg.Client): Promise<void> {
    this.#ear = undefined
    const { host, database } = ear
    this.#log.warn(
      { host, database },
      'PostgreSQL is reached through a pooler: statements are not prepared, and what others do is looked for now and then; to hear of it ' +
        "at once, give PostgreSQL's own address: for the store as postgres.listenUrl, for an outbox in another database as its url",
    )
    await ear.end().catch(() => {})
  }

  #reopen(): void {
    if (this.#closed || this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#opened = this.#open()
    }, 1_000)
    this.#retry.unref()
  }
}

const listenTo = (ear: pg.Client, channel: string): Promise<unknown> =>
  ear.query(`LISTEN ${ear.escapeIdentifier(channel)}`)
