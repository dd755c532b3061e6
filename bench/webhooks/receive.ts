/** Starts the receiver of callbacks beside the process that measures, and asks it what has come in. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Times } from '../figures.ts'

/** How many callbacks have come in, those that came twice apart. */
export interface Received {
  /** To healthy consumers. */
  readonly well: number
  readonly twice: number
  readonly slow: number
  readonly hung: number
  /** When the last healthy one came, on the clock that all processes share. */
  readonly lastAtMs: number
}

export type Arrived = Times

export interface Question {
  /** From the first, to before the last. */
  readonly arrived: {
    readonly numbers: readonly [number, number]
    readonly times: readonly [number, number]
  }
}

/** Deliveries that stop for so long have stopped for good. */
const STALLED_MS = 60_000

export class Receiver {
  /** `/well/<consumer>` and so on are below it. */
  readonly url: string
  readonly #child: ReturnType<typeof fork>
  readonly #waiting = new Map<number, (answer: unknown) => void>()
  #asked = 0

  private constructor(child: ReturnType<typeof fork>, port: number) {
    this.#child = child
    this.url = `http://127.0.0.1:${port}`
    // The receiver answers with nothing else.
    child.on('message', (message) => {
      const { id, answer } = message as { id: number; answer: unknown }
      this.#waiting.get(id)?.(answer)
      this.#waiting.delete(id)
    })
  }

  static async start(): Promise<Receiver> {
    const child = fork(join(import.meta.dirname, 'receiver.ts'), {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    process.once('exit', () => child.kill())
    // That is the first thing it tells.
    const [{ port }] = (await once(child, 'message')) as [{ port: number }]
    return new Receiver(child, port)
  }

  /** What has come in until now. */
  received(): Promise<Received> {
    return this.#ask<Received>(null)
  }

  /** How long those messages took that came to healthy consumers. */
  ways(
    numbers: readonly [number, number],
    times: readonly [number, number] = [0, Number.MAX_VALUE],
  ): Promise<Arrived> {
    return this.#ask<Arrived>({ numbers, times })
  }

  /** Waits until so many have come to healthy consumers, or tells that they do not. */
  async untilWell(count: number): Promise<Received> {
    let before = await this.received()
    let movedAtMs = performance.now()
    while (before.well < count) {
      await setTimeout(20)
      const now = await this.received()
      if (now.well > before.well) movedAtMs = performance.now()
      else if (performance.now() - movedAtMs > STALLED_MS)
        throw new Error(`${count} callbacks were due, and none came after ${now.well}`)
      before = now
    }
    return before
  }

  /** Ends it: whatever hangs there is cut off. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill()
    await exited
  }

  #ask<Answer>(ask: Question['arrived'] | null): Promise<Answer> {
    const id = ++this.#asked
    return new Promise((resolve) => {
      this.#waiting.set(id, (answer) => resolve(answer as Answer))
      this.#child.send({ id, ask })
    })
  }
}
