/** A server as users run it, and how much of a core it takes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { serverNodeFlags } from '../servers/bartleby.ts'

const root = join(import.meta.dirname, '../..')
const READY = /bartleby listening on (\S+)/
/** Of the kernel's clock: what /proc counts in, on Linux. */
const TICKS_PER_SECOND = 100

export interface Server {
  readonly url: string
  /** The share of one core it takes over the next `seconds`, in percent. */
  cpuPercent(seconds: number): Promise<number>
  stop(): Promise<void>
}

export async function startServer(store: string): Promise<Server> {
  const command = ['bin/bartleby.js', 'serve', '--port', '0', '--store', store]
  const child = spawn('node', [...serverNodeFlags, ...command], {
    cwd: root,
    env: { ...process.env, BARTLEBY_LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const { pid } = child
  if (pid === undefined) throw new Error('the server could not be started')
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk
      const found = READY.exec(output)?.[1]
      if (found !== undefined) resolve(found)
    })
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}`)))
  })
  return {
    url,
    cpuPercent: async (seconds) => {
      const before = cpuTicks(pid)
      await pause(seconds * 1_000)
      return ((cpuTicks(pid) - before) / TICKS_PER_SECOND / seconds) * 100
    },
    stop: async () => {
      process.off('exit', kill)
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** User and system time of a process. */
function cpuTicks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return Number(fields[11]) + Number(fields[12])
}
