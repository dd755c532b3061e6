/**
 * The package of the examples, installed when it is missing or differs from its lock file. Runs at the same time wait
 * for each other; where the packages cannot be had, the reason is given instead.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TestContext } from 'vitest'
import { PATIENCE_MS } from '../world/limits.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
export const examplesFolder = join(root, 'examples/outbox')

const INSTALL_TIMEOUT_MS = 150_000
const LOOK_MS = 200

/** What npm says when it gets no packages, and what is said of one that took too long. */
const OUT_OF_REACH =
  /ECONN\w+|ENOTFOUND|EAI_AGAIN|\w*TIME(?:D)?OUT\w*|ENOTCACHED|E[45]\d\d\b|ended by SIGTERM/

/** Null when the examples can be run; otherwise why not. */
export async function prepareExamples(): Promise<string | null> {
  const release = await exclusively(join(root, '.cache'), 'examples-outbox.lock')
  try {
    const stamp = join(examplesFolder, 'node_modules/.installed-for')
    const wanted = await contentOf('package-lock.json', 'schema.prisma')
    const present = await readFile(stamp, 'utf8').catch(() => '')
    if (present === wanted && existsSync(join(examplesFolder, 'generated/client.ts'))) return null
    // Install scripts fetch Prisma's engine for migrations, which the examples do not need.
    const npm = ['ci', '--ignore-scripts', '--prefer-offline', '--fetch-retries=0', '--loglevel=error']
    const installed = await run('npm', [...npm, '--no-audit', '--no-fund'], { timeoutMs: INSTALL_TIMEOUT_MS })
    const outOfReach = OUT_OF_REACH.exec(installed.output)
    if (installed.code !== 0 && outOfReach !== null) return `npm ci: ${outOfReach[0]}`
    // Anything else is a fault of the package, and must not pass for a missing network.
    insistOnSuccess('npm ci', installed)
    insistOnSuccess('prisma generate', await generateClient())
    await writeFile(stamp, wanted)
    return null
  } finally {
    release()
  }
}

/** Skips a test of the examples where they cannot be run, as `prepareExamples` says; with `CI=true` it fails instead. */
export function skipWithoutLibraries({ skip }: Pick<TestContext, 'skip'>, missing: string | null): void {
  if (missing === null) return
  const why = `the libraries of examples/outbox cannot be installed: ${missing}`
  if (process.env.CI === 'true') throw new Error(why)
  skip(why)
}

async function contentOf(...names: readonly string[]): Promise<string> {
  return (await Promise.all(names.map((name) => readFile(join(examplesFolder, name), 'utf8')))).join('\n')
}

const generateClient = () =>
  run(process.execPath, ['node_modules/prisma/build/index.js', 'generate', '--schema', 'schema.prisma'], {
    // The command looks for its engine at every start. Any file does, and then none is fetched.
    env: { PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' },
  })

export interface Ended {
  readonly code: number | null
  readonly output: string
}

/** Runs a program in the folder of the examples, with the tools of this repository. */
export async function run(
  program: string,
  args: readonly string[],
  { env = {}, timeoutMs = PATIENCE_MS }: { env?: Readonly<Record<string, string>>; timeoutMs?: number } = {},
): Promise<Ended> {
  const path = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`
  const child = spawn(program, args, {
    cwd: examplesFolder,
    env: { ...process.env, PATH: path, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  try {
    const [code, signal] = await once(child, 'close')
    return { code, output: signal === null ? output : `${output}\nended by ${signal}` }
  } catch (error) {
    return { code: null, output: String(error) }
  }
}

function insistOnSuccess(what: string, { code, output }: Ended): void {
  if (code !== 0) throw new Error(`${what} ended with ${code}:\n${output}`)
}

/** Holds a lock that ends with its process, whatever becomes of it: that of a transaction on an SQLite file. */
async function exclusively(folder: string, name: string): Promise<() => void> {
  mkdirSync(folder, { recursive: true })
  const lock = new DatabaseSync(join(folder, name))
  lock.exec('PRAGMA busy_timeout = 0')
  for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
    try {
      lock.exec('BEGIN IMMEDIATE')
      return () => lock.close()
    } catch (error) {
      if (waitedMs < INSTALL_TIMEOUT_MS) await delay(LOOK_MS)
      else throw new Error('another run has been installing the examples for too long', { cause: error })
    }
  }
}
