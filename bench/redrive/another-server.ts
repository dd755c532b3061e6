/** Another server on the same store, in a process of its own, that carries redrives out. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { RedriveDetail } from '../../src/index.ts'

export interface Errand {
  readonly verb: 'start' | 'resume'
  readonly id: RedriveDetail['id']
}

export interface AnotherServer {
  /** Has it start or resume a redrive, which is that server's from then on. */
  ask(verb: Errand['verb'], id: Errand['id']): Promise<void>
  stop(): Promise<void>
}

export async function startAnother(store: string): Promise<AnotherServer> {
  const program = join(import.meta.dirname, 'another-server-child.ts')
  const child = fork(program, [store], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  process.once('exit', () => child.kill())
  const exited = once(child, 'exit')
  const heard = () =>
    Promise.race([
      once(child, 'message'),
      exited.then(([code]) => {
        throw new Error(`the other server ended with ${code}`)
      }),
    ])
  await heard()
  return {
    async ask(verb, id) {
      child.send({ verb, id } satisfies Errand)
      await heard()
    },
    async stop() {
      child.disconnect()
      await exited
    },
  }
}
