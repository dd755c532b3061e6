/**
 * The package as users get it: packed, and installed by npm into an empty project with the dependencies that it
 * declares. The repository gets no build: a copy of it is packed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PATIENCE_MS } from '../world/limits.ts'
import { quickFolder } from '../world/quick-folder.ts'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** The copy, the archive, and the project with its dependencies: twice what they take. */
const MOST_BYTES = 200_000_000

export interface Manifest {
  readonly version: string
  readonly bin: { readonly bartleby: string }
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies: Readonly<Record<string, string>>
}

/** An empty project that has installed the package. */
export interface Project {
  /** Everything that was made, to be removed in the end. */
  readonly everything: string
  readonly folder: string
  /** The package below its node_modules. */
  readonly installed: string
  readonly manifest: Manifest
}

/** Runs a program with the tools of the repository; gives its output, and fails with it when the program fails. */
export async function run(
  cwd: string,
  [program, ...args]: readonly [string, ...string[]],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const path = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, PATH: path, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: PATIENCE_MS,
  })
  let output = ''
  let complaints = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  const [code, signal] = await once(child, 'close')
  if (code === 0) return output
  throw new Error(`${[program, ...args].join(' ')} ended with ${signal ?? code}:\n${output}${complaints}`)
}

/** Packs the repository and installs the archive. */
export async function installPackage(): Promise<Project> {
  const everything = mkdtempSync(join(await quickFolder(MOST_BYTES), 'bartleby-package-'))
  const folder = join(everything, 'project')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  // Install scripts are none of ours. What was fetched for the repository is not fetched again.
  const quietly = ['--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  await run(folder, ['npm', 'install', ...quietly, await pack(everything)])
  const installed = join(folder, 'node_modules/bartleby')
  // Our own package.json, which has all of it.
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Manifest
  return { everything, folder, installed, manifest }
}

const NOT_PACKED = ['.git', '.cache', 'bench', 'data', 'dist', 'examples', 'node_modules']

async function pack(into: string): Promise<string> {
  const copy = join(into, 'copy')
  for (const name of readdirSync(root)) {
    if (!NOT_PACKED.includes(name)) cpSync(join(root, name), join(copy, name), { recursive: true })
  }
  link(join(root, 'node_modules'), join(copy, 'node_modules'))
  // Built by `npm test` already, and then there is nothing to do.
  await run(copy, [process.execPath, 'scripts/ensure-console.cjs'])
  // `npm test` has checked the types already; leaving that out makes the build four times as fast.
  await run(copy, ['npm', 'run', 'build', '--', '--noCheck'])
  await run(copy, ['npm', 'pack', '--ignore-scripts', '--offline', '--pack-destination', into])
  const archive = readdirSync(into).find((name) => name.endsWith('.tgz'))
  if (archive === undefined) throw new Error('npm pack left no archive')
  return join(into, archive)
}

/** Makes `path` stand for a folder that is there. */
export function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path, 'junction')
}
