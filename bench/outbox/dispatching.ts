/** A dispatcher in a process of its own, at work while something else is measured. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { watchEmptiness } from './table.ts'

export interface Dispatching {
  /** Waits until nothing is left to be sent, and ends it. */
  finish(): Promise<void>
}

export async function startDispatching(store: string): Promise<Dispatching> {
  const program = join(import.meta.dirname, 'dispatching-child.ts')
  const child = fork(program, [store], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  process.once('exit', () => child.kill())
  const exited = once(child, 'exit')
  await once(child, 'message')
  return {
    async finish() {
      const watch = await watchEmptiness(store)
      while (!(await watch.isEmpty())) await setTimeout(20)
      await watch.close()
      child.disconnect()
      await exited
    },
  }
}
