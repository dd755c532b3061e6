/** Adoption as users run it: a process of its own, which tests kill. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const bin = fileURLToPath(new URL('../../bin/bartleby.js', import.meta.url))

export interface Adoption {
  readonly child: ChildProcess
  readonly ended: Promise<{ code: number | null; out: string; err: string }>
  /** Resolves as soon as it has said something like `word`, or ended. */
  said(word: RegExp): Promise<void>
}

/** Starts `bartleby outbox adopt`. */
export function startAdoption(...args: readonly string[]): Adoption {
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'bartleby-compiled') }
  const child = spawn(process.execPath, [bin, 'outbox', 'adopt', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let out = ''
  let err = ''
  let hear = (): void => {}
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk
    hear()
  })
  const ended = once(child, 'close').then(([code]) => ({ code, out, err }))
  const said = (word: RegExp): Promise<void> =>
    new Promise((resolve) => {
      hear = () => word.test(err) && resolve()
      hear()
      void ended.then(() => resolve())
    })
  return { child, ended, said }
}
