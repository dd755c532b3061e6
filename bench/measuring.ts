/** The measurements of a benchmark, each in a process of its own. One that fails is told, and the others go on. */
import { inChild } from './fork.ts'

export class Measuring {
  readonly failures: string[] = []
  readonly #program: string
  readonly #signal: AbortSignal

  constructor(program: string, signal: AbortSignal) {
    this.#program = program
    this.#signal = signal
  }

  /** What the program answers to a task. */
  child<Answer>(task: object, nodeFlags?: readonly string[]): Promise<Answer> {
    return inChild<Answer>(this.#program, task, {
      signal: this.#signal,
      onText: (text) => process.stderr.write(text),
      ...(nodeFlags !== undefined && { nodeFlags }),
    })
  }

  /** What `work` gives; null when it failed. */
  async attempt<T>(name: string, work: () => Promise<T>): Promise<T | null> {
    console.error(`${name} …`)
    try {
      return await work()
    } catch (error) {
      if (this.#signal.aborted) throw error
      const reason = error instanceof Error ? error.message : String(error)
      console.error(`FAILED: ${reason}`)
      this.failures.push(`${name}: ${reason}`)
      return null
    }
  }
}

/** A program that answers the one task of its process, which the parent wrote. */
export async function answerTask<Task>(measure: (task: Task) => Promise<unknown>): Promise<void> {
  // A signal ends the process by its 'exit' event, at which what it has started is stopped.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  const answer = await measure(JSON.parse(process.argv[2] ?? '{}') as Task)
  process.send?.(answer, () => process.exit(0))
}
