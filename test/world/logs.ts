/** Logs that keep what they are told, to be looked at by a test. */
import pino, { type Level } from 'pino'
import type { Log } from '../../src/core/log.ts'

/** The log of a part of the product; what is written only to find bugs is dropped. */
export class KeptLog implements Log {
  readonly lines: { readonly level: string; readonly details: object; readonly message: string }[] = []
  readonly debug = (): void => {}
  readonly info = this.#keep('info')
  readonly warn = this.#keep('warn')
  readonly error = this.#keep('error')

  #keep(level: string) {
    return (details: object, message: string): void => void this.lines.push({ level, details, message })
  }
}

/** The log of a server: its lines, from a level on. */
export class ServerLog {
  readonly lines: string[] = []
  readonly log

  constructor(level: Level) {
    this.log = pino({ level }, { write: (line: string) => void this.lines.push(line) })
  }

  get text(): string {
    return this.lines.join('')
  }

  /** How often each message was written. */
  get counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const line of this.lines) {
      const message = String(JSON.parse(line).msg)
      counts.set(message, (counts.get(message) ?? 0) + 1)
    }
    return counts
  }

  count(message: string): number {
    return this.counts.get(message) ?? 0
  }
}
