/** Starts the HTTP receiver beside the process that measures. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

export interface HttpReceiver {
  readonly url: string
  /** How many messages have come in. */
  received(): Promise<number>
  stop(): void
}

export async function startReceiver(): Promise<HttpReceiver> {
  const child = fork(join(import.meta.dirname, 'receiver.ts'), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  process.once('exit', () => child.kill())
  // The receiver answers with nothing else.
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}/messages`,
    async received() {
      const answer = once(child, 'message')
      child.send('count')
      const [{ received }] = (await answer) as [{ received: number }]
      return received
    },
    stop: () => void child.kill(),
  }
}

/** Messages that are under way at the same time, in every system. */
export const IN_FLIGHT = 16
