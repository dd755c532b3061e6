/** A Redis of the benchmark's own, from the PATH; a fresh one for every run. */
import { execFile, spawn } from 'node:child_process'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { freePort } from '../../test/world/postgres.ts'

/** The version of `redis-server` on the PATH, null when there is none. */
export async function redisVersion(): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)('redis-server', ['--version'])
    return /v=(\S+)/.exec(stdout)?.[1] ?? 'unknown'
  } catch {
    return null
  }
}

/** Runs `work` with the port of an empty Redis that keeps an append-only file in `folder`. */
export async function withRedis<T>(folder: string, work: (port: number) => Promise<T>): Promise<T> {
  const port = await freePort()
  const options = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '',
  }
  const server = spawn(
    'redis-server',
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    { stdio: 'ignore' },
  )
  const exited = new Promise((resolve) => server.once('exit', resolve))
  const stop = () => server.kill('SIGTERM')
  process.once('exit', stop)
  try {
    await untilListening(port)
    return await work(port)
  } finally {
    process.off('exit', stop)
    stop()
    await exited
  }
}

async function untilListening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const answers = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('connect', () => socket.end())
    })
    if (answers) return
    await setTimeout(25)
  }
  throw new Error('Redis did not start')
}
