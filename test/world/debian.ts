/**
 * Debian's packages for tests that need what users have. Missing ones are installed where that is possible without asking; where it
 * is not, the tests are skipped with a sentence, and a build (`CI=true`) fails instead.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { type PostgresServer, startPostgres } from './postgres.ts'

const POSTGRES_FOLDER = '/usr/lib/postgresql'

/** What `find` finds, after an attempt to install the packages if it found nothing. */
export function findOrInstall<T>(packages: readonly string[], find: () => T | undefined): T | undefined {
  const found = find()
  if (found !== undefined) return found
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return undefined
  const options = { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } } as const
  spawnSync('apt-get', ['update'], options)
  spawnSync('apt-get', ['install', '-y', '--no-install-recommends', ...packages], options)
  return find()
}

/** Tests of what is there; skipped with a sentence where it is not. */
export function describeWith<T>(
  found: T | undefined,
  missing: string,
  name: string,
  body: (found: T) => void,
): void {
  if (found !== undefined) {
    describe(name, () => body(found))
  } else if (process.env.CI === 'true') {
    it(name, () => {
      throw new Error(missing)
    })
  } else {
    console.warn(`skipped: ${name}: ${missing}`)
    it.skip(`${name} (${missing})`, () => {})
  }
}

/** PostgreSQL as Debian packages it: with JIT, and with pg_dump. */
export interface DebianPostgres {
  /** Where its programs are. */
  readonly bin: string
  /** A server of its own with stock settings, on a free loopback port. */
  start(): Promise<PostgresServer>
}

function findPostgres(): DebianPostgres | undefined {
  if (!existsSync(POSTGRES_FOLDER)) return undefined
  const versions = readdirSync(POSTGRES_FOLDER).sort((a, b) => Number(b) - Number(a))
  const bin = versions
    .map((version) => join(POSTGRES_FOLDER, version, 'bin'))
    .find((folder) => existsSync(join(folder, 'postgres')))
  if (bin === undefined) return undefined
  const binaries = { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') }
  return { bin, start: () => startPostgres({ binaries, settings: {} }) }
}

/** Tests on PostgreSQL as Debian packages it. */
export function describeDebianPostgres(name: string, body: (postgres: DebianPostgres) => void): void {
  const missing = "Debian's package postgresql is not installed, nor could it be"
  describeWith(findOrInstall(['postgresql'], findPostgres), missing, name, body)
}

/** Tests that run a program of Debian's package of the same name, which may be older than what comes with Node. */
export function describeProgram(program: string, name: string, body: (path: string) => void): void {
  const find = () => ['/usr/bin', '/usr/sbin'].map((folder) => join(folder, program)).find(existsSync)
  const missing = `Debian's package ${program} is not installed, nor could it be`
  describeWith(findOrInstall([program], find), missing, name, body)
}
