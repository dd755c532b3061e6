/**
 * Azure Storage for tests: Azurite, installed below test/azure when a test needs it first, one process for each test file. Where it cannot
 * be installed the tests are skipped; a build (`CI=true`) fails instead.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rm, stat } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { TableClient } from '@azure/data-tables'
import { QueueServiceClient } from '@azure/storage-queue'
import { afterAll, beforeAll, describe, it } from 'vitest'

const folder = join(import.meta.dirname, '../azure')
const program = join(folder, 'node_modules/azurite/dist/src/azurite.js')
const START_MS = 60_000
const INSTALL_MS = 300_000

/** The account that Azurite always has; its key is no secret. */
export const ACCOUNT = 'devstoreaccount1'
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=='

const versionIn = async (path: string): Promise<string> =>
  JSON.parse(await readFile(path, 'utf8')).version ?? ''

async function isInstalled(): Promise<boolean> {
  try {
    const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    return (await versionIn(join(folder, 'node_modules/azurite/package.json'))) === dependencies.azurite
  } catch {
    return false
  }
}

/** Why there is none, or null. Of test files that begin together one installs it. */
async function install(): Promise<string | null> {
  if (await isInstalled()) return null
  const lock = join(folder, '.installing')
  for (const began = performance.now(); performance.now() - began < INSTALL_MS; await pause(500)) {
    if (await isInstalled()) return null
    try {
      await mkdir(lock)
    } catch {
      // Somebody died over it.
      const { mtimeMs } = await stat(lock).catch(() => ({
        mtimeMs: performance.timeOrigin + performance.now(),
      }))
      if (performance.timeOrigin + performance.now() - mtimeMs > INSTALL_MS)
        await rm(lock, { recursive: true, force: true })
      continue
    }
    try {
      // No lockfile, as in bench/: what it needs on other platforms leaves holes in it.
      const args = ['install', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund']
      const npm = spawn('npm', args, { cwd: folder, stdio: 'ignore' })
      const [code] = await once(npm, 'exit')
      return code === 0 && (await isInstalled()) ? null : `npm could not install Azurite in ${folder}`
    } catch (error) {
      return `npm could not be run: ${String(error)}`
    } finally {
      await rm(lock, { recursive: true, force: true })
    }
  }
  return 'Azurite was not installed in time'
}

export const whyNoAzurite = await install()

/** Tests against Azurite; `azurite()` is there in them. */
export function describeAzurite(name: string, body: (azurite: () => Azurite) => void): void {
  if (whyNoAzurite === null) {
    describe(name, () => {
      let azurite: Azurite | undefined
      beforeAll(async () => {
        azurite = await startAzurite()
      }, START_MS)
      afterAll(async () => azurite?.stop())
      body(() => {
        if (azurite === undefined) throw new Error('Azurite was not started')
        return azurite
      })
    })
  } else if (process.env.CI === 'true') {
    it(name, () => {
      throw new Error(whyNoAzurite)
    })
  } else {
    describe.skip(`${name} (${whyNoAzurite})`, () => void it('needs Azurite', () => {}))
  }
}

export interface Azurite {
  readonly ports: { readonly tables: number; readonly queues: number }
  readonly connectionString: string
  table(name: string): TableClient
  readonly queues: QueueServiceClient
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** The files of a certificate for 127.0.0.1 that signs itself. */
export interface Certificate {
  readonly cert: string
  readonly key: string
}

/** With a certificate it speaks HTTPS alone, and takes bearer tokens beside the account's key. */
export async function startAzurite(secured: Certificate | null = null): Promise<Azurite> {
  const { tables, queues } = { tables: await freePort(), queues: await freePort() }
  const args = [
    ...['--silent', '--skipApiVersionCheck', '--disableTelemetry', '--inMemoryPersistence'],
    ...(secured === null ? [] : ['--oauth', 'basic', '--cert', secured.cert, '--key', secured.key]),
  ]
  const ports = ['--tablePort', tables, '--queuePort', queues, '--blobPort', await freePort()].map(String)
  const child = spawn(process.execPath, [program, ...args, ...ports], { cwd: folder, stdio: 'ignore' })
  const connectionString = connectionOf(tables, queues, secured === null ? 'http' : 'https')
  const service = QueueServiceClient.fromConnectionString(connectionString)
  await untilUp(child, [tables, queues])
  return {
    ports: { tables, queues },
    connectionString,
    table: (name) =>
      TableClient.fromConnectionString(connectionString, name, { allowInsecureConnection: true }),
    queues: service,
    stop: () => end(child),
  }
}

export const connectionOf = (tables: number, queues: number, protocol = 'http'): string =>
  `DefaultEndpointsProtocol=${protocol};AccountName=${ACCOUNT};AccountKey=${KEY};TableEndpoint=${protocol}://127.0.0.1:${tables}/${ACCOUNT};QueueEndpoint=${protocol}://127.0.0.1:${queues}/${ACCOUNT};`

async function untilUp(child: ChildProcess, ports: readonly number[]): Promise<void> {
  for (const port of ports)
    for (const began = performance.now(); ; await pause(50)) {
      if (child.exitCode !== null) throw new Error(`Azurite ended with ${child.exitCode}`)
      if (performance.now() - began > START_MS) throw new Error('Azurite did not start in time')
      const socket = connect(port, '127.0.0.1')
      const isUp = await once(socket, 'connect').then(
        () => true,
        () => false,
      )
      socket.destroy()
      if (isUp) break
    }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
